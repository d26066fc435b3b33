#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/child_process.h"
#include "menger/base/mutex.h"
#include "menger/runtime/control/node_record.h"

namespace menger {

// The keepers of a head (runtime/cluster/keeper.h): processes of this program that it starts, one
// for each program that makes detached actors. They end when it does in order; where it is killed
// they go on while there is a cluster. What they log is logged here.
class Keepers {
 public:
  // `arguments`: of the command that is one, without those that say who the head and the program
  // are.
  explicit Keepers(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}

  // Where the head is; before, none is started.
  void Begin(const std::string& head);

  // Answers a KeepQuestion: what stands for the keeper of that program, or kKeeperStarts, or why it
  // has ended before it began. Any thread.
  std::string Ask(const NodeRecord& program);
  // Starts keepers for the programs, whose own are gone (ProgramsWithoutKeeper); again after a
  // while where one has ended without a success.
  void Succeed(const std::vector<std::string>& programs);
  // Ends them, who leave the cluster while it is there; none is started any longer.
  void End();

 private:
  struct Keeper {
    ChildId child = 0;
    std::string stands_for;  // "" until it is ready.
    std::string last_line;
    std::string end;  // Why it has ended; told once, and the next question starts another,
    std::int64_t ended_at = 0;  // unless nobody asks for a while.
  };

  // Of a program that is gone.
  struct Successor {
    ChildId child = 0;
    bool lives = true;
    std::int64_t ended_at = 0;
  };

  ChildId StartKeeper(const NodeRecord& program) MENGER_REQUIRES(mutex_);
  ChildId StartSuccessor(const std::string& program) MENGER_REQUIRES(mutex_);
  ChildId Start(std::vector<std::string> arguments, ChildEvents events);
  void Hear(const NodeId& program, std::string_view line);
  void Ended(const NodeId& program, const ChildEnd& end);

  const std::vector<std::string> arguments_;
  Mutex mutex_;
  std::string head_ MENGER_GUARDED_BY(mutex_);
  std::map<NodeId, Keeper> keepers_ MENGER_GUARDED_BY(mutex_);  // By their programs.
  std::map<std::string, Successor> successors_ MENGER_GUARDED_BY(mutex_);
  ChildProcesses children_;
};

}  // namespace menger
