#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "menger/base/thread.h"

namespace menger {

// The threads of an actor that does several calls at once. They take turns: one does calls, one
// after the other, as if it were alone, and so short calls cost no wake of another thread. When a
// call that has begun waits, or takes longer than a fraction of a millisecond, another thread goes
// on with the next. So calls begin in order.
class CallThreads {
 public:
  // Awaits the next call for a while: `call` is what does it, or empty if none has come. False:
  // there will be no more. By the thread whose turn it is.
  using Next = std::function<bool(std::function<void()>& call)>;

  // Up to `count` threads, which are started as they are needed.
  CallThreads(int count, Next next);
  ~CallThreads();  // Waits for those.

  // Starts, and passes the turn on when a call takes long. Until there are no more; does not wait
  // for those that still run. Once.
  void Watch();

  // By a call, on its thread. It has begun: another may overtake it.
  void Begun();
  // It is going to wait. Nothing where it has not begun, or does not have the turn.
  void PassOn();
  bool HasTurn();

 private:
  void TakeTurns();
  bool AwaitTurn(std::unique_lock<std::mutex>& lock);
  void GiveTurn();  // Under the mutex.

  const std::size_t count_;
  const Next next_;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::condition_variable alarm_;
  // All guarded by mutex_.
  std::thread::id owner_;    // Whose turn it is; none: nobody's.
  bool busy_ = false;        // The owner does a call, which has begun:
  std::uint64_t calls_ = 0;  // the how-manyth.
  bool asleep_ = false;      // Whoever watches, until there are calls again.
  bool stopping_ = false;
  std::size_t idle_ = 0;  // Threads that wait for their turn.
  std::vector<Thread> threads_;
};

}  // namespace menger
