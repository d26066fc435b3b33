#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "menger/base/function_ref.h"

namespace menger {

// Whether the call of this process has lent its CPUs because it waits: on the thread that does it,
// or on others that it has started, while none of the process computes.
//
// The node is told when the first wait begins to lend and when the last one ends, or the call. Any
// thread; `tell` is called under a lock, so that what is told keeps its order.
class Lending {
 public:
  using Tell = FunctionRef<void()>;

  // The call of that lease begins; 0: it has ended, and lends nothing any longer.
  void SetCall(std::uint64_t lease, Tell unblock) {
    call_.store(lease, lease != 0 ? std::memory_order_relaxed : std::memory_order_seq_cst);
    if (lease != 0 || threads_.load() == 0) return;
    const std::lock_guard lock(mutex_);
    if (waits_ > 0) unblock();
    waits_ = 0;
  }
  std::uint64_t call() const { return call_.load(std::memory_order_relaxed); }

  // A wait of the call's own thread.
  void Begin(Tell block) {
    const std::lock_guard lock(mutex_);
    ++waits_;
    block();
  }
  void End(Tell unblock) {
    const std::lock_guard lock(mutex_);
    if (--waits_ == 0) unblock();
  }

  // A wait of another thread.
  class ThreadWait {
   public:
    explicit ThreadWait(Lending& lending);
    ~ThreadWait() { --lending_.threads_; }  // After End.
    ThreadWait(const ThreadWait&) = delete;
    ThreadWait& operator=(const ThreadWait&) = delete;

    // To be called every now and then: lends, once, where the process computes nothing and the call
    // is the same as when the wait began.
    void Look(Tell block);
    void End(Tell unblock);

   private:
    Lending& lending_;
    const std::uint64_t call_;
    std::int64_t looked_at_ = 0;  // Nanoseconds,
    std::int64_t computed_ = 0;   // and those for which the process had computed then.
    bool lends_ = false;
  };

 private:
  std::mutex mutex_;
  int waits_ = 0;  // That lend.
  std::atomic<int> threads_{0};
  std::atomic<std::uint64_t> call_{0};
};

}  // namespace menger
