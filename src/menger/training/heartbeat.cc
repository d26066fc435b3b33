#include "menger/training/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace menger {
namespace {

constexpr double kLookSeconds = .2;
constexpr double kSlowRate = 10;  // Steps a second that need a digit behind the point.

}  // namespace

Heartbeat::Heartbeat(ProgressReporter& progress, std::function<bool()> stop_requested,
                     double seconds)
    : progress_(progress),
      stop_requested_(std::move(stop_requested)),
      seconds_(seconds),
      thread_({.name = "heartbeat"}, [this] { Watch(); }) {}

Heartbeat::~Heartbeat() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  closing_.notify_all();
}

void Heartbeat::Begin(const char* what, const std::function<std::int64_t()>& steps,
                      std::int64_t steps_total) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  steps_ = &steps;
  steps_total_ = steps_total;
  phase_.Restart();
  said_at_ = 0;
}

void Heartbeat::End() {
  const std::lock_guard lock(mutex_);
  what_ = nullptr;
  steps_ = nullptr;
}

void Heartbeat::Watch() {
  const std::chrono::duration<double> look(std::min(kLookSeconds, seconds_ / 4));
  std::unique_lock lock(mutex_);
  while (!closing_.wait_for(lock, look, [this] { return closed_; })) {
    if (what_ == nullptr) continue;
    if (!stop_confirmed_ && stop_requested_()) ConfirmStop();
    if (phase_.seconds() - said_at_ >= seconds_) Speak();
  }
}

void Heartbeat::Speak() {
  progress_.Say(PhaseText());
  said_at_ = phase_.seconds();
}

// A fast run has stopped before anybody looks.
void Heartbeat::ConfirmStop() {
  stop_confirmed_ = true;
  progress_.Say(
      fmt::format("stopping, once this is done and saved: {}; a second Ctrl-C ends the run at "
                  "once, as of its last checkpoint",
                  PhaseText()));
}

std::string Heartbeat::PhaseText() const {
  const double seconds = phase_.seconds();
  const std::int64_t steps = *steps_ ? (*steps_)() : 0;
  if (steps <= 0) return fmt::format("{}: {:.0f} s so far", what_, seconds);
  const double rate = static_cast<double>(steps) / seconds;
  std::string done = fmt::format("{}: {} steps in {:.0f} s ({:.{}f} steps/s)", what_, steps,
                                 seconds, rate, rate < kSlowRate ? 1 : 0);
  if (steps_total_ <= steps) return done;
  return fmt::format("{}, about {} left of {} steps", done,
                     DurationText(static_cast<double>(steps_total_ - steps) / rate), steps_total_);
}

}  // namespace menger
