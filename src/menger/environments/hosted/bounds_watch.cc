#include "menger/environments/hosted/bounds_watch.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "menger/base/log.h"

namespace menger {
namespace {

constexpr std::int64_t kReset = -1;

// What a number and its bounds are compared as: whole numbers as well as can be.
template <typename Number>
using Compared = std::conditional_t<std::is_same_v<Number, float>, float, double>;

template <typename Number>
bool AdmitsAll(const LeafSpec& leaf) {
  using Limits = std::numeric_limits<Number>;
  constexpr bool kFloats = Limits::has_infinity;
  const auto lowest = static_cast<double>(kFloats ? -Limits::infinity() : Limits::lowest());
  const auto highest = static_cast<double>(kFloats ? Limits::infinity() : Limits::max());
  return std::ranges::all_of(leaf.low, [&](double low) { return low <= lowest; }) &&
         std::ranges::all_of(leaf.high, [&](double high) { return high >= highest; });
}

bool CanBeLeft(const LeafSpec& leaf) {
  if (leaf.space != Space::kBox || leaf.low.empty() || leaf.high.empty()) return false;
  switch (leaf.dtype) {
    case DataType::kUint8:
      return !AdmitsAll<std::uint8_t>(leaf);
    case DataType::kInt32:
      return !AdmitsAll<std::int32_t>(leaf);
    case DataType::kInt64:
      return !AdmitsAll<std::int64_t>(leaf);
    case DataType::kFloat32:
      return !AdmitsAll<float>(leaf);
    case DataType::kFloat64:
      return !AdmitsAll<double>(leaf);
  }
  return false;
}

// In blocks of a constant size, which the compiler turns into vector instructions.
template <typename Number>
bool AnyOutside(const Number* values, std::size_t count, Compared<Number> low,
                Compared<Number> high) {
  constexpr std::size_t kBlock = 16;
  const auto outside = [&](std::size_t i) {
    const auto value = static_cast<Compared<Number>>(values[i]);
    return static_cast<unsigned>(value < low) | static_cast<unsigned>(value > high);
  };
  unsigned any = 0;
  std::size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k) any |= outside(i + k);
  }
  for (; i < count; ++i) any |= outside(i);
  return any != 0;
}

double Bound(const std::vector<double>& bounds, std::int64_t element) {
  return bounds[bounds.size() == 1 ? 0 : static_cast<std::size_t>(element)];
}

}  // namespace

BoundsWatch::BoundsWatch(const EnvironmentSpec& spec) : name_(spec.name) {
  for (int i = 0; i < spec.observation.size(); ++i) {
    if (!CanBeLeft(spec.observation[i])) continue;
    Leaf& leaf = leaves_.emplace_back();
    leaf.index = i;
    leaf.spec = spec.observation[i];
  }
}

template <typename Number>
void BoundsWatch::LookAtNumbers(Leaf& leaf, const Values& values) {
  const auto* const numbers = reinterpret_cast<const Number*>(values.items);
  const LeafSpec& spec = leaf.spec;
  const std::int64_t elements = spec.elements();
  const std::int64_t all = values.count * elements;
  if (spec.low.size() == 1 && spec.high.size() == 1 &&
      !AnyOutside(numbers, static_cast<std::size_t>(all),
                  static_cast<Compared<Number>>(spec.low[0]),
                  static_cast<Compared<Number>>(spec.high[0]))) {
    return;
  }
  for (std::int64_t i = 0; i < all; ++i) {
    const std::int64_t element = i % elements;
    const auto value = static_cast<Compared<Number>>(numbers[i]);
    const auto low = static_cast<Compared<Number>>(Bound(spec.low, element));
    const auto high = static_cast<Compared<Number>>(Bound(spec.high, element));
    if (!(value < low || value > high)) continue;
    if (leaf.told.exchange(true)) return;
    LogWarning(
        "{} environment {}, {}: {}its '{}' is {}, outside the bounds that its observation space "
        "declares, {} to {}; it is taken as it is, and no more is said of this",
        name_, values.environment + i / elements,
        values.step == kReset ? "reset" : fmt::format("step {}", values.step),
        elements == 1 ? "" : fmt::format("element {} of ", element), spec.name, numbers[i], low,
        high);
    return;
  }
}

void BoundsWatch::LookAt(Leaf& leaf, const Values& values) {
  switch (leaf.spec.dtype) {
    case DataType::kUint8:
      return LookAtNumbers<std::uint8_t>(leaf, values);
    case DataType::kInt32:
      return LookAtNumbers<std::int32_t>(leaf, values);
    case DataType::kInt64:
      return LookAtNumbers<std::int64_t>(leaf, values);
    case DataType::kFloat32:
      return LookAtNumbers<float>(leaf, values);
    case DataType::kFloat64:
      return LookAtNumbers<double>(leaf, values);
  }
}

void BoundsWatch::LookAtReset(const Slab& slab, int row, const ColumnBlock& columns) {
  for (Leaf& leaf : leaves_) {
    if (leaf.told.load(std::memory_order_relaxed)) continue;
    LookAt(leaf, {.items = slab.observation(leaf.index, row, columns.first_position),
                  .environment = columns.first_environment,
                  .count = columns.count,
                  .step = kReset});
  }
}

void BoundsWatch::LookAtStep(const Slab& slab, int row, const ColumnBlock& columns) {
  const std::int64_t step = slab.first_step() + row;
  const std::int32_t* const slots = slab.final_index(row) + columns.first_position;
  for (Leaf& leaf : leaves_) {
    if (leaf.told.load(std::memory_order_relaxed)) continue;
    for (int i = 0; i < columns.count; ++i) {
      if (slots[i] < 0) continue;
      LookAt(leaf, {.items = slab.final_observation(leaf.index, slots[i]),
                    .environment = columns.first_environment + i,
                    .count = 1,
                    .step = step});
    }
    LookAt(leaf, {.items = slab.observation(leaf.index, row + 1, columns.first_position),
                  .environment = columns.first_environment,
                  .count = columns.count,
                  .step = step});
  }
}

}  // namespace menger
