#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "menger/replay/selectors/selector.h"

namespace menger {

// The item of the lowest or of the highest priority, the oldest among equals: a binary heap that
// knows where each slot's entry is.
class HeapSelector : public Selector {
 public:
  enum class Top { kLowest, kHighest };

  explicit HeapSelector(Top top) : sign_(top == Top::kLowest ? 1.0 : -1.0) {}

  void Insert(std::uint32_t slot, std::uint64_t number, double priority) override;
  void Erase(std::uint32_t slot) override;
  void Update(std::uint32_t slot, double priority) override;

  bool CanSelect() const override { return !heap_.empty(); }
  Selection Select(Random& random) override;

 private:
  struct Entry {
    double rank = 0;  // The priority, with its sign turned where the highest is wanted.
    std::uint64_t number = 0;
    std::uint32_t slot = 0;

    bool operator<(const Entry& other) const {
      return rank != other.rank ? rank < other.rank : number < other.number;
    }
  };

  // Puts the entry where it belongs, from a free place `at` upwards or downwards.
  void Settle(std::size_t at, const Entry& entry);
  void Put(std::size_t at, const Entry& entry);

  const double sign_;
  std::vector<Entry> heap_;
  std::vector<std::uint32_t> places_;  // By slot: where in heap_.
};

}  // namespace menger
