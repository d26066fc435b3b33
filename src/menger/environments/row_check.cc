#include "menger/environments/row_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace menger {
namespace {

// Whether the bits of all values, without their signs, are less than those of infinity. In blocks
// of a constant size, which the compiler turns into vector instructions.
template <typename Bits, typename T>
bool AllBelow(const T* values, std::size_t count, Bits magnitude, Bits infinity) {
  constexpr std::size_t kBlock = 16;
  const auto is_bad = [&](std::size_t i) {
    return static_cast<Bits>((std::bit_cast<Bits>(values[i]) & magnitude) >= infinity ? 1 : 0);
  };
  Bits bad = 0;
  std::size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k) bad |= is_bad(i + k);
  }
  for (; i < count; ++i) bad |= is_bad(i);
  return bad == 0;
}

std::string Element(const LeafSpec& leaf, std::int64_t element) {
  if (leaf.elements() == 1) return fmt::format("its '{}'", leaf.name);
  return fmt::format("element {} of its '{}'", element, leaf.name);
}

// The first element of which `is_good` says no; `Say` is given its number in the leaf and itself.
template <typename T, typename IsGood, typename Say>
std::optional<RowFault> Find(const LeafSpec& leaf, const std::byte* items, int count,
                             IsGood is_good, Say say) {
  const auto* const values = reinterpret_cast<const T*>(items);
  const std::int64_t elements = leaf.elements();
  for (std::int64_t k = 0; k < count * elements; ++k) {
    const std::int64_t element = k % elements;
    if (is_good(element, values[k])) continue;
    return RowFault{.column = static_cast<int>(k / elements), .why = say(element, values[k])};
  }
  return std::nullopt;
}

template <typename T>
std::optional<RowFault> NumberFault(const LeafSpec& leaf, const std::byte* items, int count) {
  const auto all = static_cast<std::size_t>(count * leaf.elements());
  if (AllFinite(reinterpret_cast<const T*>(items), all)) return std::nullopt;
  return Find<T>(
      leaf, items, count, [](std::int64_t, T value) { return std::isfinite(value); },
      [&leaf](std::int64_t element, T value) {
        return fmt::format("{} is {}; it must be a finite number", Element(leaf, element), value);
      });
}

std::optional<RowFault> CodeFault(const LeafSpec& leaf, const std::byte* items, int count) {
  const auto codes = [&leaf](std::int64_t element) {
    return leaf.counts[leaf.counts.size() == 1 ? 0 : static_cast<std::size_t>(element)];
  };
  return Find<std::int64_t>(
      leaf, items, count,
      [codes](std::int64_t element, std::int64_t value) {
        return static_cast<std::uint64_t>(value) < static_cast<std::uint64_t>(codes(element));
      },
      [&leaf, codes](std::int64_t element, std::int64_t value) {
        return fmt::format("{} has the code {}, counted from the space's start; there are 0..{}",
                           Element(leaf, element), value, codes(element) - 1);
      });
}

std::optional<RowFault> FlagFault(const LeafSpec& leaf, const std::byte* items, int count) {
  return Find<std::uint8_t>(
      leaf, items, count, [](std::int64_t, std::uint8_t value) { return value <= 1; },
      [&leaf](std::int64_t element, std::uint8_t value) {
        return fmt::format("{} is {}; a flag is 0 or 1", Element(leaf, element), value);
      });
}

}  // namespace

bool AllFiniteOfMany(const float* values, std::size_t count) {
  return AllBelow<std::uint32_t>(values, count, 0x7FFFFFFFU, 0x7F800000U);
}

bool AllFiniteOfMany(const double* values, std::size_t count) {
  return AllBelow<std::uint64_t>(values, count, 0x7FFFFFFFFFFFFFFFU, 0x7FF0000000000000U);
}

std::string RewardFault(double reward) {
  return fmt::format("its reward is {}; it must be a finite number", reward);
}

std::optional<RowFault> FaultOf(const LeafSpec& leaf, const std::byte* items, int count) {
  switch (leaf.space) {
    case Space::kDiscrete:
    case Space::kMultiDiscrete:
      return CodeFault(leaf, items, count);
    case Space::kMask:
      return FlagFault(leaf, items, count);
    case Space::kBox:
    case Space::kLength:
      break;
  }
  if (leaf.dtype == DataType::kFloat32) return NumberFault<float>(leaf, items, count);
  if (leaf.dtype == DataType::kFloat64) return NumberFault<double>(leaf, items, count);
  return std::nullopt;
}

std::optional<RowFault> RowCheck::OfObservations(const Slab& slab, int row,
                                                 const ColumnBlock& columns) const {
  for (int leaf = 0; leaf < spec_.size(); ++leaf) {
    auto fault =
        FaultOf(spec_[leaf], slab.observation(leaf, row, columns.first_position), columns.count);
    if (fault) return fault;
  }
  return std::nullopt;
}

std::optional<RowFault> RowCheck::OfFinal(const Slab& slab, int row,
                                          const ColumnBlock& columns) const {
  const std::int32_t* const slots = slab.final_index(row) + columns.first_position;
  for (int i = 0; i < columns.count; ++i) {
    if (slots[i] < 0) continue;
    for (int leaf = 0; leaf < spec_.size(); ++leaf) {
      const auto fault = FaultOf(spec_[leaf], slab.final_observation(leaf, slots[i]), 1);
      if (fault) return RowFault{.column = i, .why = fault->why + " (its final observation)"};
    }
  }
  return std::nullopt;
}

std::optional<RowFault> RowCheck::OfStep(const Slab& slab, int row,
                                         const ColumnBlock& columns) const {
  const double* const rewards = slab.reward(row) + columns.first_position;
  if (!AllFinite(rewards, static_cast<std::size_t>(columns.count))) {
    const auto* const bad = std::find_if_not(rewards, rewards + columns.count,
                                             [](double r) { return std::isfinite(r); });
    return RowFault{.column = static_cast<int>(bad - rewards), .why = RewardFault(*bad)};
  }
  if (auto fault = OfFinal(slab, row, columns)) return fault;
  return OfObservations(slab, row + 1, columns);
}

}  // namespace menger
