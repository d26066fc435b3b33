#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

namespace menger {

// Passes on what hosts print, as log lines that begin with who says it: each different line once,
// however many hosts say it, and so many of them at most. All else is there under --log debug.
// Any thread.
class HostVoice {
 public:
  explicit HostVoice(std::size_t lines_max = 100) : lines_max_(lines_max) {}

  // Whether the line can be seen now.
  bool Say(std::string_view who, std::string_view line);

  // A warning, the first of each topic.
  void Warn(std::string_view who, const std::string& topic, std::string_view text);

 private:
  const std::size_t lines_max_;
  std::mutex mutex_;
  std::unordered_set<std::string> said_;    // Guarded by mutex_; bounded.
  std::unordered_set<std::string> warned_;  // Guarded by mutex_; bounded.
};

}  // namespace menger
