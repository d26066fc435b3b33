#include "menger/cli/keepers.h"

#include <fmt/format.h>

#include <cstdio>

#include "menger/base/log.h"
#include "menger/runtime/cluster/keeper.h"

namespace menger {

void Keepers::Begin(const std::string& head) {
  const MutexLock lock(mutex_);
  head_ = head;
}

std::string Keepers::Ask(const std::string& program) {
  const MutexLock lock(mutex_);
  if (head_.empty()) return std::string(kKeeperStarts);
  const auto found = keepers_.find(program);
  if (found == keepers_.end()) {
    keepers_[program];
    Start(program);
    return std::string(kKeeperStarts);
  }
  const Keeper& keeper = found->second;
  if (!keeper.end.empty()) {
    std::string end = keeper.end;
    keepers_.erase(found);
    return end;
  }
  return keeper.stands_for.empty() ? std::string(kKeeperStarts) : keeper.stands_for;
}

void Keepers::Start(const std::string& program) {
  ChildProgram child{.arguments = {"menger", "node", "keep", head_, program},
                     .file = "/proc/self/exe",
                     .heeds_signals = true};
  child.arguments.insert(child.arguments.end(), arguments_.begin(), arguments_.end());
  children_.Start(std::move(child),
                  {.on_start = [](pid_t) {},
                   .on_line = [this, program](std::string_view line) { Hear(program, line); },
                   .on_end = [this, program](const ChildEnd& end) { Ended(program, end); }});
}

void Keepers::Hear(const std::string& program, std::string_view line) {
  const MutexLock lock(mutex_);
  Keeper& keeper = keepers_[program];
  if (keeper.stands_for.empty() && DecodeKeeper(line)) {
    keeper.stands_for = line;
    return LogInfo("the detached actors of the program at {} have a keeper", program);
  }
  keeper.last_line = line;
  fmt::print(stderr, "{}\n", line);
}

void Keepers::Ended(const std::string& program, const ChildEnd& end) {
  const MutexLock lock(mutex_);
  Keeper& keeper = keepers_[program];
  LogInfo("the keeper of the program at {} {}", program, end.cause);
  if (!keeper.stands_for.empty()) {
    keepers_.erase(program);
  } else {
    keeper.end = fmt::format("the keeper of detached actors {}: {}", end.cause, keeper.last_line);
  }
}

}  // namespace menger
