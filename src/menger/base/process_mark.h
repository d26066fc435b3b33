#pragma once

#include <atomic>
#include <cstdint>

namespace menger {

// Notes which process made it. A fork has a copy of all that its parent had in memory, but none of
// the parent's other threads, and no part of its own in what the parent shares with others: who
// holds such a thing asks its mark first. Costs a comparison, no system call.
class ProcessMark {
 public:
  ProcessMark();

  // Whether this process is a fork of the one that made it, at whatever remove.
  bool InFork() const { return forks_ != forks_so_far.load(std::memory_order_relaxed); }

 private:
  static std::atomic<std::uint32_t> forks_so_far;  // Between the first process and this one.

  const std::uint32_t forks_;
};

}  // namespace menger
