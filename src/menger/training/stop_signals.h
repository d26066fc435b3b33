#pragma once

#include <csignal>

namespace menger {

// While it lives, the first SIGINT or SIGTERM is only noted, so that a run can finish what it does
// and save; the second one ends the process at once, with 128 + signal. At most one object at a
// time: signal handlers belong to the process. Children inherit nothing.
class StopSignals {
 public:
  StopSignals();   // Throws FailedPrecondition if there is another one.
  ~StopSignals();  // Puts the old handlers back.
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int received() const;                   // SIGINT, SIGTERM, or 0 for none. Any thread.
  static const char* NameOf(int signal);  // "SIGINT" or "SIGTERM"

 private:
  struct sigaction old_interrupt_;
  struct sigaction old_terminate_;
};

}  // namespace menger
