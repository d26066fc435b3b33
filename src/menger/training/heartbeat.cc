#include "menger/training/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace menger {
namespace {

constexpr double kLookSeconds = 1;

}  // namespace

Heartbeat::Heartbeat(ProgressReporter& progress, double seconds)
    : progress_(progress), seconds_(seconds), thread_({.name = "heartbeat"}, [this] { Watch(); }) {}

Heartbeat::~Heartbeat() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  closing_.notify_all();
}

void Heartbeat::Begin(const char* what, const std::function<std::int64_t()>& steps) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  steps_ = &steps;
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
    if (what_ != nullptr && phase_.seconds() - said_at_ >= seconds_) Speak();
  }
}

void Heartbeat::Speak() {
  const double seconds = said_at_ = phase_.seconds();
  const std::int64_t steps = *steps_ ? (*steps_)() : 0;
  if (steps <= 0) {
    progress_.Say(fmt::format("{}: {:.0f} s so far", what_, seconds));
    return;
  }
  progress_.Say(fmt::format("{}: {} steps in {:.0f} s ({:.0f} steps/s)", what_, steps, seconds,
                            static_cast<double>(steps) / seconds));
}

}  // namespace menger
