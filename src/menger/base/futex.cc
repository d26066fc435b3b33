#include "menger/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace menger {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

uint32_t* FutexWord(std::atomic<uint32_t>& word) { return reinterpret_cast<uint32_t*>(&word); }

}  // namespace

// Shared futexes (no FUTEX_PRIVATE_FLAG): other processes may wake. The bitset calls take a point
// in time of the monotonic clock, so an interrupted wait does not grow longer.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, const Deadline& deadline,
               uint32_t mask) {
  timespec end{};
  end.tv_sec = deadline.at() / kNanosecondsPerSecond;
  end.tv_nsec = deadline.at() % kNanosecondsPerSecond;
  syscall(SYS_futex, FutexWord(word), FUTEX_WAIT_BITSET, expected, &end, nullptr, mask);
}

void FutexWake(std::atomic<uint32_t>& word, uint32_t mask) {
  syscall(SYS_futex, FutexWord(word), FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, mask);
}

}  // namespace menger
