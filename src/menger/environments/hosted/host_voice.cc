#include "menger/environments/hosted/host_voice.h"

#include "menger/base/log.h"

namespace menger {

bool HostVoice::Say(std::string_view who, std::string_view line) {
  if (line.empty()) return true;
  {
    const std::lock_guard lock(mutex_);
    if (said_.size() > lines_max_ || !said_.emplace(line).second) return false;
    if (said_.size() > lines_max_) {
      LogInfo("{} prints more than {} different lines: `menger --log debug ...` shows all", who,
              lines_max_);
      return false;
    }
  }
  LogInfo("{} prints: {}", who, line);
  return IsLogged(LogLevel::kInfo);
}

void HostVoice::Warn(std::string_view who, const std::string& topic, std::string_view text) {
  {
    const std::lock_guard lock(mutex_);
    if (warned_.size() >= lines_max_ || !warned_.insert(topic).second) return;
  }
  LogWarning("{}: {}", who, text);
}

}  // namespace menger
