#include "menger/environments/hosted/host_voice.h"

#include "menger/base/log.h"

namespace menger {

void HostVoice::Say(std::string_view who, std::string_view line) {
  if (line.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (said_.size() > lines_max_ || !said_.emplace(line).second) return;
    if (said_.size() > lines_max_) {
      LogInfo("{} prints more than {} different lines: `menger --log debug ...` shows all", who,
              lines_max_);
      return;
    }
  }
  LogInfo("{} prints: {}", who, line);
}

}  // namespace menger
