#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "menger/replay/selectors/selector.h"

namespace menger {

// P(i) = w_i / sum of w, w_i = priority_i^exponent (Schaul et al. 2016, eq. 1). An item of priority
// 0 is never drawn, whatever the exponent; every other weight is kept within [1e-290, 1e290], so
// that no sum of 2^32 of them overflows and none vanishes.
//
// A tree of sums: a node is eight doubles in one cache line, each the sum of the eight of a node
// below; the lowest level holds the weights by slot. A draw walks from the top down. Sums are never
// adjusted by differences: an update computes each sum above it anew from its eight parts, in three
// rounded additions a level. So with L levels (the least with 8^L >= slots: 7 for a million) the
// total is within a factor (1 +- 2^-53)^(3L) of the exact sum, an error of less than 2.4e-15 of it
// for a million slots, after any number of updates.
//
// The tree doubles as slots are added; it never shrinks.
class PrioritisedSelector : public Selector {
 public:
  explicit PrioritisedSelector(double exponent, bool stratified = false);

  void Insert(std::uint32_t slot, std::uint64_t number, double priority) override;
  void Erase(std::uint32_t slot) override { SetWeight(slot, 0); }
  void Update(std::uint32_t slot, double priority) override { SetWeight(slot, Weight(priority)); }
  void UpdateMany(std::span<const std::uint32_t> slots,
                  std::span<const double> priorities) override;

  bool CanSelect() const override { return total_ > 0; }
  Selection Select(Random& random) override;
  void SelectMany(Random& random, std::span<Selection> selections) override;

  double total() const { return total_; }

 private:
  struct alignas(64) Node {
    double parts[8] = {};

    double Sum() const {
      return ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
             ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    }
  };

  // A draw on its way down: a node of the level, and how far into the node's sum.
  struct Descent {
    std::uint32_t node = 0;
    double rest = 0;
  };

  double Weight(double priority) const;
  double& WeightAt(std::uint32_t slot) { return levels_[0][slot / 8].parts[slot % 8]; }
  void SetWeight(std::uint32_t slot, double weight);
  void Grow(std::uint32_t slots);
  // One level down: the part of the node in which the rest falls, never one of 0.
  static void Descend(const Node& node, Descent& descent);
  // The draws from number `first` on, of `all` of a call.
  void SelectBlock(Random& random, std::size_t first, std::size_t all,
                   std::span<Selection> selections) const;
  void UpdateBlock(std::span<const std::uint32_t> slots, std::span<const double> priorities);

  const double exponent_;
  const bool stratified_;
  // By level, the weights first; the last has one node. The nodes of a level are the parts of the
  // next.
  std::vector<std::vector<Node>> levels_;
  double total_ = 0;
};

}  // namespace menger
