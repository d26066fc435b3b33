#pragma once

// For tests: trains an algorithm in a plain loop, without run folders, and evaluates it greedily.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/base/error.h"
#include "menger/collectors/collector.h"
#include "menger/networks/update_rule.h"

namespace menger {

// What is trained, and how.
struct TrainingSetup {
  std::string algorithm = "ppo";
  std::vector<std::pair<std::string, std::string>> options;  // Of the algorithm's section.
  NetworkOptions network;
  TransformOptions transforms;
  OptimiserOptions optimiser;
  int environments = 8;
  int horizon = 32;
  std::int64_t steps = 10'000;
  std::uint64_t seed = 1;
  int threads = 1;  // For learning.
  std::string precision = "fp32";
};

// Mean return of the first episode of each of `episodes` environments, greedily, at most `horizon`
// steps each.
inline double GreedyReturn(Algorithm& algorithm, const EnvironmentEntry& environment, int episodes,
                           int horizon) {
  const auto collector =
      MakeCollector({.environments = episodes,
                     .horizon = horizon,
                     .clip_actions = true,
                     .pin = false,
                     .seed = 10'000'019},
                    environment, [&] { return algorithm.MakePolicy(PolicyMode::kGreedy, 0); });
  const Slab& slab = collector->Collect();
  double sum = 0;
  for (int i = 0; i < episodes; ++i) {
    for (int row = 0; row < horizon; ++row) {
      sum += slab.reward(row)[i];
      if (slab.episode_end(row)[i] != 0) break;
    }
  }
  return sum / episodes;
}

// Rewards of a slab for each episode that ended in it.
inline double ReturnPerEpisode(const Slab& slab) {
  double rewards = 0;
  int episodes = 0;
  for (int row = 0; row < slab.horizon(); ++row) {
    for (int position = 0; position < slab.positions(); ++position) {
      rewards += slab.reward(row)[position];
      episodes += slab.episode_end(row)[position];
    }
  }
  return rewards / std::max(1, episodes);
}

// An algorithm that learned from fresh slabs until `steps` of them were collected.
class TrainedAlgorithm {
 public:
  TrainedAlgorithm(const TrainingSetup& setup, const EnvironmentEntry& environment)
      : environment_(environment) {
    AlgorithmContext context{.environment = environment.spec,
                             .network = setup.network,
                             .transforms = setup.transforms,
                             .environments = setup.environments,
                             .precision = setup.precision,
                             .seed = setup.seed,
                             .threads = setup.threads};
    for (auto& entry : AllAlgorithms()) {
      if (entry->name() != setup.algorithm) continue;
      Options options(setup.algorithm);
      entry->Declare(options);
      for (const auto& [name, text] : setup.options) options.SetFromText(name, text);
      algorithm_.reset(dynamic_cast<SlabAlgorithm*>(entry->Make(context).release()));
    }
    if (algorithm_ == nullptr) throw NotFound("no slab algorithm '{}'", setup.algorithm);
    Train(setup);
  }

  // As GreedyReturn.
  double Evaluate(int episodes, int horizon) {
    return GreedyReturn(*algorithm_, environment_, episodes, horizon);
  }

  SlabAlgorithm& algorithm() { return *algorithm_; }
  // ReturnPerEpisode of each slab.
  const std::vector<double>& slab_returns() const { return slab_returns_; }
  const Metrics& last_metrics() const { return metrics_; }
  const Metrics& first_metrics() const { return first_metrics_; }

 private:
  void Train(const TrainingSetup& setup) {
    const auto collector = MakeCollector(
        {.environments = setup.environments,
         .horizon = setup.horizon,
         .clip_actions = true,
         .pin = false,
         .seed = setup.seed},
        environment_, [&] { return algorithm_->MakePolicy(PolicyMode::kSample, setup.seed); });
    const auto update = MakeLocalUpdateRule(setup.optimiser, algorithm_->parameter_count());
    const std::int64_t slab_steps = static_cast<std::int64_t>(setup.environments) * setup.horizon;
    for (std::int64_t steps = 0; steps < setup.steps; steps += slab_steps) {
      Slab* const slab = &collector->Collect();
      slab_returns_.push_back(ReturnPerEpisode(*slab));
      metrics_ = algorithm_->Learn({&slab, 1}, *update,
                                   static_cast<double>(steps) / static_cast<double>(setup.steps));
      if (first_metrics_.empty()) first_metrics_ = metrics_;
      algorithm_->Publish();
    }
  }

  const EnvironmentEntry environment_;
  std::unique_ptr<SlabAlgorithm> algorithm_;
  std::vector<double> slab_returns_;
  Metrics metrics_;
  Metrics first_metrics_;
};

}  // namespace menger
