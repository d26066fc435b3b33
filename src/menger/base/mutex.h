#pragma once

#include <mutex>

// What clang checks of locks (-Wthread-safety, which tools/tidy.py asks for): that a member is
// touched, or a function called, only under the mutex that it names. Attributes of this kind have
// no other spelling; g++ does not know them.
#if defined(__clang__)
#define MENGER_LOCK_RULE(rule) __attribute__((rule))
#else
#define MENGER_LOCK_RULE(rule)
#endif
#define MENGER_GUARDED_BY(mutex) MENGER_LOCK_RULE(guarded_by(mutex))
#define MENGER_REQUIRES(mutex) MENGER_LOCK_RULE(requires_capability(mutex))
// For what clang cannot follow: a lock that is handed on, or known by another name. Says why.
#define MENGER_UNCHECKED_LOCKS MENGER_LOCK_RULE(no_thread_safety_analysis)

namespace menger {

// A std::mutex that can be named in lock rules.
class MENGER_LOCK_RULE(capability("mutex")) Mutex {
 public:
  // For a caller that has the lock by way of another function: it is taken on trust.
  void AssertHeld() const MENGER_LOCK_RULE(assert_capability(this)) {}

  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

// Holds a mutex while it lives.
class MENGER_LOCK_RULE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MENGER_LOCK_RULE(acquire_capability(mutex))
      : lock_(mutex.native()) {}
  ~MutexLock() MENGER_LOCK_RULE(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() MENGER_LOCK_RULE(release_capability()) { lock_.unlock(); }
  void Lock() MENGER_LOCK_RULE(acquire_capability()) { lock_.lock(); }

  // For what gives the mutex up for a while and has it again when it returns: condition variables.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace menger
