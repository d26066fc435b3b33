#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "menger/base/thread.h"

namespace menger {

// The threads of an actor that does several calls at once. A call is begun when the one before has
// begun; a thread is started only when a call finds no other free.
//
// One thread gives the calls.
class CallThreads {
 public:
  explicit CallThreads(int count);
  ~CallThreads();  // Waits for what runs.

  // Returns when the call has begun: it has said so, or is over. Waits while all threads are busy.
  // What the call throws ends the process.
  void Run(std::function<void()> call);
  // By the call, on its thread.
  void Begun();

 private:
  void Serve();

  const std::size_t count_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::condition_variable begun_;
  std::optional<std::function<void()>> next_;  // Guarded by mutex_, as what follows.
  std::thread::id beginning_;                  // Has taken one that has not begun.
  std::size_t idle_ = 0;                       // Threads that wait for a call.
  bool stopping_ = false;
  std::vector<Thread> threads_;  // Of whoever gives the calls.
};

}  // namespace menger
