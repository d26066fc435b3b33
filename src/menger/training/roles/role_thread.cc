#include "menger/training/roles/role_thread.h"

#include <chrono>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kSlice{100};
constexpr std::chrono::seconds kLook{1};  // No wait is endless: it looks again.

}  // namespace

RoleThread::RoleThread(Role& role)
    : role_(role), meter_(role.name()), thread_({.name = role.name()}, [this] { Run(); }) {}

RoleThread::~RoleThread() { Stop(); }

void RoleThread::Run() {
  while (!stopping_) {
    {
      std::unique_lock lock(turns_);
      while (!turn_.wait_for(lock, kLook, [this] { return visitors_ == 0; })) {
      }
      advancing_ = true;
    }
    const Stopwatch watch;
    slice_began_ = MonotonicNanoseconds();
    Advanced advanced = Advanced::Done();
    try {
      advanced = role_.Advance(Deadline::After(kSlice));
    } catch (...) {
      Rest(/*failed=*/true);
      throw;
    }
    Rest(/*failed=*/false);
    {
      const std::lock_guard lock(mutex_);
      meter_.Count(advanced, watch.seconds());
    }
    if (advanced.state == Advanced::State::kDone) return;
  }
}

void RoleThread::Rest(bool failed) {
  const std::lock_guard lock(turns_);
  failed_ = failed;
  advancing_ = false;
  turn_.notify_all();
}

bool RoleThread::Between(const std::function<void()>& work, const Deadline& deadline) {
  std::unique_lock lock(turns_);
  ++visitors_;
  const bool rests = turn_.wait_for(lock, deadline.remaining(), [this] { return !advancing_; });
  const auto leave = [this] {
    --visitors_;
    turn_.notify_all();
  };
  if (!rests) {
    leave();
    throw DeadlineExceeded("{} does not come to the end of what it does", role_.name());
  }
  const bool whole = !failed_;
  try {
    if (whole) work();
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return whole;
}

RoleStatus RoleThread::status() const {
  const std::lock_guard lock(mutex_);
  RoleStatus status = meter_.StatusOf(role_);
  status.ended = ended();
  // A slice that only waits would have ended.
  const std::chrono::nanoseconds slice(MonotonicNanoseconds() - slice_began_);
  if (slice > 5 * kSlice) status.waits_for.clear();
  return status;
}

}  // namespace menger
