#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "menger/base/epoch_counter.h"
#include "menger/base/sharing/ring.h"
#include "menger/runtime/channel/doorbell.h"
#include "menger/tensor/memory.h"

namespace menger {

// The memory that a node shares with one worker process: a ring each way, and the bell that wakes
// the worker. Both ends map it; each takes its end of the rings.
class WorkerChannel {
 public:
  static constexpr std::size_t kRingCapacity = std::size_t{8} << 20;
  // For leases that are out at the same time: at least as many as the scheduler gives out.
  static constexpr std::uint64_t kLeasePlaces = 1024;
  static constexpr std::size_t kHeadBytes = 3 * 4096;
  static constexpr std::size_t kBytes = kHeadBytes + 2 * (kRingCapacity + 4096);

  // The longest message.
  static constexpr std::size_t kMessageBytesMax = kRingCapacity / 4;

  explicit WorkerChannel(std::unique_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}

  int descriptor() const { return memory_->descriptor(); }
  // The other end has been given it.
  void CloseDescriptor() { memory_->CloseDescriptor(); }
  EpochCounter& worker_bell() { return *reinterpret_cast<EpochCounter*>(memory_->data()); }
  // Has the number of that lease if its call should stop. Leases that are out at the same time have
  // places of their own.
  std::atomic<std::uint64_t>& interrupted(std::uint64_t lease) {
    auto* const places = reinterpret_cast<std::atomic<std::uint64_t>*>(memory_->data() + 64);
    return places[lease % kLeasePlaces];
  }
  std::span<std::byte> to_worker() {
    return {memory_->data() + kHeadBytes, RingBytes(kRingCapacity)};
  }
  std::span<std::byte> to_node() {
    return {memory_->data() + kHeadBytes + kRingCapacity + 4096, RingBytes(kRingCapacity)};
  }

 private:
  static_assert(64 + kLeasePlaces * sizeof(std::uint64_t) <= kHeadBytes);

  std::unique_ptr<SharedMemory> memory_;
};

}  // namespace menger
