#include "menger/runtime/async.h"

#include <algorithm>

#include "menger/runtime/runtime.h"

namespace menger {
namespace {

AsyncLoop*& ThisLoop() {
  static thread_local AsyncLoop* loop = nullptr;
  return loop;
}

}  // namespace

ObjectWait::~ObjectWait() {
  if (loop_ != nullptr) std::erase(loop_->waits_, this);
}

void ObjectWait::await_suspend(std::coroutine_handle<> waiter) {
  if (!object_.valid()) throw InvalidArgument("an ObjectRef that is awaited refers to nothing");
  owner().CheckOpen();
  AsyncLoop& loop = AsyncLoop::Current();
  const auto another = [this](const ObjectWait* wait) {
    return &wait->owner() != &owner() && wait->owner().open();
  };
  if (!loop.waits_.empty() && &loop.waits_.front()->owner() != &owner() &&
      std::any_of(loop.waits_.begin(), loop.waits_.end(), another)) {
    throw InvalidArgument("the coroutines of one thread wait for objects of two runtimes");
  }
  waiter_ = waiter;
  loop_ = &loop;
  loop.waits_.push_back(this);
}

AsyncLoop& AsyncLoop::Current() {
  static thread_local AsyncLoop of_thread;
  return ThisLoop() != nullptr ? *ThisLoop() : of_thread;
}

AsyncLoop* AsyncLoop::Exchange(AsyncLoop* loop) { return std::exchange(ThisLoop(), loop); }

// Coroutines that outlive their call never go on.
AsyncLoop::~AsyncLoop() {
  for (ObjectWait* const wait : waits_) wait->loop_ = nullptr;
}

void AsyncLoop::Step(const Deadline& deadline) {
  if (waits_.empty()) {
    throw FailedPrecondition("an Async that is waited for waits for no object of this thread");
  }
  // Whose runtime has ended is told so; all others wait for objects of one.
  auto next = std::find_if(waits_.begin(), waits_.end(),
                           [](const ObjectWait* wait) { return !wait->owner().open(); });
  if (next == waits_.end()) next = waits_.begin() + AwaitOne(deadline);
  ObjectWait& wait = **next;
  wait.loop_ = nullptr;
  waits_.erase(next);
  wait.waiter_.resume();
}

std::ptrdiff_t AsyncLoop::AwaitOne(const Deadline& deadline) const {
  std::vector<ObjectHandle> objects;
  for (const ObjectWait* const wait : waits_) objects.push_back(wait->object());
  Runtime runtime(*static_cast<Client*>(objects.front().reference()->owner));
  const std::vector<std::size_t> ready =
      runtime.FirstReady(objects, {.count = 1, .timeout = deadline.remaining()});
  if (ready.empty()) {
    throw DeadlineExceeded("{} objects that coroutines wait for were not ready in time",
                           objects.size());
  }
  return static_cast<std::ptrdiff_t>(ready.front());
}

}  // namespace menger
