#pragma once

#include <cstddef>
#include <memory>

#include "menger/networks/network.h"
#include "menger/tensor/memory.h"

namespace menger {

// Room for the next batch of a network, in memory that its device reads by itself. Grows, never
// shrinks. Owns it; one thread at a time.
class BatchMemory {
 public:
  // At least `bytes`, for a batch of `network`. What was in it is lost if that takes new memory.
  std::byte* Reserve(const Network& network, std::size_t bytes) {
    if (memory_ == nullptr || memory_->size() < bytes) memory_ = network.AllocateBatch(bytes);
    return memory_->data();
  }
  const std::byte* data() const { return memory_ == nullptr ? nullptr : memory_->data(); }

 private:
  std::unique_ptr<Memory> memory_;
};

}  // namespace menger
