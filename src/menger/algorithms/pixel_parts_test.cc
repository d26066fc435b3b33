// Learning from an image with numbers beside it, and from images that must be remembered.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "menger/algorithms/pixel_probes.h"
#include "menger/algorithms/probe_environments.h"
#include "menger/algorithms/training_fixture.h"

namespace menger {
namespace {

class PixelPartsSlowTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef MENGER_TORCH_LIBRARY_FILE
    setenv("MENGER_TORCH_LIBRARY", MENGER_TORCH_LIBRARY_FILE, /*overwrite=*/1);
#else
    GTEST_SKIP() << "built without libtorch, which computes this";
#endif
  }

  static TrainingSetup Setup(const std::string& kind, std::int64_t steps, std::uint64_t seed) {
    TrainingSetup setup{.environments = 16, .horizon = 32, .steps = steps, .seed = seed};
    setup.options = {{"epochs", "4"}, {"minibatch_size", "128"}, {"learning_rate", "1e-3"}};
    setup.network.kind = kind;
    setup.network.activation = "relu";
    setup.network.shared_trunk = true;
    setup.network.lstm_size = 32;
    return setup;
  }
};

TEST_F(PixelPartsSlowTest, PpoReadsTheImageAndTheNumberBesideIt) {
  for (const std::uint64_t seed : {1, 2}) {
    TrainedAlgorithm trained(Setup("a3c_cnn", 6'144, seed), probes::SideAndSign::Entry());
    EXPECT_GE(trained.Evaluate(/*episodes=*/50, /*horizon=*/2), 0.95) << "seed " << seed;
  }
}

TEST_F(PixelPartsSlowTest, A2cReadsTheImageAndTheNumberBesideIt) {
  TrainingSetup setup = Setup("nature_cnn", 8'192, /*seed=*/1);
  setup.algorithm = "a2c";
  setup.options = {{"learning_rate", "1e-3"}};
  setup.horizon = 8;
  setup.transforms.apply = {"normalise_observation"};
  TrainedAlgorithm trained(setup, probes::SideAndSign::Entry());
  EXPECT_GE(trained.Evaluate(/*episodes=*/50, /*horizon=*/2), 0.95);
}

TEST_F(PixelPartsSlowTest, ConvolutionsWithAnLstmRememberWhatOnlyTheFirstFrameShowed) {
  for (const std::uint64_t seed : {1, 2}) {
    TrainedAlgorithm trained(Setup("a3c_cnn_lstm", 16'384, seed),
                             probes::Entry<probes::RememberedSide>());
    EXPECT_GE(trained.Evaluate(/*episodes=*/50, probes::RememberedSide::kSteps), 0.95)
        << "seed " << seed;
  }
}

// What makes the probe one of memory: the same convolutions without it stay at chance.
TEST_F(PixelPartsSlowTest, ConvolutionsAloneDoNotRemember) {
  TrainedAlgorithm trained(Setup("a3c_cnn", 8'192, /*seed=*/1),
                           probes::Entry<probes::RememberedSide>());
  EXPECT_LE(trained.Evaluate(/*episodes=*/50, probes::RememberedSide::kSteps), 0.5);
}

}  // namespace
}  // namespace menger
