#include "menger/environments/hosted/library/menger_host.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "menger/base/error.h"
#include "menger/environments/hosted/protocol.h"
#include "menger/environments/hosted/supervisor.h"

namespace {

using menger::HostEnd;

// The one host of this process. A C interface has nowhere else to keep it.
struct Host {
  std::optional<HostEnd> end;
  std::string text;
  std::string say;
  std::string error = "menger_host_open was not called";
};

Host& TheHost() {
  static Host host;
  return host;
}

menger_host_request Await(Host& host, double timeout_seconds) {
  const double nanoseconds = std::clamp(timeout_seconds, 0.0, 1e9) * 1e9;
  if (!host.end->Wait(std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds)))) return 0;
  const auto row = static_cast<std::int64_t>(host.end->control().row);
  return row * 256 + static_cast<std::int64_t>(host.end->command());
}

}  // namespace

extern "C" {

const char* menger_host_error(void) { return TheHost().error.c_str(); }

void menger_host_supervise(int32_t host) { menger::Supervise(host); }

int menger_host_open(int descriptor) {
  Host& host = TheHost();
  try {
    host.end.emplace(descriptor);
    return 0;
  } catch (...) {
    host.error = menger::TranslateCurrentException().what();
    return -1;
  }
}

menger_host_request menger_host_wait(double timeout_seconds) {
  Host& host = TheHost();
  return host.end ? Await(host, timeout_seconds) : -1;
}

menger_host_request menger_host_turn(double timeout_seconds) {
  Host& host = TheHost();
  if (!host.end) return -1;
  host.end->Done(host.say);
  host.say.clear();
  return Await(host, timeout_seconds);
}

int menger_host_fail(int32_t error_code, const char* text, uint64_t bytes) {
  Host& host = TheHost();
  if (!host.end) return -1;
  host.say.clear();
  host.end->Failed(error_code, {text, static_cast<std::size_t>(bytes)});
  return 0;
}

int menger_host_say(const char* text, uint64_t bytes) {
  TheHost().say.assign(text, static_cast<std::size_t>(bytes));
  return 0;
}

const char* menger_host_text(uint64_t* bytes) {
  Host& host = TheHost();
  host.text = host.end ? menger::ReadHostText(host.end->control()) : std::string();
  *bytes = host.text.size();
  return host.text.data();
}

int64_t menger_host_first_step(void) {
  Host& host = TheHost();
  return host.end ? host.end->control().first_step : -1;
}

int64_t menger_host_restarts_left(void) {
  Host& host = TheHost();
  if (!host.end) return -1;
  return host.end->control().restarts_left - host.end->control().restarts_used;
}

uint64_t menger_host_seed(void) {
  Host& host = TheHost();
  return host.end ? host.end->control().seed : 0;
}

int menger_host_use_restarts(int64_t count) {
  Host& host = TheHost();
  if (!host.end) return -1;
  host.end->control().restarts_used += count;
  return 0;
}

int menger_host_progress(void) {
  Host& host = TheHost();
  if (!host.end) return -1;
  host.end->ReportProgress();
  return 0;
}

int menger_host_doing(const char* text, uint64_t bytes, int32_t playing) {
  Host& host = TheHost();
  if (!host.end) return -1;
  host.end->ReportPhase(playing != 0 ? menger::HostPhase::kPlaying : menger::HostPhase::kMaking,
                        {text, static_cast<std::size_t>(bytes)});
  return 0;
}

}  // extern "C"
