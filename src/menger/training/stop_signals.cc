#include "menger/training/stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

#include "menger/base/error.h"

namespace menger {
namespace {

// A handler is given nothing but the signal's number, so what it notes must be global.
std::atomic<int> received_signal{0};
std::atomic<bool> in_use{false};
static_assert(std::atomic<int>::is_always_lock_free, "a handler must not wait for a lock");

void OnSignal(int signal) {
  int none = 0;
  if (received_signal.compare_exchange_strong(none, signal)) return;
  constexpr std::string_view kText = "\nmenger: stopped at once, without saving\n";
  (void)!write(STDERR_FILENO, kText.data(), kText.size());
  _exit(128 + signal);
}

}  // namespace

StopSignals::StopSignals() {
  if (in_use.exchange(true)) throw FailedPrecondition("stop signals are already being watched");
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;  // Files that are being written must not see EINTR.
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  in_use = false;
}

int StopSignals::received() const { return received_signal.load(std::memory_order_relaxed); }

const char* StopSignals::NameOf(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace menger
