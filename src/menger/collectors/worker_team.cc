#include "menger/collectors/worker_team.h"

#include <fmt/format.h>

#include <cstdlib>
#include <thread>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/log.h"

namespace menger {
namespace {

// How often an idle worker looks whether it is still wanted; only matters if its wake-up were lost.
constexpr std::chrono::seconds kIdleCheck{1};
constexpr std::chrono::milliseconds kHangCheck{5};
constexpr std::chrono::seconds kLook{1};  // Between two looks at whether workers make progress.

// The CPU of each thread: the last ones, which leaves the first to the caller; none if they do not
// go round, because a pinned thread that shares its CPU cannot be moved to one that falls idle.
std::vector<int> PlaceThreads(const WorkerTeamOptions& options) {
  const std::vector<int> cpus = options.cpus.empty() ? AvailableCpuList() : options.cpus;
  const auto threads = static_cast<std::size_t>(options.workers);
  if (!options.pin || threads + 1 > cpus.size()) return std::vector<int>(threads, -1);
  return std::vector<int>(cpus.end() - options.workers, cpus.end());
}

}  // namespace

WorkerTeam::WorkerTeam(const WorkerTeamOptions& options, Job job)
    : options_(options),
      job_(std::move(job)),
      stations_(std::make_unique<Station[]>(static_cast<std::size_t>(options.workers))) {
  const std::vector<int> cpus = PlaceThreads(options);
  try {
    for (int i = 0; i < options.workers; ++i) {
      threads_.emplace_back(
          ThreadOptions{.name = fmt::format("collect-{}", options.first_worker + i),
                        .cpu = cpus[i]},
          [this, i] { Run(i); });
    }
  } catch (...) {
    Halt();
    throw;
  }
}

WorkerTeam::~WorkerTeam() {
  Halt();
  if (hangs_) WaitOrExit();
}

void WorkerTeam::WaitOrExit() const {
  const Deadline deadline = Deadline::After(options_.grace);
  for (const Thread& thread : threads_) {
    while (!thread.finished()) {
      if (deadline.expired()) {
        LogError("thread '{}' still hangs in its environment: the process ends without it",
                 thread.name());
        std::_Exit(1);  // Not exit: that would destroy what the thread may use.
      }
      std::this_thread::sleep_for(kHangCheck);
    }
  }
}

void WorkerTeam::Halt() {
  closing_.store(true, std::memory_order_relaxed);
  halted_.store(true, std::memory_order_relaxed);
  start_.Advance();  // Whoever waits for a round looks at closing_.
}

void WorkerTeam::Run(int index) {
  Station& station = stations_[index];
  for (std::uint32_t round = 0;; ++round) {
    while (!start_.TryWaitFor(round + 1, kIdleCheck)) {
      if (closing_.load(std::memory_order_relaxed)) return;
    }
    if (closing_.load(std::memory_order_relaxed)) return;
    if (!halted()) {
      try {
        job_(options_.first_worker + index, static_cast<int>(round - slab_start_));
      } catch (...) {
        station.failure = std::current_exception();
        station.failed.store(true, std::memory_order_release);
        halted_.store(true, std::memory_order_relaxed);
      }
    }
    station.done.Advance();
  }
}

void WorkerTeam::WaitFor(int rounds) {
  const std::uint32_t target = slab_start_ + static_cast<std::uint32_t>(rounds);
  for (int i = 0; i < options_.workers; ++i) {
    Station& station = stations_[i];
    if (EpochCounter::HasReached(station.done.value(), target)) continue;
    // Counted in slices that were waited: while this process is stopped, only the clock goes on.
    const std::chrono::nanoseconds slice =
        std::min<std::chrono::nanoseconds>(options_.patience, kLook);
    std::chrono::nanoseconds waited(0);
    std::uint32_t seen = station.progress.load(std::memory_order_relaxed) + station.done.value();
    while (!station.done.TryWaitFor(target, slice)) {
      RethrowFailure();
      waited += slice;
      const std::uint32_t now =
          station.progress.load(std::memory_order_relaxed) + station.done.value();
      if (now != seen) {
        waited = std::chrono::nanoseconds(0);
      } else if (waited >= options_.patience) {
        hangs_ = true;
        Halt();
        throw DeadlineExceeded(
            "collector worker {} made no progress for {} s: one of its environments hangs, or is "
            "slower than the patience "
            "allows",
            options_.first_worker + i, std::chrono::duration<double>(options_.patience).count());
      }
      seen = now;
    }
  }
  if (halted()) RethrowFailure();
}

void WorkerTeam::RethrowFailure() const {
  for (int i = 0; i < options_.workers; ++i) {
    if (!stations_[i].failed.load(std::memory_order_acquire)) continue;
    try {
      std::rethrow_exception(stations_[i].failure);
    } catch (...) {
      throw WithContext(TranslateCurrentException(),
                        fmt::format("collector worker {}", options_.first_worker + i));
    }
  }
}

}  // namespace menger
