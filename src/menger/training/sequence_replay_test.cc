// Learning with a memory from sequences of replay.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/pixel_probes.h"
#include "menger/algorithms/probe_environments.h"
#include "menger/algorithms/r2d2.h"
#include "menger/environments/catalog.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/local_replay.h"
#include "menger/training/replay_fixture.h"

namespace menger {
namespace {

using SequenceRun = ReplayRunOf<R2d2, R2d2Config>;

double NumberOf(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

// MountainCar's episodes are 200 steps, so that all windows but each episode's last are whole.
TEST(SequenceReplayTest, SequencesCountForTheStepsThatTheyTeachAndAdd) {
  ReplaySetup setup{.environments = 2, .horizon = 8, .steps = 6'000};
  setup.options = {{"sequence_length", "10"}, {"sequence_overlap", "5"}, {"n_step", "1"}};
  setup.replay = {.capacity = 500, .min_size = 100, .batch_size = 4, .training_intensity = 7.5};
  setup.network.hidden = {8};
  SequenceRun run(setup, NativeEnvironments().Find("MountainCar-v0"));
  std::int64_t samples = 0;
  std::int64_t updates = 0;
  double items = 0;
  for (std::int64_t steps = 16; steps <= setup.steps; steps += 16) {
    const Metrics metrics = run.Step();
    items = NumberOf(metrics, "replay_items");
    if (items >= 20) samples += 16;  // 100 steps, five of which are new in each.
    updates += static_cast<std::int64_t>(NumberOf(metrics, "updates"));
    ASSERT_EQ(updates, samples * 15 / (2 * 4 * 10)) << "after " << steps;
  }
  EXPECT_EQ(items, 100);
  EXPECT_GT(samples, 5'500);
}

TEST(SequenceReplayTest, TheSameSeedGivesTheSameBitsForAnyNumberOfThreads) {
  std::vector<std::vector<float>> results;
  for (const auto& [seed, threads] : {std::pair{4, 1}, std::pair{4, 3}, std::pair{5, 1}}) {
    ReplaySetup setup{.environments = 3, .horizon = 5, .steps = 2'000};
    setup.options = {{"sequence_length", "6"}, {"sequence_overlap", "2"}, {"burn_in", "3"}};
    setup.replay = {.capacity = 500,
                    .min_size = 100,
                    .batch_size = 8,
                    .training_intensity = 8,
                    .sampler = "prioritised",
                    .chunk_steps = 16};
    setup.network.hidden = {8};
    setup.seed = seed;
    setup.threads = threads;
    SequenceRun run(setup, NativeEnvironments().Find("CartPole-v1"));
    run.Train();
    const auto blob = run.algorithm().publication().Latest();
    results.emplace_back(blob->values().begin(), blob->values().end());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], results[2]);
}

class MemorySlowTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef MENGER_TORCH_LIBRARY_FILE
    setenv("MENGER_TORCH_LIBRARY", MENGER_TORCH_LIBRARY_FILE, /*overwrite=*/1);
#else
    GTEST_SKIP() << "built without libtorch, which computes this";
#endif
  }
};

using Shown = std::array<float, 2>;

// States by what was seen when a network came to it with them, with parameters that stay: from each
// episode's start on, one observation after the other.
std::map<Shown, std::vector<float>> StatesOf(const Network& like, const Slab& slab) {
  std::map<Shown, std::vector<float>> states;
  const auto network = like.Clone(1);
  for (int environment = 0; environment < slab.columns().columns(); ++environment) {
    const int position = slab.columns().PositionOf(environment);
    std::vector<float> state(network->state_width());
    for (int row = 0; row < slab.horizon(); ++row) {
      if (slab.is_first(row)[position] != 0) state.assign(state.size(), 0.0F);
      const auto* const seen = slab.observation<float>(0, row, position);
      states[{seen[0], seen[1]}] = state;
      network->Infer({.observations = seen, .rows = 1, .state = state.data()});
      state.assign(network->next_state(), network->next_state() + state.size());
    }
  }
  return states;
}

TEST_F(MemorySlowTest, StoredStatesAreThoseThatTheNetworkComesToFromTheEpisodesStart) {
  const EnvironmentEntry environment = NativeEnvironments().Find("MaskedCartPole-v1");
  AlgorithmContext context{.environment = environment.spec, .environments = 3, .seed = 4};
  context.network.kind = "lstm";
  context.network.hidden = {8};
  context.network.lstm_size = 5;
  R2d2 r2d2({.sequences = {.length = 6, .overlap = 3, .burn_in = 4, .n_step = 2}}, context);
  const auto collector =
      MakeCollector({.environments = 3, .horizon = 150, .pin = false, .seed = 1}, environment,
                    [&] { return r2d2.MakePolicy(PolicyMode::kSample, 2); });
  ReplayStore store({.tables = {{.name = "replay",
                                 .items = r2d2.items(),
                                 .rate_limiter = RateLimiterOptions::MinSize(1),
                                 .items_max = 1'000}}});
  LocalReplay replay(store);
  const auto writer = r2d2.MakeWriter({.replay = replay, .environments = 3});
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  const Slab& slab = collector->Collect();
  writer->Write(slab, deadline);
  const auto states = StatesOf(r2d2.network(), slab);

  Sample sample;
  BatchGatherer gatherer(r2d2.items(), 256, 1);
  store.table(0).SampleInto({.count = 256, .deadline = deadline}, sample);
  const auto columns = gatherer.Gather(sample);
  const int width = r2d2.network().state_width();
  int carried = 0;
  for (int item = 0; item < 256; ++item) {
    const BatchColumn& seen = columns[SequenceFormat::kObservation];
    Shown first;
    std::memcpy(first.data(), seen.data + item * seen.item_bytes, sizeof(first));
    ASSERT_TRUE(states.contains(first));
    const auto* const stored =
        reinterpret_cast<const float*>(columns[r2d2.format().state_column()].data) + item * width;
    for (int i = 0; i < width; ++i) {
      EXPECT_NEAR(stored[i], states.at(first)[i], 1e-5) << "item " << item;
      carried += stored[i] != 0.0F ? 1 : 0;
    }
  }
  EXPECT_GT(carried, 256);
}

// Three steps, the sign to act on shown at the first alone: reward 1 for it at the third, else -1.
struct Recall {
  static constexpr int kObservationSize = 1;
  static constexpr int kActions = 2;
  static EnvironmentSpec Spec() { return probes::SpecNamed("ProbeRecall", kActions); }
  void Reset(Random& random, float* observation) {
    step = 0;
    *observation = sign = random.Integers(0, 2) == 0 ? -1.0F : 1.0F;
  }
  StepResult Step(int action, Random&, float* observation) {
    *observation = 0;
    if (++step < 3) return {};
    return {.reward = (action == 1) == (sign > 0) ? 1.0 : -1.0, .terminated = true};
  }
  float sign = 0;
  int step = 0;
};

TEST_F(MemorySlowTest, WhatWasShownBeforeIsRememberedWhereTheNetworkCan) {
  for (const char* const kind : {"lstm", "mlp"}) {
    ReplaySetup setup{.environments = 4, .horizon = 8, .steps = 6'000, .seed = 2};
    setup.options = {
        {"sequence_length", "4"}, {"sequence_overlap", "2"}, {"burn_in", "2"},
        {"n_step", "2"},          {"discount", "0.9"},       {"learning_rate", "3e-3"},
        {"target_every", "50"},   {"epsilon_spread", "0"},   {"evaluation_epsilon", "0"}};
    setup.replay = {.capacity = 6'000,
                    .min_size = 200,
                    .batch_size = 32,
                    .training_intensity = 16,
                    .sampler = "prioritised"};
    setup.network.kind = kind;
    setup.network.hidden = {16};
    setup.network.lstm_size = 16;
    SequenceRun run(setup, probes::Entry<Recall>());
    run.Train();
    const double reached = run.Evaluate(/*episodes=*/50, /*horizon=*/3);
    if (setup.network.kind == "lstm") {
      EXPECT_EQ(reached, 1.0);
    } else {
      EXPECT_LT(reached, 0.6);  // By chance: 0, four standard deviations.
    }
  }
}

// What convolutions show an LSTM, alone and with a number beside each image.
TEST_F(MemorySlowTest, ImagesAreLearnedFromInSequences) {
  for (const bool numbers : {false, true}) {
    ReplaySetup setup{.environments = 4, .horizon = 8, .steps = 6'144, .seed = 2};
    setup.options = {
        {"sequence_length", "4"}, {"sequence_overlap", "2"}, {"burn_in", "2"},
        {"n_step", "2"},          {"discount", "0.9"},       {"learning_rate", "1e-3"},
        {"target_every", "25"},   {"epsilon_spread", "0"},   {"evaluation_epsilon", "0"}};
    setup.replay = {.capacity = 6'144, .min_size = 256, .batch_size = 32, .training_intensity = 8};
    setup.network.kind = "a3c_cnn_lstm";
    setup.network.activation = "relu";
    setup.network.lstm_size = 32;
    setup.optimiser = {.epsilon = 1e-8, .max_gradient_norm = 10};
    SequenceRun run(
        setup, numbers ? probes::SideAndSign::Entry() : probes::Entry<probes::RememberedSide>());
    run.Train();
    EXPECT_GE(run.Evaluate(/*episodes=*/50, /*horizon=*/4), 0.95) << numbers;
  }
}

}  // namespace
}  // namespace menger
