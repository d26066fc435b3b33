#include "menger/cli/keepers.h"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/log.h"
#include "menger/runtime/cluster/keeper.h"

namespace menger {
namespace {

constexpr std::chrono::nanoseconds kEndsKept = std::chrono::minutes(1);
constexpr std::chrono::seconds kEndMax{3};

}  // namespace

void Keepers::Begin(const std::string& head) {
  const MutexLock lock(mutex_);
  head_ = head;
}

std::string Keepers::Ask(const NodeRecord& program) {
  const MutexLock lock(mutex_);
  if (head_.empty()) return std::string(kKeeperStarts);
  const auto found = keepers_.find(program.id);
  if (found == keepers_.end()) {
    const std::int64_t now = MonotonicNanoseconds();
    std::erase_if(keepers_, [now](const auto& entry) {
      return !entry.second.end.empty() && now - entry.second.ended_at > kEndsKept.count();
    });
    keepers_[program.id].child = Start(program);
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

void Keepers::End() {
  std::map<NodeId, Keeper> ending;
  {
    const MutexLock lock(mutex_);
    head_.clear();
    ending = keepers_;
  }
  for (const auto& [program, keeper] : ending) children_.Signal(keeper.child, SIGTERM);
  const Deadline deadline = Deadline::After(kEndMax);
  for (const auto& [program, keeper] : ending) {
    children_.WaitForEnd(keeper.child, deadline.remaining());
  }
}

ChildId Keepers::Start(const NodeRecord& program) {
  ChildProgram child{.arguments = {"menger", "node", "keep", head_, program.address,
                                   ToString(program.id), std::to_string(program.epoch)},
                     .file = "/proc/self/exe",
                     .heeds_signals = true,
                     .outlives = true};
  child.arguments.insert(child.arguments.end(), arguments_.begin(), arguments_.end());
  return children_.Start(
      std::move(child),
      {.on_start = [](pid_t) {},
       .on_line = [this, id = program.id](std::string_view line) { Hear(id, line); },
       .on_end = [this, id = program.id](const ChildEnd& end) { Ended(id, end); }});
}

void Keepers::Hear(const NodeId& program, std::string_view line) {
  const MutexLock lock(mutex_);
  Keeper& keeper = keepers_[program];
  if (keeper.stands_for.empty() && DecodeKeeper(line)) {
    keeper.stands_for = line;
    return LogInfo("the detached actors of program {} have a keeper", ToString(program));
  }
  keeper.last_line = line;
  fmt::print(stderr, "{}\n", line);
}

void Keepers::Ended(const NodeId& program, const ChildEnd& end) {
  const MutexLock lock(mutex_);
  Keeper& keeper = keepers_[program];
  LogInfo("the keeper of program {} {}", ToString(program), end.cause);
  if (!keeper.stands_for.empty()) {
    keepers_.erase(program);
    return;
  }
  keeper.end = fmt::format("the keeper of detached actors {}: {}", end.cause, keeper.last_line);
  keeper.ended_at = MonotonicNanoseconds();
}

}  // namespace menger
