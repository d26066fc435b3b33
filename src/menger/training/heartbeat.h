#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "menger/base/clock.h"
#include "menger/base/thread.h"
#include "menger/training/progress.h"

namespace menger {

// Tells a user who waits what a slow run is at: a line for every `seconds` that one phase takes,
// for example "collecting: 370 steps in 10 s (37 steps/s)". A phase that is over before says
// nothing. A stop that is requested meanwhile is confirmed at once, with what it waits for.
//
// One thread calls; another of its own speaks. Begin and End cost a lock each.
class Heartbeat {
 public:
  // `stop_requested` is asked on the other thread.
  explicit Heartbeat(
      ProgressReporter& progress, std::function<bool()> stop_requested = [] { return false; },
      double seconds = 10);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // `what` must stay; `steps` is asked on the other thread until End and says how many the phase
  // has done, 0 where nobody knows, of `steps_total`, likewise.
  void Begin(const char* what, const std::function<std::int64_t()>& steps,
             std::int64_t steps_total = 0);
  void End();

  // A phase as long as this object lives.
  class Phase {
   public:
    Phase(Heartbeat& heartbeat, const char* what, const std::function<std::int64_t()>& steps,
          std::int64_t steps_total = 0)
        : heartbeat_(heartbeat) {
      heartbeat.Begin(what, steps, steps_total);
    }
    ~Phase() { heartbeat_.End(); }
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;

   private:
    Heartbeat& heartbeat_;
  };

 private:
  void Watch();

  // With the mutex held.
  void Speak();
  void ConfirmStop();
  std::string PhaseText() const;

  ProgressReporter& progress_;
  const std::function<bool()> stop_requested_;
  const double seconds_;

  std::mutex mutex_;
  std::condition_variable closing_;  // Signalled when closed_ is set.
  bool closed_ = false;              // Guarded by mutex_, as all below.
  const char* what_ = nullptr;       // Null: between two phases.
  const std::function<std::int64_t()>* steps_ = nullptr;
  std::int64_t steps_total_ = 0;
  bool stop_confirmed_ = false;
  Stopwatch phase_;
  double said_at_ = 0;  // Seconds of the phase.
  Thread thread_;       // Last: it uses all of the above.
};

}  // namespace menger
