#pragma once

#include <map>
#include <string>
#include <vector>

#include "menger/base/child_process.h"
#include "menger/base/mutex.h"

namespace menger {

// The keepers of a head (runtime/cluster/keeper.h): processes of this program that it starts, one
// for each program that makes detached actors. They end with it. What they log is logged here.
class Keepers {
 public:
  // `arguments`: of the command that is one, without its first two, the addresses of the head and
  // of the program.
  explicit Keepers(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}

  // Where the head is; before, none is started.
  void Begin(const std::string& head);

  // Answers kKeepQuestion: what stands for the keeper of that program, or kKeeperStarts, or why it
  // has ended before it began. Any thread.
  std::string Ask(const std::string& program);

 private:
  struct Keeper {
    std::string stands_for;  // "" until it is ready.
    std::string last_line;
    std::string end;  // Why it has ended; told once, and the next question starts another.
  };

  void Start(const std::string& program) MENGER_REQUIRES(mutex_);
  void Hear(const std::string& program, std::string_view line);
  void Ended(const std::string& program, const ChildEnd& end);

  const std::vector<std::string> arguments_;
  Mutex mutex_;
  std::string head_ MENGER_GUARDED_BY(mutex_);
  std::map<std::string, Keeper> keepers_ MENGER_GUARDED_BY(mutex_);  // By their programs.
  ChildProcesses children_;
};

}  // namespace menger
