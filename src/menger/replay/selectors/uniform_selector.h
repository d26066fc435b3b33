#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/replay/selectors/selector.h"

namespace menger {

// Every item with the same probability: a dense list of slots, from which an item goes by handing
// its place to the last one. So the order of the list depends on all that happened before, and is
// saved.
class UniformSelector : public Selector {
 public:
  void Insert(std::uint32_t slot, std::uint64_t number, double priority) override;
  void Erase(std::uint32_t slot) override;
  void Update(std::uint32_t /*slot*/, double /*priority*/) override {}
  void UpdateMany(std::span<const std::uint32_t> /*slots*/,
                  std::span<const double> /*priorities*/) override {}

  bool CanSelect() const override { return !slots_.empty(); }
  Selection Select(Random& random) override;

  std::span<const std::uint32_t> order() const override { return slots_; }
  // Throws FailedPrecondition unless the order is empty or of exactly the slots inserted here.
  void RestoreOrder(std::span<const std::uint32_t> order) override;

 private:
  std::vector<std::uint32_t> slots_;   // In the order of the list.
  std::vector<std::uint32_t> places_;  // By slot: where in slots_.
};

}  // namespace menger
