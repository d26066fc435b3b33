// Evolution Strategies (Salimans, Ho, Chen, Sidor, Sutskever 2017, algorithms 1 and 2).
#include "menger/algorithms/es.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/es_gradient.h"
#include "menger/algorithms/es_population.h"
#include "menger/algorithms/schedule.h"
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

// By the workers' draws: what each pair's returns are worth, by rank.
std::vector<MirroredPair> RankedPairs(std::span<const PairOutcome> outcomes,
                                      const PairStream& stream, std::int64_t iteration) {
  std::vector<double> returns;
  for (const PairOutcome& outcome : outcomes) {
    returns.insert(returns.end(), outcome.returns.begin(), outcome.returns.end());
  }
  const std::vector<double> ranks = CentredRanks(returns);
  std::vector<MirroredPair> pairs;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
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
  options.Add("learning_rate_schedule", &learning_rate_schedule,
              {.choices = {"constant", "linear"},
               .consequence = "linear: falls to 0 at the end of the run"});
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
    : config_(config), context_(context), model_(context) {
  policy_spec_.batch_invariant = model_.network->batch_invariant();
  if (model_.normalises()) normaliser_.emplace(model_.encoder->elements());
  blob_.resize(static_cast<std::size_t>(model_.manifest.size()));
  publication_ = std::make_shared<Publication>(model_.manifest);
  Publish();
}

std::unique_ptr<Policy> Es::MakePolicy(PolicyMode mode, std::uint64_t seed) {
  const double noise = mode == PolicyMode::kSample ? config_.action_noise : 0.0;
  return std::make_unique<EsPolicy>(EsModel(context_), noise, publication_, seed);
}

PolicyDescription Es::DescribePolicy() const {
  const std::span<const float> blob = blob_;
  const auto parameters = static_cast<std::size_t>(model_.network->manifest().size());
  const LeafSpec& action = OnlyAction(context_.environment);
  PolicyDescription description =
      DescribeObservation(context_.environment.observation, *model_.encoder, context_.transforms,
                          blob.subspan(parameters), action);
  const NetworkSpec spec = EsModel::NetworkSpecFor(context_, *model_.encoder, *model_.distribution);
  description.network = LayersOf(spec, model_.network->manifest(), blob.first(parameters),
                                 {&spec.heads.front().name, 1});
  description.rule = action.space == Space::kBox ? ActionRule::kMean : ActionRule::kLargestLogit;
  return description;
}

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

void Es::Publish() {
  const std::span<float> parameters = model_.network->parameters();
  std::ranges::copy(parameters, blob_.begin());
  if (normaliser_) normaliser_->WriteTo(std::span<float>(blob_).subspan(parameters.size()));
  publication_->Publish(blob_);
}

Metrics Es::Learn(std::span<const PairOutcome> outcomes, const PairStream& stream,
                  std::span<const float> noise, UpdateRule& update, double progress) {
  const std::span<float> parameters = model_.network->parameters();
  const std::span<float> gradient = model_.network->gradients();
  EstimateGradient(RankedPairs(outcomes, stream, iteration_), noise, gradient);
  const double norm = Norm(gradient);
  // Update rules descend; worth is to grow, and the parameters to stay small.
  const auto decay = static_cast<float>(config_.weight_decay);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = decay * parameters[i] - gradient[i];
  }
  update.Step(*model_.network,
              Scheduled(config_.learning_rate, config_.learning_rate_schedule, progress));
  UpdateStatistics(outcomes);
  ++iteration_;

  double highest = -std::numeric_limits<double>::infinity();
  for (const PairOutcome& outcome : outcomes) {
    highest = std::max({highest, outcome.returns[0], outcome.returns[1]});
  }
  return {{"gradient_norm", norm},
          {"parameter_norm", Norm(parameters)},
          {"population_return_maximum", highest},
          {"pairs", static_cast<double>(outcomes.size())}};
}

// In the order of pairs.
void Es::UpdateStatistics(std::span<const PairOutcome> outcomes) {
  if (!normaliser_) return;
  for (const PairOutcome& outcome : outcomes) {
    const ObservationSums& observed = outcome.observed;
    if (observed.count > 0) normaliser_->Merge(observed.sum, observed.squares, observed.count);
  }
}

void Es::Save(ArchiveWriter& archive) const {
  archive.Write("manifest", publication_->manifest().ToText());
  const ParameterVersion version = publication_->Latest()->version();
  archive.Write("incarnation", version.incarnation);
  archive.Write("version", version.number);
  archive.Write("parameters", std::span<const float>(model_.network->parameters()));
  archive.Write("published", blob_);
  archive.Write("iteration", iteration_);
  if (normaliser_) normaliser_->Save(archive.Scope("observation_statistics"));
}

void Es::LoadModel(const ArchiveReader& archive) {
  publication_->manifest().CheckEqual(
      ParameterManifest::FromText(archive.Read<std::string>("manifest")),
      "checkpoint '" + archive.path() + "'");
  archive.Read("parameters", model_.network->parameters());
  model_.network->ParametersChanged();
  if (normaliser_) normaliser_->Load(archive.Scope("observation_statistics"));
}

void Es::LoadParameters(ArchiveReader& archive) {
  LoadModel(archive);
  Publish();
}

void Es::Load(ArchiveReader& archive) {
  LoadModel(archive);
  archive.Read("iteration", iteration_);
  ParameterVersion version;
  archive.Read("incarnation", version.incarnation);
  archive.Read("version", version.number);
  archive.Read("published", std::span<float>(blob_));
  publication_->Restore(version, blob_);
}

}  // namespace menger
