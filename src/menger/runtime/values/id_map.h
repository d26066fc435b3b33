#pragma once

#include <bit>
#include <cstddef>
#include <vector>

#include "menger/runtime/values/ids.h"

namespace menger {

// Finds records by their `id`: a table of pointers with linear probing, at most half full, emptied
// slots closed by shifting. The records belong to whoever inserted them.
template <typename Record>
class IdMap {
 public:
  IdMap() : slots_(kSlotsMin) {}

  std::size_t size() const { return size_; }

  Record* Find(const Id& id) const {
    for (std::size_t at = Home(id);; at = Next(at)) {
      if (slots_[at] == nullptr || slots_[at]->id == id) return slots_[at];
    }
  }

  // There is no record of that id yet.
  void Insert(Record* record) {
    if (2 * (size_ + 1) > slots_.size()) Resize(2 * slots_.size());
    Place(record);
    ++size_;
  }

  void Erase(const Record* record) {
    std::size_t hole = Home(record->id);
    while (slots_[hole] != record) hole = Next(hole);
    for (std::size_t at = Next(hole); slots_[at] != nullptr; at = Next(at)) {
      // Whether the one at `at` may lie at the hole: its home is not between them.
      const std::size_t from_home = (at - Home(slots_[at]->id)) & mask();
      if (from_home < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = nullptr;
    --size_;
    if (slots_.size() > kSlotsMin && 16 * size_ < slots_.size()) Resize(slots_.size() / 2);
  }

  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (Record* const record : slots_) {
      if (record != nullptr) visit(*record);
    }
  }

 private:
  static constexpr std::size_t kSlotsMin = 1024;

  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t Home(const Id& id) const { return id.low & mask(); }
  std::size_t Next(std::size_t at) const { return (at + 1) & mask(); }

  void Place(Record* record) {
    std::size_t at = Home(record->id);
    while (slots_[at] != nullptr) at = Next(at);
    slots_[at] = record;
  }

  void Resize(std::size_t slots) {
    std::vector<Record*> before(slots);
    before.swap(slots_);
    for (Record* const record : before) {
      if (record != nullptr) Place(record);
    }
  }

  std::vector<Record*> slots_;  // A power of two.
  std::size_t size_ = 0;
};

}  // namespace menger
