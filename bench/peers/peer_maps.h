#pragma once

#if __has_include(<absl/container/flat_hash_map.h>)
#include <absl/container/flat_hash_map.h>
#endif
#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/unordered/unordered_flat_map.hpp>
#endif
#if __has_include(<tsl/robin_map.h>)
#include <tsl/robin_map.h>
#endif

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "menger/runtime/values/id_map.h"

namespace menger {

// A map of others in the place of IdMap.
template <typename Record, typename Map>
class PeerMap {
 public:
  std::size_t size() const { return map_.size(); }
  Record* Find(const Id& id) const {
    const auto found = map_.find(id);
    return found == map_.end() ? nullptr : found->second;
  }
  void Insert(Record* record) { map_.emplace(record->id, record); }
  void Erase(const Record* record) { map_.erase(record->id); }
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (const auto& [id, record] : map_) visit(*record);
  }

 private:
  Map map_;
};

template <typename Record>
using StdMap = PeerMap<Record, std::unordered_map<Id, Record*, IdHash>>;
#if __has_include(<absl/container/flat_hash_map.h>)
template <typename Record>
using AbslMap = PeerMap<Record, absl::flat_hash_map<Id, Record*, IdHash>>;
#endif
#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
template <typename Record>
using BoostMap = PeerMap<Record, boost::unordered_flat_map<Id, Record*, IdHash>>;
#endif
#if __has_include(<tsl/robin_map.h>)
template <typename Record>
using RobinMap = PeerMap<Record, tsl::robin_map<Id, Record*, IdHash>>;
#endif

// IdMap with the low half of the id beside the pointer.
template <typename Record>
class LowBesideMap {
 public:
  LowBesideMap() : slots_(kSlotsMin) {}
  std::size_t size() const { return size_; }

  Record* Find(const Id& id) const {
    for (std::size_t at = id.low & mask();; at = Next(at)) {
      const Slot& slot = slots_[at];
      if (slot.record == nullptr) return nullptr;
      if (slot.low == id.low && slot.record->id == id) return slot.record;
    }
  }
  void Insert(Record* record) {
    if (2 * (size_ + 1) > slots_.size()) Resize(2 * slots_.size());
    Place({record->id.low, record});
    ++size_;
  }
  void Erase(const Record* record) {
    std::size_t hole = record->id.low & mask();
    while (slots_[hole].record != record) hole = Next(hole);
    for (std::size_t at = Next(hole); slots_[at].record != nullptr; at = Next(at)) {
      const std::size_t from_home = (at - slots_[at].low) & mask();
      if (from_home < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = {};
    --size_;
    if (slots_.size() > kSlotsMin && 16 * size_ < slots_.size()) Resize(slots_.size() / 2);
  }
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.record != nullptr) visit(*slot.record);
    }
  }

 private:
  struct Slot {
    std::uint64_t low = 0;
    Record* record = nullptr;
  };
  static constexpr std::size_t kSlotsMin = 1024;
  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t Next(std::size_t at) const { return (at + 1) & mask(); }
  void Place(Slot slot) {
    std::size_t at = slot.low & mask();
    while (slots_[at].record != nullptr) at = Next(at);
    slots_[at] = slot;
  }
  void Resize(std::size_t slots) {
    std::vector<Slot> before(slots);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.record != nullptr) Place(slot);
    }
  }
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace menger

#ifdef NODE_MAP  // node_calls.cc
#define IdMap NODE_MAP
#endif
