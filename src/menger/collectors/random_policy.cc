#include "menger/collectors/random_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint32_t kStream = 0x72706f6c;  // "rpol"

std::int64_t ChoicesOf(const LeafSpec& leaf) {
  if (leaf.space != Space::kDiscrete && leaf.space != Space::kMultiDiscrete) return 0;
  return std::accumulate(leaf.counts.begin(), leaf.counts.end(), std::int64_t{0});
}

double BoundAt(const std::vector<double>& bounds, std::int64_t element, double otherwise) {
  if (bounds.empty()) return otherwise;
  return bounds.size() == 1 ? bounds[0] : bounds[static_cast<std::size_t>(element)];
}

// Writes `value` as the leaf's type.
void Store(DataType type, std::byte* leaf, std::int64_t element, double value) {
  switch (type) {
    case DataType::kUint8:
      reinterpret_cast<std::uint8_t*>(leaf)[element] = static_cast<std::uint8_t>(value);
      return;
    case DataType::kInt32:
      reinterpret_cast<std::int32_t*>(leaf)[element] = static_cast<std::int32_t>(value);
      return;
    case DataType::kInt64:
      reinterpret_cast<std::int64_t*>(leaf)[element] = static_cast<std::int64_t>(value);
      return;
    case DataType::kFloat32:
      reinterpret_cast<float*>(leaf)[element] = static_cast<float>(value);
      return;
    case DataType::kFloat64:
      reinterpret_cast<double*>(leaf)[element] = value;
      return;
  }
}

bool IsFloat(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat64; }

}  // namespace

// The words drawn for one environment and step, four at a time.
class RandomPolicy::Words {
 public:
  Words(const CounterRandom& random, int environment, std::int64_t step)
      : random_(random),
        environment_(static_cast<std::uint64_t>(environment)),
        step_(static_cast<std::uint64_t>(step)) {}

  std::uint32_t Next() {
    if (used_ == 4) {
      words_ = random_.Draw(environment_, step_, block_++);
      used_ = 0;
    }
    return words_[used_++];
  }
  // [0, 1) in steps of 2^-32.
  double Uniform() { return Next() * 0x1p-32; }

  std::uint64_t environment() const { return environment_; }
  std::uint64_t step() const { return step_; }

 private:
  const CounterRandom& random_;
  const std::uint64_t environment_;
  const std::uint64_t step_;
  std::uint32_t block_ = 0;
  std::uint32_t used_ = 4;
  std::array<std::uint32_t, 4> words_{};
};

RandomPolicy::RandomPolicy(const Spec& observation, const Spec& action, std::uint64_t seed)
    : action_(action), mask_leaf_(observation.Find(kActionMask)), random_(seed, kStream) {
  std::int64_t choices = 0;
  int choosing_leaves = 0;
  for (const LeafSpec& leaf : action.leaves()) {
    if (leaf.space == Space::kLength) {
      throw InvalidArgument("action leaf '{}' is a length; random actions have fixed sizes",
                            leaf.name);
    }
    if (ChoicesOf(leaf) == 0) continue;
    choices = ChoicesOf(leaf);
    ++choosing_leaves;
  }
  if (mask_leaf_ >= 0 && (choosing_leaves != 1 || observation[mask_leaf_].elements() != choices)) {
    throw InvalidArgument(
        "observation leaf '{}' has {} flags; it needs one for each choice of the only discrete "
        "action leaf, which are {}",
        kActionMask, observation[mask_leaf_].elements(), choosing_leaves == 1 ? choices : 0);
  }
}

void RandomPolicy::Act(std::span<const ActSlice> slices) {
  for (const ActSlice& slice : slices) ActOn(slice);
}

void RandomPolicy::ActOn(const ActSlice& slice) const {
  Slab& slab = *slice.slab;
  const int row = slice.row;
  const PositionRange positions = slice.positions;
  for (int position = positions.first; position < positions.first + positions.count; ++position) {
    const int environment = slab.columns().EnvironmentAt(position);
    if (environment < 0) continue;
    Words words(random_, environment, slice.step());
    const auto* mask =
        mask_leaf_ < 0 ? nullptr : slab.observation<std::uint8_t>(mask_leaf_, row, position);
    for (int leaf = 0; leaf < action_.size(); ++leaf) {
      SampleLeaf(slab, leaf, row, position, mask, words);
    }
    slab.version(row)[position] = 0;
  }
}

void RandomPolicy::SampleLeaf(Slab& slab, int leaf, int row, int position, const std::uint8_t* mask,
                              Words& words) const {
  const LeafSpec& spec = action_[leaf];
  auto* out = slab.action<std::byte>(leaf, row, position);
  for (std::int64_t i = 0; i < spec.elements(); ++i) {
    if (spec.space == Space::kMask) {
      Store(spec.dtype, out, i, words.Next() >> 31);
    } else if (spec.space != Space::kBox) {
      const std::int64_t count = spec.counts[static_cast<std::size_t>(i)];
      Store(spec.dtype, out, i, static_cast<double>(Choose(count, mask, words)));
      if (mask != nullptr) mask += count;
    } else {
      const double low = BoundAt(spec.low, i, -INFINITY);
      const double high = BoundAt(spec.high, i, INFINITY);
      double value = 0;
      if (std::isfinite(low) && std::isfinite(high)) {
        value = IsFloat(spec.dtype) ? low + (high - low) * words.Uniform()
                                    : low + std::floor((high - low + 1) * words.Uniform());
      } else if (std::isfinite(low) || std::isfinite(high)) {
        const double distance = -std::log1p(-words.Uniform());
        value = std::isfinite(low) ? low + distance : high - distance;
      } else {
        const std::uint32_t first = words.Next();
        value = CounterRandom::Normals(first, words.Next()).first;
      }
      Store(spec.dtype, out, i, value);
    }
  }
}

std::int64_t RandomPolicy::Choose(std::int64_t count, const std::uint8_t* mask, Words& words) {
  const auto pick = [&words](std::int64_t choices) {
    return static_cast<std::int64_t>((words.Next() * static_cast<std::uint64_t>(choices)) >> 32);
  };
  if (mask == nullptr) return pick(count);
  const std::int64_t allowed =
      std::count_if(mask, mask + count, [](std::uint8_t flag) { return flag != 0; });
  if (allowed == 0) {
    throw InvalidArgument(
        "environment {} allows no action at step {} of the run: its action_mask is all 0",
        words.environment(), words.step());
  }
  std::int64_t left = pick(allowed);
  for (std::int64_t i = 0;; ++i) {
    if (mask[i] != 0 && left-- == 0) return i;
  }
}

PolicyFactory RandomPolicies(const EnvironmentSpec& environment, std::uint64_t seed) {
  return [observation = environment.observation, action = environment.action, seed] {
    return std::make_unique<RandomPolicy>(observation, action, seed);
  };
}

}  // namespace menger
