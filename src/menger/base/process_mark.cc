#include "menger/base/process_mark.h"

#include <pthread.h>

#include "menger/base/error.h"

namespace menger {

constinit std::atomic<std::uint32_t> ProcessMark::forks_so_far{0};

ProcessMark::ProcessMark() : forks_(forks_so_far.load(std::memory_order_relaxed)) {
  static const int refusal = pthread_atfork(
      nullptr, nullptr, [] { forks_so_far.fetch_add(1, std::memory_order_relaxed); });
  if (refusal != 0) throw FromErrno("forks of this process cannot be noticed", refusal);
}

}  // namespace menger
