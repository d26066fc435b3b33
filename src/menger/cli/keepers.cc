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
// Until a program whose keeper could not be succeeded is tried again.
constexpr std::chrono::nanoseconds kSuccessorPause = std::chrono::seconds(5);

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
    keepers_[program.id].child = StartKeeper(program);
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

void Keepers::Succeed(const std::vector<std::string>& programs) {
  const MutexLock lock(mutex_);
  if (head_.empty()) return;
  const std::int64_t now = MonotonicNanoseconds();
  for (const std::string& program : programs) {
    const auto found = successors_.find(program);
    if (found != successors_.end()) {
      const Successor& before = found->second;
      if (before.lives || now - before.ended_at < kSuccessorPause.count()) continue;
    }
    LogInfo("detached actors of program {} have no keeper any longer: another begins", program);
    successors_[program] = {.child = StartSuccessor(program)};
  }
}

void Keepers::End() {
  std::vector<ChildId> ending;
  {
    const MutexLock lock(mutex_);
    head_.clear();
    for (const auto& [program, keeper] : keepers_) ending.push_back(keeper.child);
    for (const auto& [program, successor] : successors_) {
      if (successor.lives) ending.push_back(successor.child);
    }
  }
  for (const ChildId child : ending) children_.Signal(child, SIGTERM);
  const Deadline deadline = Deadline::After(kEndMax);
  for (const ChildId child : ending) children_.WaitForEnd(child, deadline.remaining());
}

ChildId Keepers::Start(std::vector<std::string> arguments, ChildEvents events) {
  ChildProgram child{.arguments = std::move(arguments),
                     .file = "/proc/self/exe",
                     .heeds_signals = true,
                     .outlives = true};
  child.arguments.insert(child.arguments.end(), arguments_.begin(), arguments_.end());
  return children_.Start(std::move(child), std::move(events));
}

ChildId Keepers::StartKeeper(const NodeRecord& program) {
  const NodeId id = program.id;
  return Start({"menger", "node", "keep", head_, program.address, ToString(id),
                std::to_string(program.epoch)},
               {.on_start = [](pid_t) {},
                .on_line = [this, id](std::string_view line) { Hear(id, line); },
                .on_end = [this, id](const ChildEnd& end) { Ended(id, end); }});
}

ChildId Keepers::StartSuccessor(const std::string& program) {
  return Start({"menger", "node", "succeed", head_, program},
               {.on_line = [](std::string_view line) { fmt::print(stderr, "{}\n", line); },
                .on_end =
                    [this, program](const ChildEnd& end) {
                      LogInfo("the keeper of program {} {}", program, end.cause);
                      const MutexLock lock(mutex_);
                      Successor& successor = successors_[program];
                      successor.lives = false;
                      successor.ended_at = MonotonicNanoseconds();
                    }});
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
