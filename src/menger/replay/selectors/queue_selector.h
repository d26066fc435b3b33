#pragma once

#include <cstdint>
#include <vector>

#include "menger/replay/selectors/selector.h"

namespace menger {

// The oldest or the newest item: a doubly linked list over the slots, in order of insertion.
class QueueSelector : public Selector {
 public:
  enum class End { kOldest, kNewest };

  explicit QueueSelector(End end) : end_(end) {}

  void Insert(std::uint32_t slot, std::uint64_t number, double priority) override;
  void Erase(std::uint32_t slot) override;
  void Update(std::uint32_t /*slot*/, double /*priority*/) override {}
  void UpdateMany(std::span<const std::uint32_t> /*slots*/,
                  std::span<const double> /*priorities*/) override {}

  bool CanSelect() const override { return Chosen() != kNone; }
  Selection Select(Random& random) override;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Links {
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;
  };

  std::uint32_t Chosen() const { return end_ == End::kOldest ? oldest_ : newest_; }

  const End end_;
  std::vector<Links> links_;  // By slot.
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
};

}  // namespace menger
