// Learning through convolutions, in both precisions: rounding to bf16 must not change what is
// learned or how fast.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "menger/algorithms/pixel_catch.h"
#include "menger/algorithms/probe_environments.h"
#include "menger/algorithms/training_fixture.h"

namespace menger {
namespace {

// Processors that cannot multiply bf16 take ten times as long for it: there are fewer of those.
struct Trials {
  std::string precision;
  std::uint64_t seeds;
};

TrainingSetup CatchFromPixels(const std::string& precision, std::uint64_t seed) {
  TrainingSetup setup{.environments = 16, .horizon = 32, .steps = 20'480, .seed = seed};
  setup.options = {{"epochs", "4"}, {"minibatch_size", "128"}, {"learning_rate", "1e-3"},
                   {"clip", "0.1"}, {"gae_lambda", "0.95"},    {"entropy_coefficient", "0.01"}};
  setup.network.kind = "a3c_cnn";
  setup.network.activation = "relu";
  setup.network.shared_trunk = true;
  setup.precision = precision;
  return setup;
}

// Steps until the episodes of a slab returned .9 on average; all, if they never did.
double StepsToCatch(const std::string& precision, std::uint64_t seed) {
  const TrainingSetup setup = CatchFromPixels(precision, seed);
  TrainedAlgorithm trained(setup, probes::Entry<PixelCatch>());
  EXPECT_GE(trained.Evaluate(/*episodes=*/50, /*horizon=*/PixelCatch::kCells), 0.95)
      << precision << ", seed " << seed;
  const auto caught = std::ranges::find_if(trained.slab_returns(),
                                           [](double mean_return) { return mean_return >= 0.9; });
  const auto slabs = caught - trained.slab_returns().begin();
  return static_cast<double>((slabs + 1) * setup.environments * setup.horizon);
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double SquaredDeviations(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

TEST(PixelLearningSlowTest, Bf16LearnsWhatFp32LearnsAsFast) {
#ifdef MENGER_TORCH_LIBRARY_FILE
  setenv("MENGER_TORCH_LIBRARY", MENGER_TORCH_LIBRARY_FILE, /*overwrite=*/1);
#else
  GTEST_SKIP() << "built without libtorch, which computes in fp32";
#endif
  const Trials trials[2] = {{"fp32", 10}, {"bf16", 4}};
  std::vector<double> steps[2];
  for (int i = 0; i < 2; ++i) {
    for (std::uint64_t seed = 1; seed <= trials[i].seeds; ++seed) {
      steps[i].push_back(StepsToCatch(trials[i].precision, seed));
    }
    std::ranges::sort(steps[i]);
    std::printf("%s: steps to .9, %zu seeds: mean %.0f, median %.0f (%.0f to %.0f)\n",
                trials[i].precision.c_str(), steps[i].size(), Mean(steps[i]),
                steps[i][steps[i].size() / 2], steps[i].front(), steps[i].back());
  }
  const auto freedom = static_cast<double>(steps[0].size() + steps[1].size() - 2);
  // Student's t, since rounding is to change nothing, the variance included: 3.93 is passed by two
  // of a thousand pairs of equal distributions at these 12 degrees of freedom.
  const double variance = (SquaredDeviations(steps[0]) + SquaredDeviations(steps[1])) / freedom;
  const double error = std::sqrt(variance / static_cast<double>(trials[0].seeds) +
                                 variance / static_cast<double>(trials[1].seeds));
  EXPECT_LE(std::abs(Mean(steps[0]) - Mean(steps[1])), 3.93 * error);
}

}  // namespace
}  // namespace menger
