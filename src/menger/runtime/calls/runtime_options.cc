#include "menger/runtime/calls/runtime_options.h"

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kWorkersMax = 4096;
// The addresses of segments, of which there is one a worker, must be had.
constexpr std::uint64_t kStoreBytesMax = std::uint64_t{1} << 42;

void CheckRange(const char* option, std::int64_t value, std::uint64_t min, std::uint64_t max) {
  if (value >= 0 && static_cast<std::uint64_t>(value) >= min &&
      static_cast<std::uint64_t>(value) <= max) {
    return;
  }
  throw InvalidArgument("RuntimeOptions::{} is {}; it must lie between {} and {}", option, value,
                        min, max);
}

// A year is longer than anybody waits.
void CheckSeconds(const char* option, double value) {
  constexpr double kMin = 0.001;
  constexpr double kMax = 31'536'000;
  if (value >= kMin && value <= kMax) return;
  throw InvalidArgument("RuntimeOptions::{} is {}; it must lie between {} and {:.0f} seconds",
                        option, value, kMin, kMax);
}

}  // namespace

void CheckOptions(const RuntimeOptions& options) {
  CheckRange("workers", options.workers, 0, kWorkersMax);
  CheckRange("workers_max", options.workers_max, 1, kWorkersMax);
  CheckRange("workers_ahead", options.workers_ahead, 0, kWorkersMax);
  CheckRange("isolation", static_cast<int>(options.isolation), 0, 1);
  CheckSeconds("join_seconds", options.join_seconds);
  CheckSeconds("node_wait_seconds", options.node_wait_seconds);
  const bool elsewhere = !options.address.empty() && options.address != "local";
  if (elsewhere && options.isolation == Isolation::kThread) {
    throw InvalidArgument(
        "RuntimeOptions::address is '{}' and isolation kThread; calls on other machines run in "
        "processes",
        options.address);
  }
  if (options.store_bytes_max > kStoreBytesMax) {
    throw InvalidArgument("RuntimeOptions::store_bytes_max is {}; it must be at most {}",
                          options.store_bytes_max, kStoreBytesMax);
  }
  if (options.waiting_calls_max == 0 || options.waiting_bytes_max == 0) {
    throw InvalidArgument(
        "RuntimeOptions::waiting_calls_max is {} and waiting_bytes_max {}; with 0 no call could be "
        "made",
        options.waiting_calls_max, options.waiting_bytes_max);
  }
  for (const Resources::Named& resource : options.resources.amounts()) {
    Resources::CheckName(resource.name);
  }
}

}  // namespace menger
