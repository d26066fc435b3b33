#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/mutex.h"
#include "menger/base/thread.h"
#include "menger/runtime/control/membership.h"
#include "menger/runtime/net/handshake.h"
#include "menger/runtime/watching/metrics.h"

namespace menger {

// Drives a Membership: a thread that asks the control store what that wants, tells it what was
// answered, and sleeps else.
class MemberLoop {
 public:
  // All on the loop's thread.
  struct Hooks {
    std::function<void(const NodeChange& change)> on_change;
    // Has something to do now and then: says when it wants to be called next.
    std::function<std::int64_t(std::int64_t now)> tend;
    std::function<void(NodeLease::End why)> on_over;  // Once; not called for a life that was left.
  };

  // Begins to join. `store` outlives this.
  MemberLoop(const NodeRecord& self, const MembershipOptions& options, ControlStore& store);
  ~MemberLoop();  // Stops.
  MemberLoop(const MemberLoop&) = delete;
  MemberLoop& operator=(const MemberLoop&) = delete;

  // Waits until this node is a member, and, unless it is to be the first, knows of another; its own
  // record, with its epoch. `failure` is asked now and then: what it throws ends the wait. Throws
  // DeadlineExceeded, and FailedPrecondition where another node has its name.
  NodeRecord AwaitMember(bool first, const std::function<void()>& failure,
                         const Deadline& deadline);
  // From now on hooks are called; returns when it was told of whoever is there.
  void Begin(Hooks hooks);

  // ---- Any thread.
  void Wake();  // `tend` is called soon.
  void Hint();  // Likewise, and who is there is read again.
  // That it is over is told, if it is, also if it never was there while this node was.
  void Seek(const NodeLife& life);
  // Whether this node may act as a member now.
  bool Lives() const {
    return MonotonicNanoseconds() < lives_until_.load(std::memory_order_relaxed);
  }
  LeaseEpoch lease() const;               // NodeLease::lease.
  std::vector<NodeRecord> Nodes() const;  // This one first.
  DurationHistogram StoreTimes() const;   // Until the store had answered.
  void Drain();
  // Gives back what it has at the store: false if that took longer, or is in vain, as is asked now
  // and then.
  bool Leave(const Deadline& deadline, const std::function<bool()>& is_in_vain);
  // Nothing is asked or told any longer; Leave first for a life that is to end in order.
  void Stop();

 private:
  // What the store has answered. Shared: answers may come when the loop is gone.
  struct Inbox;

  void Run();
  // With the lock, which both give up for a while.
  void Step(std::int64_t now, MutexLock& lock) MENGER_UNCHECKED_LOCKS;
  void Ask(StoreAsk ask);
  void TellChanges(MutexLock& lock) MENGER_UNCHECKED_LOCKS;

  ControlStore& store_;
  const std::shared_ptr<Inbox> inbox_;
  mutable Mutex mutex_;
  Membership membership_ MENGER_GUARDED_BY(mutex_);
  std::unique_ptr<Hooks> hooks_ MENGER_GUARDED_BY(mutex_);
  bool told_ MENGER_GUARDED_BY(mutex_) = false;  // Those who were there when hooks came.
  bool told_over_ MENGER_GUARDED_BY(mutex_) = false;
  bool stopping_ MENGER_GUARDED_BY(mutex_) = false;
  std::condition_variable changed_;  // With mutex_: somebody waits for a state.
  std::atomic<std::int64_t> lives_until_;
  std::unique_ptr<StoreWatch> watch_;
  Thread thread_;
};

}  // namespace menger
