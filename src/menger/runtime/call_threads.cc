#include "menger/runtime/call_threads.h"

#include <chrono>
#include <utility>

namespace menger {
namespace {

// No wait is endless; nothing but a notification ends one.
constexpr std::chrono::seconds kLookAround{1};

}  // namespace

CallThreads::CallThreads(int count) : count_(static_cast<std::size_t>(count)) {}

CallThreads::~CallThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  given_.notify_all();
  threads_.clear();
}

void CallThreads::Run(std::function<void()> call) {
  std::unique_lock lock(mutex_);
  next_ = std::move(call);
  if (idle_ == 0 && threads_.size() < count_) {
    threads_.emplace_back(ThreadOptions{.name = "call"}, [this]() noexcept { Serve(); });
  }
  given_.notify_one();
  while (next_ || beginning_ != std::thread::id()) begun_.wait_for(lock, kLookAround);
}

void CallThreads::Begun() {
  const std::lock_guard lock(mutex_);
  if (beginning_ != std::this_thread::get_id()) return;
  beginning_ = std::thread::id();
  begun_.notify_one();
}

void CallThreads::Serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    while (!next_ && !stopping_) given_.wait_for(lock, kLookAround);
    --idle_;
    if (!next_) return;
    const std::function<void()> call = *std::exchange(next_, std::nullopt);
    beginning_ = std::this_thread::get_id();
    lock.unlock();
    call();
    Begun();
    lock.lock();
  }
}

}  // namespace menger
