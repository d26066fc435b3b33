#pragma once

// For tests: the smallest tasks that need pixels and numbers at once, or a memory of pixels.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/random.h"
#include "menger/environments/environment.h"
#include "menger/environments/simulator_group.h"

namespace menger::probes {

constexpr int kProbeSide = 36;  // The smallest image that the paper's convolutions can read.
constexpr int kProbePixels = kProbeSide * kProbeSide;

// Half of the image is bright: the left one, or the right one.
inline void DrawSide(std::uint8_t* screen, bool right) {
  std::fill_n(screen, kProbePixels, std::uint8_t{0});
  for (int row = 4; row < kProbeSide - 4; ++row) {
    std::fill_n(screen + row * kProbeSide + (right ? kProbeSide / 2 : 0), kProbeSide / 2,
                std::uint8_t{255});
  }
}

// One step: the image shows a side, a number a sign, a code says nothing. Of four actions one is
// worth 1: twice the side plus the sign. Who reads one part alone gets a half on average, by chance
// it is a quarter.
class SideAndSign final : public EnvironmentGroup {
 public:
  static constexpr int kActions = 4;

  static EnvironmentSpec Spec() {
    return {.name = "ProbeSideAndSign",
            .observation = menger::Spec(
                {LeafSpec::Discrete("code", 3),
                 LeafSpec::Box("screen", DataType::kUint8, {1, kProbeSide, kProbeSide}, {0}, {255}),
                 LeafSpec::Box("sign", DataType::kFloat32, {1}, {-1}, {1})}),
            .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
            .max_episode_steps = 0,
            .reward_threshold = std::numeric_limits<double>::quiet_NaN(),
            .description = "probe"};
  }

  static EnvironmentEntry Entry() {
    return {.spec = Spec(), .make_group = [](const GroupOptions& options) {
              return std::make_unique<SideAndSign>(options);
            }};
  }

  explicit SideAndSign(const GroupOptions& options)
      : first_(options.columns.first_position), right_(options.columns.count) {
    for (int i = 0; i < options.columns.count; ++i) {
      randoms_.push_back(Random::FromSeed(options.seed + options.columns.first_environment + i));
    }
  }

  const EnvironmentSpec& spec() const override { return spec_; }

  void Reset(Slab& slab, int row) override {
    for (std::size_t i = 0; i < randoms_.size(); ++i) Show(slab, row, i);
  }

  void Step(Slab& slab, int row) override {
    for (std::size_t i = 0; i < randoms_.size(); ++i) {
      const int position = first_ + static_cast<int>(i);
      const int action = static_cast<int>(*slab.action<std::int64_t>(0, row, position));
      const bool sign = *slab.observation<float>(2, row, position) > 0;
      slab.reward(row)[position] = action == 2 * right_[i] + (sign ? 1 : 0) ? 1.0 : 0.0;
      slab.terminated(row)[position] = slab.episode_end(row)[position] = 1;
      slab.truncated(row)[position] = 0;
      slab.valid(row)[position] = 1;
      const int slot = slab.final_index(row)[position] = slab.FinalSlot(row, position);
      for (int leaf = 0; leaf < 3; ++leaf) {
        std::copy_n(slab.observation(leaf, row, position), spec_.observation[leaf].bytes(),
                    slab.final_observation(leaf, slot));
      }
      Show(slab, row + 1, i);
    }
  }

  void ResetParked(Slab& /*slab*/, int /*row*/) override {}
  void StepRandomly(Slab& /*slab*/, int /*row*/, std::span<const int> /*steps*/,
                    std::uint64_t /*seed*/) override {}
  void Save(ArchiveWriter& /*archive*/) const override {}
  void Load(ArchiveReader& /*archive*/) override {}

 private:
  void Show(Slab& slab, int row, std::size_t i) {
    const int position = first_ + static_cast<int>(i);
    right_[i] = static_cast<int>(randoms_[i].Integers(0, 2));
    *slab.observation<std::int64_t>(0, row, position) = randoms_[i].Integers(0, 3);
    DrawSide(slab.observation<std::uint8_t>(1, row, position), right_[i] != 0);
    *slab.observation<float>(2, row, position) = randoms_[i].Integers(0, 2) == 0 ? -1.0F : 1.0F;
    slab.is_first(row)[position] = 1;
  }

  const EnvironmentSpec spec_ = Spec();
  const int first_;
  std::vector<int> right_;
  std::vector<Random> randoms_;
};

// The first of four images shows a side, the others nothing. The last action is worth 1 if it names
// the side, else -1: by chance, and without a memory, 0 on average.
struct RememberedSide {
  static constexpr int kSteps = 4;
  static constexpr int kObservationSize = kProbePixels;
  static constexpr int kActions = 2;
  using Number = std::uint8_t;

  static EnvironmentSpec Spec() {
    return {.name = "ProbeRememberedSide",
            .observation = menger::Spec({LeafSpec::Box("screen", DataType::kUint8,
                                                       {1, kProbeSide, kProbeSide}, {0}, {255})}),
            .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
            .max_episode_steps = 0,
            .reward_threshold = std::numeric_limits<double>::quiet_NaN(),
            .description = "probe"};
  }

  void Reset(Random& random, Number* screen) {
    step = 0;
    right = static_cast<int>(random.Integers(0, 2));
    DrawSide(screen, right != 0);
  }

  StepResult Step(int action, Random&, Number* screen) {
    std::fill_n(screen, kProbePixels, Number{0});
    if (++step < kSteps) return {};
    return {.reward = action == right ? 1.0 : -1.0, .terminated = true};
  }

  int step = 0;
  int right = 0;
};

}  // namespace menger::probes
