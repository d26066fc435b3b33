#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "menger/base/clock.h"

namespace menger {

// Who waits for a thing, first come, first served: only the first is ever woken, so that a thousand
// that wait cost no more than one. The thing's mutex guards it, and all turns in it.
class TurnQueue {
 public:
  // A call's place. It joins the queue when it first waits, at the end, and leaves it at the latest
  // when it goes out of scope; both under the mutex.
  class Turn {
   public:
    explicit Turn(TurnQueue& queue) : queue_(queue) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { Leave(); }

    // Whether nobody who came before still waits.
    bool has_come() const { return waits_ ? queue_.first_ == this : queue_.empty(); }

    void Join() {
      if (waits_) return;
      called_.emplace();
      queue_.Append(*this);
      waits_ = true;
    }

    void Leave() {
      if (waits_) queue_.Remove(*this);
      waits_ = false;
    }

    // Until it is called, or until the deadline: false. May return true early; look again.
    bool Wait(std::unique_lock<std::mutex>& lock, const Deadline& deadline) {
      Join();
      was_called_ = false;
      const std::chrono::nanoseconds slice = deadline.slice();
      if (slice.count() == 0) return false;
      called_->wait_for(lock, std::min<std::chrono::nanoseconds>(slice, kWaitMax));
      return true;
    }

   private:
    friend class TurnQueue;
    // Of one wait, so that no clock arithmetic overflows.
    static constexpr std::chrono::hours kWaitMax{1};

    TurnQueue& queue_;
    Turn* next_ = nullptr;
    Turn* previous_ = nullptr;
    bool waits_ = false;
    bool was_called_ = false;
    std::optional<std::condition_variable> called_;  // Most calls never wait.
  };

  TurnQueue() = default;
  TurnQueue(const TurnQueue&) = delete;
  TurnQueue& operator=(const TurnQueue&) = delete;

  bool empty() const { return first_ == nullptr; }
  int size() const { return size_; }

  void CallFirst() {
    if (first_ == nullptr || first_->was_called_) return;
    first_->was_called_ = true;
    first_->called_->notify_one();
  }
  void CallAll() {
    for (Turn* turn = first_; turn != nullptr; turn = turn->next_) turn->called_->notify_one();
  }

 private:
  void Append(Turn& turn) {
    turn.previous_ = last_;
    (last_ == nullptr ? first_ : last_->next_) = &turn;
    last_ = &turn;
    ++size_;
  }
  void Remove(Turn& turn) {
    (turn.previous_ == nullptr ? first_ : turn.previous_->next_) = turn.next_;
    (turn.next_ == nullptr ? last_ : turn.next_->previous_) = turn.previous_;
    turn.next_ = turn.previous_ = nullptr;
    --size_;
  }

  Turn* first_ = nullptr;
  Turn* last_ = nullptr;
  int size_ = 0;
};

}  // namespace menger
