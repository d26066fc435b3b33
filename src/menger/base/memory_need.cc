#include "menger/base/memory_need.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace menger {

std::uint64_t MemoryLimit() {
  const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return machine;
  return std::min<std::uint64_t>(machine, limit.rlim_cur);
}

std::string MemoryText(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

void RequireMemory(double bytes, std::string_view purpose) {
  const auto limit = static_cast<double>(MemoryLimit());
  if (bytes <= limit) return;
  throw Unavailable("out of memory for {}: it takes {}, and this process can have {}", purpose,
                    MemoryText(bytes), MemoryText(limit));
}

void ThrowOutOfMemory(std::string_view purpose, std::string_view cause) {
  throw Unavailable("out of memory for {}{}{}", purpose, cause.empty() ? "" : ": ", cause);
}

}  // namespace menger
