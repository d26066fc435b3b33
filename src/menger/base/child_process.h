#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/child_launch.h"
#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/base/thread.h"

namespace menger {

// How a child ended.
struct ChildEnd {
  bool started = false;      // Otherwise the cause says why it could not be.
  int wait_status = -1;      // As waitpid gives it; -1 where nobody can know it.
  std::string cause;         // "was killed by SIGSEGV (Segmentation fault)"
  bool over_memory = false;  // It was killed because of LimitMemory.
};

// What a child does. Each is called by the thread that watches: let it be short and throw nothing.
// It may call every function of ChildProcesses but WaitForEnd. Those that are empty are left out.
struct ChildEvents {
  std::function<void(pid_t process)> on_start;
  std::function<void(std::string_view line)> on_line;  // A long one comes in pieces.
  std::function<void(const ChildEnd& end)> on_end;     // Once for each child, last of all.
};

using ChildId = std::int64_t;

// Processes that this one starts (see child_launch.h for what they are like), reads and outlives.
//
// One thread starts and watches them all; those that do nothing cost it nothing. What they print is
// told line by line. When one ends, by itself or not, what it has left in its process group is
// killed and it is waited for: there are no zombies. Functions may be called on any thread; a child
// that has ended, or never was, is none of their business.
class ChildProcesses {
 public:
  ChildProcesses();
  ~ChildProcesses();  // Kills all that live; events come until it returns.
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  // Returns at once; on_start or on_end follows.
  ChildId Start(ChildProgram program, ChildEvents events);

  // Sends a signal to the process alone, if it has been started.
  void Signal(ChildId child, int number);

  // Kills it and its process group after `delay`, unless CancelKill comes before; the earliest of
  // several calls counts. The reason, if given, becomes its end's cause: "was killed: <because>".
  void KillAfter(ChildId child, std::chrono::nanoseconds delay, std::string because = "");
  void CancelKill(ChildId child);

  // Kills it when it holds more memory of its own (resident, not shared with files or others) than
  // this; looked at four times a second. 0: no limit.
  void LimitMemory(ChildId child, std::uint64_t bytes_max);

  // Calls `then`, on the thread that watches, once all lines have been told that children had
  // printed before; not at all if this ends first.
  void AfterReading(std::function<void()> then);

  // Returns true when it has ended and on_end has returned, false after `timeout`.
  bool WaitForEnd(ChildId child, std::chrono::nanoseconds timeout);

 private:
  struct Child;

  Child* Find(ChildId child);
  void Wake();
  void Watch();
  void Round();
  std::set<ChildId> TakeDue();
  std::chrono::nanoseconds Patience();
  bool AwaitEvents(std::chrono::nanoseconds patience);
  bool Listen(ChildId id, int descriptor) const;
  void CloseOutput(Child& child) const;
  void Tend(ChildId id, Child& child);
  void CheckMemory(ChildId id, Child& child);
  void Launch(ChildId id, Child& child);
  void KillWhereDue(ChildId id, Child& child);
  void Finish(ChildId id, Child& child, bool zombie);
  void Erase(ChildId id, Child& child, const ChildEnd& end);

  const FileDescriptor wake_;    // An eventfd: there is something to do before the next look.
  const FileDescriptor events_;  // An epoll of it, and of what children print and their ends.
  std::mutex mutex_;
  std::condition_variable ended_;  // Signalled when a child leaves children_.
  // Guarded by mutex_; only the watching thread removes. What that thread alone uses of a child
  // needs no lock.
  std::map<ChildId, std::unique_ptr<Child>> children_;
  ChildId next_ = 1;          // Guarded by mutex_.
  bool stopping_ = false;     // Guarded by mutex_.
  std::set<ChildId> fresh_;   // To be started. Guarded by mutex_.
  std::set<ChildId> timed_;   // Have a time to be killed at. Guarded by mutex_.
  std::set<ChildId> looked_;  // To be looked at now and then. Guarded by mutex_.
  std::vector<std::function<void()>> after_reading_;  // Guarded by mutex_.
  Deadline next_look_ = Deadline::After({});
  std::set<ChildId> ready_;  // Of the watching thread: something was heard of them.
  Thread watcher_;           // Starts them, too: the kernel takes its end for that of this process.
};

// Memory of a process that it alone has (resident, not shared with files or others); 0 if it is
// gone.
std::uint64_t OwnMemory(pid_t process);

// "ended with exit status 3", from the status that waitpid gives.
std::string ExitCause(int wait_status);

}  // namespace menger
