#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "menger/environments/environment.h"
#include "menger/tensor/slab.h"

namespace menger {

// Of many, without a branch an element, so that eight are looked at by one instruction.
bool AllFiniteOfMany(const float* values, std::size_t count);
bool AllFiniteOfMany(const double* values, std::size_t count);

// Whether all are numbers: neither NaN nor infinite. A call would cost more than to look at a few.
template <std::floating_point T>
inline bool AllFinite(const T* values, std::size_t count) {
  constexpr std::size_t kFew = 8;
  if (count > kFew) return AllFiniteOfMany(values, count);
  bool finite = true;
  for (std::size_t i = 0; i < count; ++i) {
    finite &= std::abs(values[i]) <= std::numeric_limits<T>::max();  // False for NaN.
  }
  return finite;
}
inline bool AllFinite(const std::uint8_t* /*values*/, std::size_t /*count*/) { return true; }

// Something that an environment has written and nobody could learn from.
struct RowFault {
  int column = 0;   // Of the block.
  std::string why;  // "its reward is nan; it must be a finite number"
};

// Looks for such in whole rows of a block, right after they were written: rewards and observations
// that are no numbers, codes and flags outside their space. Bounds of a Box are not looked at:
// environments leave theirs by a little, and nothing breaks (hosted ones are told of, see
// hosted/bounds_watch.h). Immutable; any thread.
class RowCheck {
 public:
  explicit RowCheck(const EnvironmentSpec& spec) : spec_(spec.observation) {}

  // What a step of `row` has written: its rewards, the observations of row + 1, final ones.
  std::optional<RowFault> OfStep(const Slab& slab, int row, const ColumnBlock& columns) const;

  // The observations of `row`.
  std::optional<RowFault> OfObservations(const Slab& slab, int row,
                                         const ColumnBlock& columns) const;

 private:
  std::optional<RowFault> OfFinal(const Slab& slab, int row, const ColumnBlock& columns) const;

  const Spec spec_;
};

// What is wrong with one value of an observation leaf, if anything is: `items` has `count` of the
// leaf's elements, one environment after the other.
std::optional<RowFault> FaultOf(const LeafSpec& leaf, const std::byte* items, int count);

// "its reward is nan; it must be a finite number"
std::string RewardFault(double reward);

// Throws FailedPrecondition for the fault, if there is one.
inline void RefuseFault(const std::optional<RowFault>& fault) {
  if (fault) throw FailedPrecondition("{}", fault->why);
}

}  // namespace menger
