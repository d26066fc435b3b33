#include "menger/networks/update_rule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/optimiser.h"

namespace menger {
namespace {

// Eight sums side by side, in an order that never changes.
double SquaredNorm(std::span<const float> values) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < values.size(); ++i) sums[0] += static_cast<double>(values[i]) * values[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

GradientNotFinite NotFinite(const GroupValues& values) {
  for (const ParameterEntry& entry : values.manifest.entries()) {
    for (std::int64_t i = 0; i < entry.elements(); ++i) {
      const float value = values.gradients[static_cast<std::size_t>(entry.offset + i)];
      if (std::isfinite(value)) continue;
      return GradientNotFinite(
          fmt::format("gradient is not finite ({}) at parameter '{}'; lower the learning rate",
                      value, entry.name));
    }
  }
  return GradientNotFinite("the norm of the gradient is not finite; lower the learning rate");
}

// Parameters that one thread goes through at a time: their squares are added up apart, so that the
// norm does not depend on the threads.
constexpr std::int64_t kPart = 1 << 15;

template <typename T>
std::span<T> PartOf(std::span<T> all, int part) {
  const std::size_t begin = static_cast<std::size_t>(part) * kPart;
  return all.subspan(begin, std::min<std::size_t>(kPart, all.size() - begin));
}

int PartsOf(std::int64_t parameters) { return static_cast<int>((parameters + kPart - 1) / kPart); }

int LargestInParts(std::span<const ParameterGroup> groups) {
  int parts = 1;
  for (const ParameterGroup& group : groups) parts = std::max(parts, PartsOf(group.count));
  return parts;
}

std::vector<std::string> NamesOf(std::span<const ParameterGroup> groups) {
  std::vector<std::string> names;
  for (const ParameterGroup& group : groups) names.push_back(group.name);
  return names;
}

void CheckNames(std::span<const ParameterGroup> groups) {
  std::vector<std::string> names = NamesOf(groups);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return;
  throw InvalidArgument("two parameter groups are called '{}'; each needs a name of its own",
                        *twice);
}

class LocalUpdateRule : public UpdateRule {
 public:
  LocalUpdateRule(const OptimiserOptions& options, std::span<const ParameterGroup> groups,
                  SharedWorkerPool threads)
      : max_gradient_norm_(options.max_gradient_norm),
        groups_(groups.begin(), groups.end()),
        squares_(static_cast<std::size_t>(LargestInParts(groups))),
        pool_(std::move(threads)) {
    CheckNames(groups);
    for (const ParameterGroup& group : groups) {
      optimisers_.push_back(MakeOptimiser(options, group.count));
    }
  }

  using UpdateRule::Step;
  double Step(int group, const GroupValues& values, double learning_rate) override {
    CheckGroup(group, values);
    const std::int64_t count = groups_[static_cast<std::size_t>(group)].count;
    const int parts = PartsOf(count);
    pool_.Run(parts,
              [&](int part) { squares_[part] = SquaredNorm(PartOf(values.gradients, part)); });
    const double norm = std::sqrt(std::accumulate(squares_.begin(), squares_.begin() + parts, 0.0));
    if (!std::isfinite(norm)) throw NotFinite(values);
    double scale = 1.0;
    if (max_gradient_norm_ > 0) {
      scale = std::min(1.0, max_gradient_norm_ / (norm + 1e-6));  // As clip_grad_norm_ of torch.
    }
    Optimiser& optimiser = *optimisers_[static_cast<std::size_t>(group)];
    optimiser.Begin(learning_rate);
    pool_.Run(parts, [&](int part) {
      optimiser.Move(static_cast<std::size_t>(part) * kPart, PartOf(values.parameters, part),
                     PartOf(values.gradients, part), static_cast<float>(scale));
    });
    return norm;
  }

  void Sum(std::span<double>) override {}
  int learners() const override { return 1; }
  int learner() const override { return 0; }

  // The state of an only group has no name of its own.
  void Save(ArchiveWriter& archive) const override {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      ArchiveWriter scope = groups_.size() == 1 ? archive : archive.Scope(groups_[i].name);
      optimisers_[i]->Save(scope);
    }
  }
  void Load(ArchiveReader& archive) override {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      ArchiveReader scope = groups_.size() == 1 ? archive : archive.Scope(groups_[i].name);
      optimisers_[i]->Load(scope);
    }
  }

 private:
  void CheckGroup(int group, const GroupValues& values) const {
    if (group < 0 || group >= std::ssize(groups_)) {
      throw InvalidArgument("there is no parameter group {}; parameter_groups() are {}: {}", group,
                            groups_.size(), fmt::join(NamesOf(groups_), ", "));
    }
    const ParameterGroup& declared = groups_[static_cast<std::size_t>(group)];
    if (std::ssize(values.gradients) == declared.count &&
        std::ssize(values.parameters) == declared.count) {
      return;
    }
    throw InvalidArgument(
        "parameter group '{}' has {} parameters, as parameter_groups() says; a step was given {} "
        "and {} gradients",
        declared.name, declared.count, values.parameters.size(), values.gradients.size());
  }

  const double max_gradient_norm_;
  const std::vector<ParameterGroup> groups_;
  std::vector<std::unique_ptr<Optimiser>> optimisers_;  // One a group.
  std::vector<double> squares_;  // Of each part of a group's gradients, summed.
  SharedWorkerPool pool_;
};

}  // namespace

void OptimiserOptions::Declare(Options& options) {
  options.Add("kind", &kind,
              {.choices = {"adam", "rmsprop", "torch_rmsprop"},
               .consequence = "how gradients become steps; rmsprop is TensorFlow's, with which the "
                              "A2C paper's figures hold, torch_rmsprop is that of RL Baselines3"});
  options.Add("epsilon", &epsilon,
              {.minimum = 0,
               .maximum = 1,
               .above_minimum = true,
               .consequence = "larger damps the steps of parameters with small gradients"});
  options.Add("beta1", &beta1,
              {.minimum = 0,
               .maximum = 0.9999,
               .consequence = "adam: how long the direction of a step is remembered"});
  options.Add("beta2", &beta2,
              {.minimum = 0,
               .maximum = 0.999999,
               .consequence = "adam: how long the size of gradients is remembered"});
  options.Add("decay", &decay,
              {.minimum = 0,
               .maximum = 0.999999,
               .consequence = "rmsprop: how long the size of gradients is remembered"});
  options.Add(
      "centred", &centred,
      {.consequence = "rmsprop: steps are divided by the gradient's deviation from its mean "
                      "instead of its size (Graves 2013)"});
  options.Add("max_gradient_norm", &max_gradient_norm,
              {.minimum = 0,
               .consequence = "longer gradients are shortened to this; 0 leaves them as they are"});
}

double UpdateRule::Total(double value) {
  Sum({&value, 1});
  return value;
}

double UpdateRule::Largest(double value) {
  if (learners() == 1) return value;
  const std::vector<double> values = Gather(value);
  return *std::ranges::max_element(values);
}

double UpdateRule::Before(double value) {
  if (learners() == 1) return 0;
  const std::vector<double> values = Gather(value);
  return std::accumulate(values.begin(), values.begin() + learner(), 0.0);
}

std::vector<double> UpdateRule::Gather(double value) {
  std::vector<double> values(static_cast<std::size_t>(learners()), 0.0);
  values[static_cast<std::size_t>(learner())] = value;
  Sum(values);
  return values;
}

double UpdateRule::Step(Network& network, double learning_rate, int group) {
  const double norm = Step(group,
                           {.manifest = network.manifest(),
                            .parameters = network.parameters(),
                            .gradients = network.gradients()},
                           learning_rate);
  network.ParametersChanged();
  return norm;
}

std::unique_ptr<UpdateRule> MakeLocalUpdateRule(const OptimiserOptions& options,
                                                std::span<const ParameterGroup> groups,
                                                SharedWorkerPool threads) {
  return std::make_unique<LocalUpdateRule>(options, groups, std::move(threads));
}

std::unique_ptr<UpdateRule> MakeLocalUpdateRule(const OptimiserOptions& options,
                                                std::int64_t parameters, SharedWorkerPool threads) {
  const ParameterGroup only{.name = "parameters", .count = parameters};
  return MakeLocalUpdateRule(options, std::span(&only, 1), std::move(threads));
}

}  // namespace menger
