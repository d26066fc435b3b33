#include "menger/algorithms/es_worker.h"

#include <algorithm>
#include <memory>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kRows = 32;                      // Of the slab that is filled again and again.
constexpr std::int64_t kStepsMax = 1'000'000;  // Of an episode without a time limit.

template <typename Component>
Component FromTexts(const OptionTexts& texts) {
  Component component;
  Options options;
  component.Declare(options);
  options.SetFromTexts(texts);
  return component;
}

AlgorithmContext ContextOf(const EsWorkerSpec& spec, const EnvironmentSpec& environment) {
  return {.environment = environment,
          .network = FromTexts<NetworkOptions>(spec.network),
          .transforms = FromTexts<TransformOptions>(spec.transforms),
          .precision = spec.precision,
          .seed = spec.seed};
}

}  // namespace

EsWorker::EsWorker(Runtime& runtime, const EsWorkerSpec& spec, const ObjectRef<TensorView>& noise)
    : noise_(runtime.Pin(noise)),
      spec_(spec),
      environment_(OpenForWorker(spec.environment)),
      policies_(ContextOf(spec, environment_.spec), spec.action_noise),
      policy_(policies_.MakeForWorker()),
      pairs_(spec.seed, static_cast<std::int64_t>(noise_->values<float>().size()),
             policies_.model().network().manifest().size(), spec.observe_probability),
      clip_actions_(FromTexts<TransformOptions>(spec.transforms).actions == "clip"),
      slab_({.observation = environment_.spec.observation,
             .state = {},
             .action = environment_.spec.action,
             .policy = {},
             .horizon = kRows,
             .history = policies_.history(),
             .columns = ColumnLayout::Single(1)}),
      version_(static_cast<std::size_t>(policies_.manifest().size())) {
  if (policies_.model().normalises()) {
    observation_.resize(policies_.model().encoder().numbers());
  }
}

std::vector<PairOutcome> EsWorker::Play(const PairRange& range, std::span<const float> parameters) {
  std::vector<PairOutcome> outcomes;
  for (std::int64_t pair = range.first; pair < range.first + range.count; ++pair) {
    outcomes.push_back(PlayPair(pairs_.Draw(range.iteration, pair), parameters));
  }
  return outcomes;
}

PairOutcome EsWorker::PlayPair(const PairDraws& draws, std::span<const float> parameters) {
  const std::span<const float> noise = noise_->values<float>().subspan(draws.noise_index);
  PairOutcome outcome;
  for (const int sign : {0, 1}) {
    const auto deviation = static_cast<float>(sign == 0 ? spec_.deviation : -spec_.deviation);
    std::copy(parameters.begin(), parameters.end(), version_.begin());
    const std::span<float> perturbed = policies_.model().ParametersIn(std::span(version_));
    for (std::size_t i = 0; i < perturbed.size(); ++i) perturbed[i] += deviation * noise[i];
    policy_->Use(version_, draws.action_seed);
    PlayEpisode(draws, sign, outcome);
  }
  return outcome;
}

void EsWorker::PlayEpisode(const PairDraws& draws, int sign, PairOutcome& outcome) {
  // A new group is the only way to new seeds. It stands still once the episode has ended.
  const auto group = environment_.make_group({.columns = slab_.columns().block(0, 0),
                                              .seed = draws.environment_seed,
                                              .reset_mode = ResetMode::kBetweenSlabs,
                                              .clip_actions = clip_actions_});
  const bool observe = draws.observe[sign] && policies_.model().normalises();
  slab_.set_first_step(0);
  group->Reset(slab_, /*row=*/0);
  while (outcome.lengths[sign] < kStepsMax) {
    for (int row = 0; row < kRows; ++row) {
      if (observe) Observe(row, outcome.observed);
      policy_->Act(slab_, row, {.first = 0, .count = 1});
      group->Step(slab_, row);
      outcome.returns[sign] += slab_.reward(row)[0];
      ++outcome.lengths[sign];
      if (slab_.episode_end(row)[0] != 0) return;
    }
    slab_.Carry(slab_);
  }
  throw FailedPrecondition(
      "an episode of {} (seed {}) has not ended after {} steps: give the environment a time limit",
      environment_.spec.name, draws.environment_seed, kStepsMax);
}

void EsWorker::Observe(int row, ObservationSums& sums) {
  policies_.model().encoder().Encode(slab_, row, /*position=*/0, /*count=*/1,
                                     {.numbers = observation_.data()});
  sums.sum.resize(observation_.size());
  sums.squares.resize(observation_.size());
  for (std::size_t i = 0; i < observation_.size(); ++i) {
    const double value = observation_[i];
    sums.sum[i] += value;
    sums.squares[i] += value * value;
  }
  ++sums.count;
}

}  // namespace menger
