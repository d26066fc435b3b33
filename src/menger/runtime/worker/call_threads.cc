#include "menger/runtime/worker/call_threads.h"

#include <chrono>
#include <exception>
#include <utility>

namespace menger {
namespace {

// A call that takes longer than one to two of these is overtaken by the next.
constexpr std::chrono::microseconds kPatience{200};
// After so many looks that found nothing the watcher sleeps until there is a call.
constexpr int kQuietLooks = 50;
// No wait is endless; nothing but a notification ends one.
constexpr std::chrono::minutes kLookAround{1};

}  // namespace

CallThreads::CallThreads(int count, Next next)
    : count_(static_cast<std::size_t>(count)), next_(std::move(next)) {}

CallThreads::~CallThreads() {
  std::vector<Thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  turn_.notify_all();
}

void CallThreads::GiveTurn() {
  owner_ = std::thread::id();
  busy_ = false;
  if (idle_ > 0) {
    turn_.notify_one();
  } else if (!stopping_ && threads_.size() < count_) {
    try {
      threads_.emplace_back(ThreadOptions{.name = "call"}, [this]() noexcept { TakeTurns(); });
    } catch (const std::exception&) {
      if (threads_.empty()) throw;
      // The system has no more threads: the next that is done with its call goes on.
    }
  }
}

void CallThreads::PassOn() {
  const std::lock_guard lock(mutex_);
  if (busy_ && owner_ == std::this_thread::get_id()) GiveTurn();
}

void CallThreads::Begun() {
  const std::lock_guard lock(mutex_);
  if (owner_ != std::this_thread::get_id()) return;
  busy_ = true;
  ++calls_;
  if (asleep_) alarm_.notify_one();
}

bool CallThreads::HasTurn() {
  const std::lock_guard lock(mutex_);
  return owner_ == std::this_thread::get_id();
}

bool CallThreads::AwaitTurn(std::unique_lock<std::mutex>& lock) {
  ++idle_;
  while (owner_ != std::thread::id() && !stopping_) turn_.wait_for(lock, kLookAround);
  --idle_;
  owner_ = std::this_thread::get_id();
  return !stopping_;
}

void CallThreads::TakeTurns() {
  std::unique_lock lock(mutex_);
  std::function<void()> call;
  while (AwaitTurn(lock)) {
    while (owner_ == std::this_thread::get_id()) {
      lock.unlock();
      const bool more = next_(call);
      lock.lock();
      if (!more) {
        stopping_ = true;
        turn_.notify_all();
        alarm_.notify_one();
        return;
      }
      if (!call) continue;
      lock.unlock();
      std::exchange(call, nullptr)();
      lock.lock();
      if (owner_ == std::this_thread::get_id()) busy_ = false;
    }
  }
}

void CallThreads::Watch() {
  std::unique_lock lock(mutex_);
  GiveTurn();
  std::uint64_t seen = calls_;
  for (int quiet = 0; !stopping_;) {
    const bool news = calls_ != std::exchange(seen, calls_);
    if (busy_ && !news) GiveTurn();
    quiet = busy_ || news ? 0 : quiet + 1;
    if (quiet < kQuietLooks) {
      alarm_.wait_for(lock, kPatience);
      continue;
    }
    asleep_ = true;
    alarm_.wait_for(lock, kLookAround);
    asleep_ = false;
  }
}

}  // namespace menger
