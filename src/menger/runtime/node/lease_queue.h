#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "menger/runtime/node/node_records.h"

namespace menger {

// The calls that a thread of the driver is offered, in order: the node appends and takes back, the
// thread claims one after the other without a lock.
//
// Each place is offered, claimed or recalled; only one of the two sides wins it.
class LeaseQueue {
 public:
  // Node: false if there is no room. The lease is one more than the one before.
  bool Offer(LeaseNumber lease, const Task& task) {
    if (lease >= taken_.load(std::memory_order_acquire) + kPlaces) return false;
    Place& place = places_[lease % kPlaces];
    place.task = &task;
    place.state.store(kOffered, std::memory_order_relaxed);
    offered_.store(lease, std::memory_order_release);
    return true;
  }

  // Node: true if the thread will not see it. The lease was offered and is not done.
  bool Recall(LeaseNumber lease) {
    std::uint32_t state = kOffered;
    return places_[lease % kPlaces].state.compare_exchange_strong(state, kRecalled,
                                                                  std::memory_order_acq_rel);
  }

  // Thread: the next call, or null if there is none.
  const Task* Claim() {
    for (;;) {
      const LeaseNumber next = taken_.load(std::memory_order_relaxed) + 1;
      if (next > offered_.load(std::memory_order_acquire)) return nullptr;
      Place& place = places_[next % kPlaces];
      std::uint32_t state = kOffered;
      const bool mine =
          place.state.compare_exchange_strong(state, kClaimed, std::memory_order_acq_rel);
      const Task* const task = place.task;
      taken_.store(next, std::memory_order_release);
      if (mine) return task;
    }
  }

  bool HasMore() const {
    return taken_.load(std::memory_order_relaxed) < offered_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t kPlaces = 1024;
  enum State : std::uint32_t { kOffered, kClaimed, kRecalled };
  struct Place {
    std::atomic<std::uint32_t> state{kClaimed};
    const Task* task = nullptr;
  };

  std::array<Place, kPlaces> places_;
  alignas(64) std::atomic<LeaseNumber> offered_{0};
  alignas(64) std::atomic<LeaseNumber> taken_{0};
};

}  // namespace menger
