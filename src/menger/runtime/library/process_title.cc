#include "menger/runtime/library/process_title.h"

#include <errno.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <span>
#include <string>

namespace menger {
namespace {

constexpr std::string_view kPrefix = "ray::";
constexpr std::size_t kShortBytes = 16;  // With its zero byte, for the kernel.

// The bytes of this process's arguments, which lie one after the other from the first; none where
// they are not what the kernel says.
std::span<char> ArgumentBytes() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string shown{std::istreambuf_iterator<char>(file), {}};
  char* const first = program_invocation_name;
  for (std::size_t i = 0; i < shown.size(); ++i) {  // Up to a difference all is the arguments'.
    if (first[i] != shown[i]) return {};
  }
  return {first, shown.size()};
}

class Title {
 public:
  void SetIdle(std::string_view name) {
    const std::lock_guard lock(mutex_);
    idle_ = std::string(kPrefix) + std::string(name);
  }

  void Show(std::string_view name) {
    const std::lock_guard lock(mutex_);
    Write(kPrefix, name);
  }

  void ShowIdle() {
    const std::lock_guard lock(mutex_);
    Write("", idle_);
  }

 private:
  void Write(std::string_view prefix, std::string_view name) {
    if (room_.size() <= prefix.size()) return;
    const std::size_t length = std::min(name.size(), room_.size() - 1 - prefix.size());
    std::memcpy(room_.data(), prefix.data(), prefix.size());
    std::memcpy(room_.data() + prefix.size(), name.data(), length);
    const std::size_t used = prefix.size() + length;
    // What was longer, once the arguments themselves.
    if (used < shown_) std::memset(room_.data() + used, 0, shown_ - used);
    shown_ = used;
    std::array<char, kShortBytes> brief{};
    std::memcpy(brief.data(), room_.data(), std::min(used, brief.size() - 1));
    prctl(PR_SET_NAME, brief.data());
  }

  std::mutex mutex_;
  std::string idle_ = std::string(kPrefix) + "IDLE";
  std::span<char> room_ = ArgumentBytes();
  std::size_t shown_ = room_.size();
};

Title& OfThisProcess() {
  static Title title;
  return title;
}

}  // namespace

void ShowConstruction(std::string_view class_name) {
  OfThisProcess().SetIdle(class_name);
  OfThisProcess().Show(std::string(class_name) + ".__init__");
}

ShownCall::ShownCall(std::string_view name) { OfThisProcess().Show(name); }

ShownCall::~ShownCall() { OfThisProcess().ShowIdle(); }

}  // namespace menger
