#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "menger/base/error.h"

namespace menger {

// Hands items from threads to threads in order of arrival and holds at most `capacity` of them.
//
// Any number of threads may push and pop. A producer that is faster than its consumers waits in
// `Push`, so memory stays bounded. After `Close` nothing more goes in; what is inside still comes
// out. Items are moved, never copied. One lock an operation: fine for metrics and evaluation jobs,
// wrong for the hot path, where workers meet through EpochCounter. Timeouts are of the steady
// clock: setting the machine's time neither ends nor prolongs a wait.
template <typename T>
class BoundedQueue {
 public:
  // Throws InvalidArgument unless capacity >= 1.
  explicit BoundedQueue(int capacity) : capacity_(capacity) {
    if (capacity < 1) {
      throw InvalidArgument("the capacity of a queue is {}; it must be at least 1", capacity);
    }
  }

  // False if the queue was closed before there was room; throws DeadlineExceeded after `timeout`.
  bool Push(T item, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || std::ssize(items_) < capacity_; };
    if (!has_room_.wait_for(lock, timeout, ready)) {
      throw DeadlineExceeded("a queue of {} stayed full for {} ms", capacity_, timeout.count());
    }
    if (closed_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    has_items_.notify_one();
    return true;
  }

  // Nothing once the queue is closed and empty; throws DeadlineExceeded after `timeout`.
  std::optional<T> Pop(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || !items_.empty(); };
    if (!has_items_.wait_for(lock, timeout, ready)) {
      throw DeadlineExceeded("a queue stayed empty for {} ms", timeout.count());
    }
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    has_room_.notify_one();
    return item;
  }

  // Wakes everybody who waits. May be called more than once.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    has_room_.notify_all();
    has_items_.notify_all();
  }

  int size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(items_.size());
  }

 private:
  const int capacity_;

  mutable std::mutex mutex_;
  std::condition_variable has_room_;   // Signalled by Pop and Close.
  std::condition_variable has_items_;  // Signalled by Push and Close.
  std::deque<T> items_;                // Guarded by mutex_.
  bool closed_ = false;                // Guarded by mutex_.
};

}  // namespace menger
