#include "menger/base/memory_need.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

namespace menger {

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// "max", which is no number, is no limit.
std::uint64_t NumberIn(const std::string& path) {
  std::uint64_t number = 0;
  return std::ifstream(path) >> number ? number : kNoLimit;
}

}  // namespace

std::uint64_t ControlGroupLimit(const std::string& membership, const std::string& mount) {
  std::uint64_t limit = kNoLimit;
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,memory:/a/b", or "0::/a/b".
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_first_version = controllers.find(",memory,") != std::string::npos;
    if (!is_first_version && controllers != ",,") continue;
    const std::string root = is_first_version ? mount + "/memory" : mount;
    const char* const file = is_first_version ? "/memory.limit_in_bytes" : "/memory.max";
    std::string group = line.substr(second + 1);
    while (true) {
      limit = std::min(limit, NumberIn(root + group + file));
      if (group.empty()) break;
      group.resize(std::min(group.rfind('/'), group.size() - 1));
    }
  }
  return limit;
}

std::uint64_t MemoryLimit() {
  const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t allowed =
      std::min(machine, ControlGroupLimit("/proc/self/cgroup", "/sys/fs/cgroup"));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return allowed;
  return std::min<std::uint64_t>(allowed, limit.rlim_cur);
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
