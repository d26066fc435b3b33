#pragma once

// For tests of what becomes of slabs in replay: environments that do everything that rows can say.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "menger/base/random.h"
#include "menger/environments/environment.h"
#include "menger/tensor/slab.h"

namespace menger::random_episodes {

inline constexpr int kEnvironments = 3;
inline constexpr int kHorizon = 7;
inline constexpr int kActions = 3;

// With an image of one pixel, which says the last byte of what the numbers say, or without.
inline EnvironmentSpec MaskedSpec(bool image) {
  std::vector<LeafSpec> leaves = {LeafSpec::Box("observation", DataType::kFloat32, {2}, {0}, {1e9}),
                                  LeafSpec::Mask(std::string(kActionMask), kActions)};
  if (image) leaves.push_back(LeafSpec::Box("image", DataType::kUint8, {1, 1, 1}, {0}, {255}));
  return {.name = "Random",
          .observation = Spec(leaves),
          .action = Spec({LeafSpec::Discrete("action", kActions)})};
}

inline std::uint8_t PixelOf(float observation) {
  return static_cast<std::uint8_t>(static_cast<int>(observation) % 256);
}

// One row of one environment as a slab shows it, kept in plain sight.
struct Row {
  float observation = 0;
  std::uint8_t mask = 0;  // Of action 0.
  bool is_first = false;
  std::int64_t action = 0;
  double reward = 0;
  bool terminated = false, truncated = false, valid = true;
  float final_observation = 0;
  std::uint8_t final_mask = 0;
  float state = 0;  // Of the policy, in slabs that have one.
};

// Environments that end, are cut, fail, stand parked and are made anew at random.
class RandomEnvironments {
 public:
  explicit RandomEnvironments(std::uint64_t seed)
      : random_(Random::FromSeed(seed)), rows_(kEnvironments) {}

  const std::vector<Row>& rows(int environment) const { return rows_[environment]; }

  void Fill(Slab& slab) {
    const bool made_anew = random_.Integers(0, 6) == 0;
    for (int environment = 0; environment < kEnvironments; ++environment) {
      const int position = slab.columns().PositionOf(environment);
      for (int row = 0; row < kHorizon; ++row) {
        rows_[environment].push_back(Next(environment, row == 0 && made_anew));
        Show(rows_[environment].back(), environment, slab, row, position);
      }
    }
  }

 private:
  Row Next(int environment, bool made_anew) {
    const std::vector<Row>& before = rows_[environment];
    const bool parked = !before.empty() && !before.back().valid && !before.back().truncated;
    const bool ended =
        before.empty() || parked || before.back().terminated || before.back().truncated;
    Row row{.observation = ++counter_,
            .mask = Flag(2),
            .is_first = ended || made_anew,
            .action = random_.Integers(0, kActions),
            .reward = random_.Uniform(-2, 2),
            .terminated = Flag(9) != 0,
            .truncated = Flag(9) != 0,
            .final_observation = ++counter_,
            .final_mask = Flag(2),
            .state = ++counter_};
    if (ended && Flag(4) != 0) {  // Parked: it shows something, and nothing counts.
      row.valid = row.terminated = row.truncated = false;
    } else if (Flag(12) != 0) {  // It failed.
      row.valid = row.terminated = false;
      row.truncated = true;
    }
    return row;
  }

  std::uint8_t Flag(int one_in) { return random_.Integers(0, one_in) == 0 ? 1 : 0; }

  static void Show(const Row& from, int environment, Slab& slab, int row, int position) {
    float* const observation = slab.observation<float>(0, row, position);
    observation[0] = static_cast<float>(environment);
    observation[1] = from.observation;
    slab.observation<std::uint8_t>(1, row, position)[0] = from.mask;
    const bool image = slab.spec().observation.size() > 2;
    if (image) *slab.observation<std::uint8_t>(2, row, position) = PixelOf(from.observation);
    if (slab.spec().state.size() > 0) *slab.state<float>(0, row, position) = from.state;
    slab.is_first(row)[position] = from.is_first;
    *slab.action<std::int64_t>(0, row, position) = from.action;
    slab.reward(row)[position] = from.reward;
    slab.terminated(row)[position] = from.terminated;
    slab.truncated(row)[position] = from.truncated;
    slab.valid(row)[position] = from.valid;
    slab.version(row)[position] = 1;
    slab.final_index(row)[position] = -1;
    if (!from.terminated && !from.truncated) return;
    const int slot = slab.FinalSlot(row, position);
    slab.final_index(row)[position] = slot;
    float* const last = slab.final_observation<float>(0, slot);
    last[0] = static_cast<float>(environment);
    last[1] = from.final_observation;
    slab.final_observation<std::uint8_t>(1, slot)[0] = from.final_mask;
    if (image) *slab.final_observation<std::uint8_t>(2, slot) = PixelOf(from.final_observation);
  }

  Random random_;
  std::vector<std::vector<Row>> rows_;
  float counter_ = 0;
};

}  // namespace menger::random_episodes
