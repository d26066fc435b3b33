// Learning from replay of images with numbers beside them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "menger/algorithms/pixel_probes.h"
#include "menger/training/replay_fixture.h"

namespace menger {
namespace {

TEST(PixelReplaySlowTest, DqnReadsTheImageAndTheNumberBesideIt) {
#ifdef MENGER_TORCH_LIBRARY_FILE
  setenv("MENGER_TORCH_LIBRARY", MENGER_TORCH_LIBRARY_FILE, /*overwrite=*/1);
#else
  GTEST_SKIP() << "built without libtorch, which computes this";
#endif
  ReplaySetup setup{.environments = 4, .horizon = 8, .steps = 4'096};
  setup.options = {{"learning_rate", "1e-3"},   {"target_every", "25"},
                   {"epsilon_end", "0.05"},     {"double", "true"},
                   {"evaluation_epsilon", "0"}, {"epsilon_fraction", "0.5"}};
  setup.replay = {.capacity = 4'096, .min_size = 256, .batch_size = 64, .training_intensity = 8};
  setup.network.kind = "a3c_cnn";
  setup.network.activation = "relu";
  setup.network.shared_trunk = true;
  setup.optimiser = {.epsilon = 1e-8, .max_gradient_norm = 10};
  for (const std::uint64_t seed : {1, 2}) {
    setup.seed = seed;
    ReplayRun run(setup, probes::SideAndSign::Entry());
    run.Train();
    EXPECT_GE(run.Evaluate(/*episodes=*/50, /*horizon=*/2), 0.95) << "seed " << seed;
  }
}

}  // namespace
}  // namespace menger
