#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "menger/environments/environment.h"
#include "menger/tensor/slab.h"

namespace menger {

// Looks for observations outside the bounds that their environment declares. Many leave theirs by a
// little, and nothing breaks: so the first value of each leaf is told, and that leaf is not looked
// at any more. What has no bounds, or all that its type can hold, costs nothing. Any thread.
class BoundsWatch {
 public:
  explicit BoundsWatch(const EnvironmentSpec& spec);

  // What a step of `row` has written: the observations of row + 1, final ones.
  void LookAtStep(const Slab& slab, int row, const ColumnBlock& columns);

  // What a reset has written into `row`.
  void LookAtReset(const Slab& slab, int row, const ColumnBlock& columns);

 private:
  struct Leaf {
    int index = 0;
    LeafSpec spec;
    std::atomic<bool> told = false;
  };

  // Values of a leaf: those of `count` environments, of which the first has that number.
  struct Values {
    const std::byte* items;
    int environment;
    int count;
    std::int64_t step;  // -1: a reset has given them.
  };

  void LookAt(Leaf& leaf, const Values& values);
  template <typename Number>
  void LookAtNumbers(Leaf& leaf, const Values& values);

  const std::string name_;
  std::deque<Leaf> leaves_;  // Those with bounds that can be left.
};

}  // namespace menger
