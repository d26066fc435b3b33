#include "menger/replay/selectors/prioritised_selector.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "menger/base/error.h"

namespace menger {
namespace {

// Draws and updates go through the tree together, in blocks of so many: enough to have every cache
// line that they need on its way, few enough to stay on the stack.
constexpr std::size_t kBlock = 256;

constexpr double kWeightMin = 1e-290;
constexpr double kWeightMax = 1e290;

}  // namespace

PrioritisedSelector::PrioritisedSelector(double exponent, bool stratified)
    : exponent_(exponent), stratified_(stratified) {
  Grow(8);
}

double PrioritisedSelector::Weight(double priority) const {
  if (priority == 0) return 0;
  const double weight = exponent_ == 1.0 ? priority : std::pow(priority, exponent_);
  return std::clamp(weight, kWeightMin, kWeightMax);
}

void PrioritisedSelector::Insert(std::uint32_t slot, std::uint64_t /*number*/, double priority) {
  if (slot >= levels_[0].size() * 8) Grow(slot + 1);
  SetWeight(slot, Weight(priority));
}

// Slots keep their places, so what is there keeps its sums; only levels are added on top.
void PrioritisedSelector::Grow(std::uint32_t slots) {
  std::size_t nodes = std::bit_ceil((std::size_t{slots} + 7) / 8);
  for (std::size_t level = 0;; ++level) {
    if (level == levels_.size()) {
      levels_.emplace_back();
      if (level > 0) levels_[level].resize(1);
      if (level > 0) levels_[level][0].parts[0] = levels_[level - 1][0].Sum();
    }
    levels_[level].resize(nodes);
    if (nodes == 1) break;
    nodes = (nodes + 7) / 8;
  }
  total_ = levels_.back()[0].Sum();
}

void PrioritisedSelector::SetWeight(std::uint32_t slot, double weight) {
  WeightAt(slot) = weight;
  std::uint32_t node = slot / 8;
  for (std::size_t level = 1; level < levels_.size(); ++level) {
    levels_[level][node / 8].parts[node % 8] = levels_[level - 1][node].Sum();
    node /= 8;
  }
  total_ = levels_.back()[0].Sum();
}

void PrioritisedSelector::UpdateMany(std::span<const std::uint32_t> slots,
                                     std::span<const double> priorities) {
  for (std::size_t begin = 0; begin < slots.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, slots.size() - begin);
    UpdateBlock(slots.subspan(begin, count), priorities.subspan(begin, count));
  }
}

// Weights first, then level by level each sum that changed. A sum computed twice is the same sum;
// a level of fewer nodes than the block has is computed whole.
void PrioritisedSelector::UpdateBlock(std::span<const std::uint32_t> slots,
                                      std::span<const double> priorities) {
  std::array<std::uint32_t, kBlock> nodes;
  std::size_t count = slots.size();
  for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(&WeightAt(slots[i]), /*write=*/1);
  for (std::size_t i = 0; i < count; ++i) {
    WeightAt(slots[i]) = Weight(priorities[i]);
    nodes[i] = slots[i] / 8;
  }
  for (std::size_t level = 1; level < levels_.size(); ++level) {
    const std::vector<Node>& below = levels_[level - 1];
    if (below.size() < count) {
      count = below.size();
      for (std::size_t i = 0; i < count; ++i) nodes[i] = static_cast<std::uint32_t>(i);
    }
    std::vector<Node>& here = levels_[level];
    for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(&here[nodes[i] / 8], /*write=*/1);
    for (std::size_t i = 0; i < count; ++i) {
      here[nodes[i] / 8].parts[nodes[i] % 8] = below[nodes[i]].Sum();
      nodes[i] /= 8;
    }
  }
  total_ = levels_.back()[0].Sum();
}

void PrioritisedSelector::Descend(const Node& node, Descent& descent) {
  // The chosen part is the first whose sum up to and including it exceeds the rest. That sum is
  // larger than the one before it, so the part is not 0.
  double before = 0;
  double sum = 0;
  int part = 0;
  for (const double value : node.parts) {
    sum += value;
    const bool beyond = descent.rest >= sum;
    part += beyond ? 1 : 0;
    before = beyond ? sum : before;
  }
  if (part == 8) {  // The parts, added in this order, rounded to less than the node's sum.
    part = 7;
    while (node.parts[part] == 0) --part;
    before = descent.rest;  // Goes on at the beginning of the part: any place in it would do.
  }
  descent.node = descent.node * 8 + static_cast<std::uint32_t>(part);
  descent.rest -= before;
}

Selection PrioritisedSelector::Select(Random& random) {
  Selection selection;
  SelectMany(random, {&selection, 1});
  return selection;
}

void PrioritisedSelector::SelectMany(Random& random, std::span<Selection> selections) {
  if (!CanSelect()) {
    throw FailedPrecondition("prioritised selector: no item has a priority above 0");
  }
  for (std::size_t begin = 0; begin < selections.size(); begin += kBlock) {
    SelectBlock(random, begin, selections.size(),
                selections.subspan(begin, std::min(kBlock, selections.size() - begin)));
  }
}

void PrioritisedSelector::SelectBlock(Random& random, std::size_t first, std::size_t all,
                                      std::span<Selection> selections) const {
  std::array<Descent, kBlock> descents;
  const std::size_t count = selections.size();
  for (std::size_t i = 0; i < count; ++i) {
    double place = random.Double();
    if (stratified_) place = (static_cast<double>(first + i) + place) / static_cast<double>(all);
    descents[i] = {0, place * total_};
  }
  for (std::size_t level = levels_.size() - 1; level > 0; --level) {
    const Node* const here = levels_[level].data();
    const Node* const below = levels_[level - 1].data();
    for (std::size_t i = 0; i < count; ++i) {
      Descend(here[descents[i].node], descents[i]);
      __builtin_prefetch(&below[descents[i].node]);
    }
  }
  const Node* const weights = levels_[0].data();
  for (std::size_t i = 0; i < count; ++i) {
    const Node& node = weights[descents[i].node];
    Descend(node, descents[i]);
    selections[i] = {descents[i].node, node.parts[descents[i].node % 8] / total_};
  }
}

}  // namespace menger
