#pragma once

// For tests of deadlines.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace menger {

// What a wait waits for comes, but long after the deadline: a wait that this ends, or that lasts
// even longer, has not kept its deadline. Nothing comes where the object ends before. However busy
// the machine, that is later than any deadline of milliseconds.
class MuchLater {
 public:
  explicit MuchLater(std::function<void()> event)
      : thread_([this, event = std::move(event)] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, std::chrono::seconds(20), [this] { return ending_; })) return;
          came_ = true;
          event();
        }) {}
  ~MuchLater() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }
  MuchLater(const MuchLater&) = delete;
  MuchLater& operator=(const MuchLater&) = delete;

  bool came() {
    const std::lock_guard lock(mutex_);
    return came_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  bool came_ = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace menger
