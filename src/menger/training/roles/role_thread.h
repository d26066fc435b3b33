#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "menger/base/clock.h"
#include "menger/base/thread.h"
#include "menger/training/roles/role.h"
#include "menger/training/roles/role_status.h"

namespace menger {

// Advances a role in a thread of its own, in slices, until it is done or told to stop. Any thread
// may call.
class RoleThread {
 public:
  // Begins. The role outlives this.
  explicit RoleThread(Role& role);
  ~RoleThread();  // Stops.
  RoleThread(const RoleThread&) = delete;
  RoleThread& operator=(const RoleThread&) = delete;

  // Calls `work` between two slices, in the calling thread, while the role rests; false, and no
  // call, where the role has failed: what it left may be half of something. Throws what `work`
  // throws, and DeadlineExceeded, naming the role, where a slice does not end.
  bool Between(const std::function<void()>& work, const Deadline& deadline);

  void Stop() { stopping_ = true; }  // At the end of the slice.
  // After Stop, or once it has ended: waits for that, and throws what the role has thrown.
  void Join() { thread_.Join(); }

  RoleStatus status() const;
  bool ended() const { return thread_.finished(); }

 private:
  void Run();
  void Rest(bool failed);

  Role& role_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> slice_began_{0};  // MonotonicNanoseconds.

  std::mutex turns_;
  std::condition_variable turn_;  // Signalled when one of the next two falls.
  int visitors_ = 0;              // Guarded by turns_: who wants to come between.
  bool advancing_ = false;        // These two: guarded by turns_.
  bool failed_ = false;

  mutable std::mutex mutex_;
  RoleMeter meter_;  // Guarded by mutex_.
  Thread thread_;    // Last: it uses all of the above.
};

}  // namespace menger
