#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "menger/runtime/client.h"

namespace menger {

// Coroutines that wait for objects without keeping a thread each:
//
//   Async<int> Sum(Runtime& runtime, int n) {
//     const int a = co_await runtime.Call<Square>(n);
//     co_return a + co_await runtime.Call<Square>(a);
//   }
//
//   std::vector<Async<int>> sums;
//   for (int i = 0; i < 100; ++i) sums.push_back(Sum(runtime, i));  // All have begun.
//   for (Async<int>& sum : sums) total += sum.Get();
//
// An Async runs at once until it first waits, and on whenever its thread waits for some Async
// (Get, or a call that is one itself). Everything happens on that thread. A function or method that
// calls name may return an Async<T>: for its caller it returns a T.
//
// Parameters that are references must outlive the coroutine, as with any other.

// Where a coroutine waits for an object. It leaves the loop when it is destroyed.
class ObjectWait {
 public:
  explicit ObjectWait(ObjectHandle object) : object_(std::move(object)) {}
  ObjectWait(const ObjectWait&) = delete;
  ObjectWait& operator=(const ObjectWait&) = delete;
  ~ObjectWait();

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter);

  const ObjectHandle& object() const { return object_; }

 private:
  friend class AsyncLoop;
  const ReferenceOwner& owner() const { return *object_.reference()->owner; }

  ObjectHandle object_;
  std::coroutine_handle<> waiter_;
  class AsyncLoop* loop_ = nullptr;  // In which it waits.
};

// What the coroutines of one call, or of one thread of the driver, wait for.
class AsyncLoop {
 public:
  static AsyncLoop& Current();

  // The loop of a call, while it is run on this thread.
  AsyncLoop() = default;
  AsyncLoop(const AsyncLoop&) = delete;
  AsyncLoop& operator=(const AsyncLoop&) = delete;
  ~AsyncLoop();
  // Makes `loop` that of this thread; returns the one before.
  static AsyncLoop* Exchange(AsyncLoop* loop);

  // Waits until some object is there, or its runtime has ended, and resumes who waits for it.
  // Throws DeadlineExceeded; FailedPrecondition if nobody waits for an object.
  void Step(const Deadline& deadline);

 private:
  friend class ObjectWait;
  // Which of those that wait is the first whose object is there.
  std::ptrdiff_t AwaitOne(const Deadline& deadline) const;

  std::vector<ObjectWait*> waits_;
};

// A coroutine that returns a T; below.
template <typename T>
class Async;

// What the promise of an Async<T> keeps; `return_value` or `return_void` is the only difference.
template <typename T>
struct AsyncResult {
  std::optional<T> value;
  template <typename V>
  void return_value(V&& result) {
    value.emplace(std::forward<V>(result));
  }
  T Take() { return std::move(*value); }
};
template <>
struct AsyncResult<void> {
  void return_void() {}
  void Take() {}
};

// A coroutine that has begun and its result, of which there is one owner; see above. Movable; one
// thread, on which it also runs. Dropped before it is done it ends where it waits.
template <typename T>
class [[nodiscard]] Async {
 public:
  using Value = T;

  struct promise_type : AsyncResult<T> {  // NOLINT: the name is the standard's.
    std::exception_ptr error;
    std::coroutine_handle<> continuation = std::noop_coroutine();

    Async get_return_object() {
      return Async(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
      struct Continue {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> done) const noexcept {
          return done.promise().continuation;
        }
        void await_resume() const noexcept {}
      };
      return Continue();
    }
    void unhandled_exception() { error = std::current_exception(); }
  };

  Async(Async&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Async& operator=(Async other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~Async() {
    if (coroutine_ != nullptr) coroutine_.destroy();
  }

  bool done() const { return coroutine_.done(); }

  // What it returns; throws what it throws, DeadlineExceeded (and goes on afterwards). Once.
  T Get(std::chrono::nanoseconds timeout = kNoTimeout) {
    const Deadline deadline = Deadline::After(timeout);
    while (!done()) AsyncLoop::Current().Step(deadline);
    return Result();
  }

  // Another coroutine of the thread waits for it; at most one does.
  bool await_ready() const { return done(); }
  void await_suspend(std::coroutine_handle<> waiter) { coroutine_.promise().continuation = waiter; }
  T await_resume() { return Result(); }

 private:
  explicit Async(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}

  T Result() {
    promise_type& promise = coroutine_.promise();
    if (promise.error) std::rethrow_exception(promise.error);
    return promise.Take();
  }

  std::coroutine_handle<promise_type> coroutine_;
};

// What a function that returns an R gives its caller.
template <typename R>
struct ResultOfAsync {
  using Type = R;
  static constexpr bool kAsync = false;
};
template <typename T>
struct ResultOfAsync<Async<T>> {
  using Type = T;
  static constexpr bool kAsync = true;
};

}  // namespace menger
