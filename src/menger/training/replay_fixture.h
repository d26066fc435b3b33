#pragma once

// For tests: a replay algorithm in a plain loop, without run folders.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/dqn.h"
#include "menger/algorithms/training_fixture.h"
#include "menger/collectors/collector.h"
#include "menger/networks/update_rule.h"
#include "menger/training/replay_learner.h"

namespace menger {

// What is trained, on what, for how long.
struct ReplaySetup {
  std::vector<std::pair<std::string, std::string>> options;  // Of the algorithm's section.
  ReplayOptions replay;
  NetworkOptions network;
  OptimiserOptions optimiser;
  int environments = 1;
  int horizon = 8;
  std::int64_t steps = 10'000;
  std::uint64_t seed = 1;
  int threads = 1;
};

// A run of a second.
inline ReplaySetup SmallSetup() {
  ReplaySetup setup{.environments = 3, .horizon = 5, .steps = 3'000};
  setup.options = {{"epsilon_fraction", "0.5"}, {"target_every", "20"}};
  setup.replay = {.capacity = 500,
                  .min_size = 100,
                  .batch_size = 16,
                  .training_intensity = 8,
                  .chunk_steps = 16};
  setup.network.hidden = {16};
  return setup;
}

// An algorithm that learns from replay in a plain loop, without a run folder.
template <typename Implementation, typename Config>
class ReplayRunOf {
 public:
  ReplayRunOf(const ReplaySetup& setup, EnvironmentEntry environment)
      : setup_(setup), environment_(std::move(environment)), algorithm_(Make()) {
    update_ = MakeLocalUpdateRule(setup.optimiser, algorithm_->parameter_groups());
    learner_ = std::make_unique<ReplayLearner>(
        setup.replay,
        ReplayLearnerContext{
            .environments = setup.environments, .threads = setup.threads, .seed = setup.seed},
        *algorithm_);
    collector_ = MakeCollector(
        {.environments = setup.environments,
         .horizon = setup.horizon,
         .pin = false,
         .seed = setup.seed},
        environment_, [&] { return algorithm_->MakePolicy(PolicyMode::kSample, setup_.seed); });
  }

  // One slab.
  Metrics Step() {
    const double progress = static_cast<double>(steps_) / static_cast<double>(setup_.steps);
    Metrics metrics = learner_->Consume(collector_->Collect(), *update_, std::min(progress, 1.0));
    algorithm_->Publish();
    steps_ += static_cast<std::int64_t>(setup_.environments) * setup_.horizon;
    return metrics;
  }

  void Train() {
    while (steps_ < setup_.steps) Step();
  }

  // As GreedyReturn.
  double Evaluate(int episodes, int horizon) {
    return GreedyReturn(*algorithm_, environment_, episodes, horizon);
  }

  Implementation& algorithm() { return *algorithm_; }
  const ReplayLearner& learner() const { return *learner_; }

 private:
  std::unique_ptr<Implementation> Make() const {
    Config config;
    Options options("algorithm");
    config.Declare(options);
    for (const auto& [name, text] : setup_.options) options.SetFromText(name, text);
    return std::make_unique<Implementation>(config,
                                            AlgorithmContext{.environment = environment_.spec,
                                                             .network = setup_.network,
                                                             .environments = setup_.environments,
                                                             .seed = setup_.seed,
                                                             .threads = setup_.threads});
  }

  const ReplaySetup setup_;
  const EnvironmentEntry environment_;
  const std::unique_ptr<Implementation> algorithm_;
  std::unique_ptr<UpdateRule> update_;
  std::unique_ptr<ReplayLearner> learner_;
  std::unique_ptr<Collector> collector_;
  std::int64_t steps_ = 0;
};

using ReplayRun = ReplayRunOf<Dqn, DqnConfig>;

}  // namespace menger
