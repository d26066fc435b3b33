#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "menger/base/random.h"

namespace menger {

// What was chosen, and how likely that was.
struct Selection {
  std::uint32_t slot = 0;
  double probability = 0;
};

// By what a table chooses: as Reverb's selectors of these names.
enum class SelectorKind : std::uint8_t {
  kUniform,
  kFifo,         // The oldest.
  kLifo,         // The newest.
  kMinHeap,      // The lowest priority; among equals the oldest.
  kMaxHeap,      // The highest priority; among equals the oldest.
  kPrioritised,  // P(i) = priority_i^exponent / sum (Schaul et al. 2016, eq. 1).
};

// A kind, and what one of them has beside.
struct SelectorOptions {
  SelectorKind kind = SelectorKind::kUniform;
  double exponent = 1.0;  // These two: kPrioritised alone.
  // The draws of one call are spread: the i-th of k falls into the i-th of k equal shares of the
  // sum (Schaul et al. 2016, section 3.3). Each is as likely as said all the same.
  bool stratified = false;

  // Throws InvalidArgument for an exponent that is negative or not finite.
  void Check() const;
};

// Chooses among the items of a table, which it knows by slot (small numbers, used again) and by
// `number`, the count of insertions. A table has two: one to sample by, one to remove by.
//
// The same operations in the same order, with a generator in the same state, choose the same items.
// One thread at a time: the table's mutex guards it. No allocation but for growth.
class Selector {
 public:
  virtual ~Selector() = default;

  // The slot is free, the number larger than all before. Priorities are finite and not negative.
  virtual void Insert(std::uint32_t slot, std::uint64_t number, double priority) = 0;
  virtual void Erase(std::uint32_t slot) = 0;
  virtual void Update(std::uint32_t slot, double priority) = 0;
  // The same as one call after the other, faster.
  virtual void UpdateMany(std::span<const std::uint32_t> slots, std::span<const double> priorities);

  // Whether anything can be chosen: the prioritised selector never chooses a priority of 0.
  virtual bool CanSelect() const = 0;
  // Throws FailedPrecondition unless CanSelect.
  virtual Selection Select(Random& random) = 0;
  // Draws with replacement: the same as one call after the other, faster; or stratified.
  virtual void SelectMany(Random& random, std::span<Selection> selections);

  // Slots in an order on which choices depend and that slots, numbers and priorities do not tell:
  // what a checkpoint keeps of a selector beside its items. Empty where there is no such order.
  // Valid until the next change.
  virtual std::span<const std::uint32_t> order() const { return {}; }
  // Gives a saved order back after all items were inserted, in ascending order of their numbers. An
  // empty one (of a table that had another selector) leaves the order of insertion.
  virtual void RestoreOrder(std::span<const std::uint32_t> order);
};

// Throws InvalidArgument as SelectorOptions::Check.
std::unique_ptr<Selector> MakeSelector(const SelectorOptions& options);

// "prioritised(0.6)": for messages.
std::string ToString(const SelectorOptions& options);

}  // namespace menger
