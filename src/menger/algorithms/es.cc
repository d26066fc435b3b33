// Evolution Strategies (Salimans, Ho, Chen, Sidor, Sutskever 2017, algorithms 1 and 2).
#include "menger/algorithms/es.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/es_gradient.h"
#include "menger/algorithms/es_population.h"
#include "menger/base/error.h"

namespace menger {
namespace {

template <typename Component>
OptionTexts TextsOf(Component component) {
  Options options;
  component.Declare(options);
  return options.Texts();
}

// Plays the pairs of an iteration on the workers, then learns from all of them.
class EsCycle final : public LearningCycle {
 public:
  EsCycle(Es& es, const WorkerPlan& plan)
      : es_(es),
        population_(es.WorkerSpec(plan), plan.runtime, es.config().noise_entries),
        stream_(plan.seed, es.config().noise_entries, es.parameter_count(),
                es.config().observe_probability) {}

  void Collect(std::int64_t /*steps_max*/) override {
    outcomes_.clear();
    steps_ = 0;
    const auto parameters = population_.Share(es_.published());
    std::int64_t pairs = es_.config().pairs;
    while (pairs > 0) {
      const auto first = static_cast<std::int64_t>(outcomes_.size());
      population_.Play({.iteration = es_.iteration(), .first = first, .count = pairs}, parameters,
                       outcomes_);
      for (const PairOutcome& outcome : std::span(outcomes_).subspan(first)) {
        steps_ += outcome.lengths[0] + outcome.lengths[1];
      }
      pairs = PairsMissing();
    }
    episodes_.clear();
    for (const PairOutcome& outcome : outcomes_) {
      for (const int sign : {0, 1}) {
        episodes_.push_back({.environment = static_cast<int>(episodes_.size()),
                             .episode_return = outcome.returns[sign],
                             .length = outcome.lengths[sign]});
      }
    }
  }

  Metrics Learn(UpdateRule& update, double progress) override {
    return es_.Learn(outcomes_, stream_, population_.noise(), update, progress);
  }
  std::vector<std::string> metric_names() const override {
    return {"gradient_norm", "parameter_norm", "population_return_maximum", "pairs"};
  }

  std::int64_t steps() const override { return steps_; }
  std::span<const EpisodeResult> episodes() const override { return episodes_; }

 private:
  // How many more are likely to reach the steps: a function of outcomes, not of who was faster.
  std::int64_t PairsMissing() const {
    const std::int64_t missing = es_.config().steps_min - steps_;
    if (missing <= 0) return 0;
    const auto pairs = static_cast<std::int64_t>(outcomes_.size());
    return (missing * pairs + steps_ - 1) / steps_;
  }

  Es& es_;
  EsPopulation population_;
  const PairStream stream_;
  std::vector<PairOutcome> outcomes_;  // Of the last Collect, by pair.
  std::vector<EpisodeResult> episodes_;
  std::int64_t steps_ = 0;
};

// By the workers' draws: what each pair's returns are worth, by rank among those of all learners.
std::vector<MirroredPair> RankedPairs(std::span<const PairOutcome> outcomes,
                                      const PairStream& stream, std::int64_t iteration,
                                      UpdateRule& update) {
  const auto own = static_cast<double>(outcomes.size());
  const auto first = static_cast<std::size_t>(update.Before(own));
  std::vector<double> returns(2 * static_cast<std::size_t>(update.Total(own)));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    std::ranges::copy(outcomes[i].returns, returns.begin() + 2 * (first + i));
  }
  update.Sum(returns);
  const std::vector<double> ranks = CentredRanks(returns);
  std::vector<MirroredPair> pairs;
  for (std::size_t i = first; i < first + outcomes.size(); ++i) {
    const PairDraws draws = stream.Draw(iteration, static_cast<std::int64_t>(i));
    pairs.push_back(
        {.noise_index = draws.noise_index, .plus = ranks[2 * i], .minus = ranks[2 * i + 1]});
  }
  return pairs;
}

double Norm(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares);
}

}  // namespace

void EsConfig::Declare(Options& options) {
  options.Add("pairs", &pairs,
              {.minimum = 1,
               .maximum = 1e6,
               .unit = "pairs",
               .consequence = "mirrored pairs of episodes an update: more point more surely "
                              "uphill, and keep more workers busy"});
  options.Add(
      "steps_min", &steps_min,
      {.minimum = 0,
       .maximum = 1e12,
       .unit = "steps",
       .consequence = "an update waits for so many environment steps, with more pairs while "
                      "episodes are short"});
  options.Add("deviation", &deviation,
              {.minimum = 0,
               .above_minimum = true,
               .consequence = "how far from the parameters episodes are played"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of the optimiser"});
  Schedule::Declare(options, "learning_rate_schedule", &learning_rate_schedule,
                    "the learning rate");
  options.Add("weight_decay", &weight_decay,
              {.minimum = 0, .consequence = "how strongly parameters are drawn towards 0"});
  options.Add("action_noise", &action_noise,
              {.minimum = 0,
               .consequence = "standard deviation of what is added to continuous actions while "
                              "learning"});
  options.Add("observe_probability", &observe_probability,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "share of the episodes whose observations enter the statistics of "
                              "normalise_observation"});
  options.Add("noise_entries", &noise_entries,
              {.minimum = 1,
               .maximum = 1 << 30,
               .unit = "numbers",
               .consequence = "size of the shared noise table, 4 bytes each; many times the "
                              "parameters, so that directions differ"});
}

Es::Es(const EsConfig& config, const AlgorithmContext& context)
    : config_(config),
      learning_rate_schedule_(config.learning_rate_schedule),
      context_(context),
      policies_(context, config.action_noise),
      published_(policies_.model(), /*threads=*/1) {}

EsWorkerSpec Es::WorkerSpec(const WorkerPlan& plan) const {
  return {.environment = plan.environment,
          .network = TextsOf(context_.network),
          .transforms = TextsOf(context_.transforms),
          .precision = context_.precision,
          .seed = plan.seed,
          .deviation = config_.deviation,
          .action_noise = config_.action_noise,
          .observe_probability = config_.observe_probability};
}

std::unique_ptr<LearningCycle> Es::MakeCycle(const WorkerPlan& plan) {
  OpenForWorker(plan.environment);  // Says here, not in a worker, that it cannot be made.
  return std::make_unique<EsCycle>(*this, plan);
}

Metrics Es::Learn(std::span<const PairOutcome> outcomes, const PairStream& stream,
                  std::span<const float> noise, UpdateRule& update, double progress) {
  Network& network = published_.network();
  const std::span<float> parameters = network.parameters();
  const std::span<float> gradient = network.gradients();
  const double pairs = update.Total(static_cast<double>(outcomes.size()));
  const double share = static_cast<double>(outcomes.size()) / pairs;
  EstimateGradient(RankedPairs(outcomes, stream, iteration_, update), noise, gradient);
  const double norm = Norm(gradient);
  // Update rules descend; worth is to grow, and the parameters to stay small.
  const auto decay = static_cast<float>(config_.weight_decay * share);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = decay * parameters[i] - static_cast<float>(share) * gradient[i];
  }
  update.Step(network, config_.learning_rate * learning_rate_schedule_.At(progress));
  UpdateStatistics(outcomes, update);
  ++iteration_;

  double highest = -std::numeric_limits<double>::infinity();
  for (const PairOutcome& outcome : outcomes) {
    highest = std::max({highest, outcome.returns[0], outcome.returns[1]});
  }
  return {{"gradient_norm", norm},
          {"parameter_norm", Norm(parameters)},
          {"population_return_maximum", update.Largest(highest)},
          {"pairs", pairs}};
}

void Es::UpdateStatistics(std::span<const PairOutcome> outcomes, UpdateRule& update) {
  if (!policies_.model().normalises()) return;
  const auto elements = static_cast<std::size_t>(policies_.model().encoder().numbers());
  std::vector<double> sums(2 * elements + 1);
  for (const auto& [returns, lengths, observed] : outcomes) {
    if (observed.count == 0) continue;
    for (std::size_t i = 0; i < elements; ++i) {
      sums[i] += observed.sum[i];
      sums[elements + i] += observed.squares[i];
    }
    sums.back() += static_cast<double>(observed.count);
  }
  update.Sum(sums);
  if (sums.back() == 0) return;
  const std::span<const double> all = sums;
  published_.Observe(all.first(elements), all.subspan(elements, elements), all.back());
}

void Es::Save(ArchiveWriter& archive) const {
  published_.Save(archive);
  archive.Write("iteration", iteration_);
}

void Es::Load(ArchiveReader& archive) {
  published_.Load(archive);
  archive.Read("iteration", iteration_);
}

void Es::LoadParameters(ArchiveReader& archive) {
  published_.LoadParameters(archive);
  published_.Publish();
}

}  // namespace menger
