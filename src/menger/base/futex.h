#pragma once

#include <atomic>
#include <cstdint>

#include "menger/base/clock.h"

namespace menger {

// Sleeping in the kernel until a word changes. The word may lie in memory that several processes
// map (std::atomic::wait never wakes another process).

inline constexpr uint32_t kAllSleepers = 0xffffffff;

// Returns at once if the word is not `expected`, else when a wake with a common bit in `mask`
// comes, when the deadline passes, or for no reason: the caller looks again.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, const Deadline& deadline,
               uint32_t mask = kAllSleepers);

// Wakes all who sleep on the word with a common bit in their mask.
void FutexWake(std::atomic<uint32_t>& word, uint32_t mask = kAllSleepers);

}  // namespace menger
