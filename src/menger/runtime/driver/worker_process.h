#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/child_process.h"
#include "menger/base/files.h"
#include "menger/runtime/calls/worker_program.h"

namespace menger {

// Called by the thread that watches the processes: short, and without exceptions. Of on_line,
// `worker` is -1 for what a process prints that was started ahead and has no number yet; of on_end,
// `process` is 0 where it could not be started.
struct WorkerEvents {
  std::function<void(int worker, pid_t process, std::string_view line)> on_line;
  std::function<void(int worker, pid_t process, const ChildEnd& end)> on_end;  // Once, last.
};

// The worker processes of a node. How they are started, watched and ended is ChildProcesses'
// affair; this class makes workers of them: numbers, control sockets, and a deadline until which
// each must have connected. Any thread may call.
class WorkerProcesses {
 public:
  // Ends this process where it is itself a worker that does not know it (EndForgottenWorker).
  explicit WorkerProcesses(WorkerEvents events,
                           std::chrono::nanoseconds connect_deadline = std::chrono::seconds(30));
  ~WorkerProcesses();  // Kills them; events come until it returns.

  // Keeps `count` processes of a program waiting, for Start to take where it is asked for the same.
  // One that ends by itself is not replaced before the next Start.
  void StartAhead(int count, const WorkerProgram& program = {});

  // Makes a process worker number `worker` >= 0, a number never used before, and returns at once.
  // What it gives is the node's end of the control socket: whoever closes it ends the worker. A
  // program that cannot be started is reported by on_end.
  FileDescriptor Start(int worker, const WorkerProgram& program);

  // The worker has said that it runs; before that it has the deadline of the constructor.
  void Connected(int worker);

  // As ChildProcesses::AfterReading.
  void AfterReading(std::function<void()> then) { children_.AfterReading(std::move(then)); }

  // 0 where it has none yet or any more.
  pid_t ProcessOf(int worker);

  // As ChildProcesses::KillAfter.
  void KillAfter(int worker, std::chrono::nanoseconds delay, std::string because = "");

 private:
  struct Process;

  // With mutex_ held.
  std::shared_ptr<Process> Spawn(const WorkerProgram& program);
  std::shared_ptr<Process> TakeSpare();
  void FillSpares();

  // By the watching thread.
  void HandleStart(Process& process, pid_t number);
  void HandleEnd(Process& process, const ChildEnd& end);
  static std::string Cause(const Process& process, const ChildEnd& end);

  const WorkerEvents events_;
  const std::chrono::nanoseconds connect_deadline_;

  std::mutex mutex_;
  std::map<int, std::shared_ptr<Process>> workers_;  // Guarded by mutex_.
  std::deque<std::shared_ptr<Process>> spares_;      // Guarded by mutex_.
  int ahead_ = 0;                                    // Guarded by mutex_.
  WorkerProgram ahead_program_;                      // What spares_ run. Guarded by mutex_.
  ChildProcesses children_;  // The last member: its thread uses those above.
};

}  // namespace menger
