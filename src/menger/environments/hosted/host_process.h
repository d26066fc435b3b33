#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/thread.h"
#include "menger/environments/hosted/hosted_group.h"
#include "menger/environments/hosted/protocol.h"
#include "menger/tensor/memory.h"

namespace menger {

// The host is dead: it ended, was killed, or hung and was killed for it. The text says which.
class HostLost : public Error {
 public:
  explicit HostLost(const std::string& text) : Error(ErrorCode::kUnavailable, text) {}
};

// One running host: started by the constructor, gone when the destructor returns.
//
// It leads a process group of its own, so that an interrupt at the terminal reaches menger alone
// and what a host leaves behind in its group is killed with it; a host whose environments may start
// processes of any kind runs under a supervisor. The kernel kills it when menger dies; SIGINT,
// SIGTERM and SIGHUP it ignores, because menger saves what it holds when those reach menger, too.
// Its standard input is empty; what it prints is read by a thread, which also waits for its end (so
// there is no zombie), and the last lines are told in errors. It may use all CPUs of menger,
// whatever thread started it.
//
// One thread at a time calls.
class HostProcess {
 public:
  // `inherited`: descriptors that the host has under the same numbers. Throws FailedPrecondition
  // where the program cannot be started.
  HostProcess(const HostProgram& program, std::span<const int> inherited);
  ~HostProcess();  // Asks it to close, waits for 2 s at most, then kills it.
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // To fill in before a Call: all but `command` and the text.
  HostControl& control() { return *control_; }

  // Has one request done. Throws HostLost when the host ends, or, after it was killed, when it has
  // made no progress for `deadline_seconds`; what the host reports as failed is thrown with the
  // code it gives, and the host goes on. Returns the text out.
  std::string Call(HostCommand command, double deadline_seconds, std::string_view text = {});

  std::int32_t process() const { return process_; }

 private:
  void Watch(const HostProgram& program, const std::vector<int>& inherited);
  int Start(const HostProgram& program, const std::vector<int>& inherited, int output);
  void ReadUntilEnd(FileDescriptor output);
  void KeepLines(std::string_view text);
  void Reap();
  bool WaitForEnd(double seconds);
  void Kill();
  void Signal(std::int32_t target, int number);  // A process, or its negative: a process group.
  std::string LastWords();
  void AwaitReply(HostCommand command, double deadline_seconds);

  std::unique_ptr<SharedMemory> memory_;
  HostControl* control_ = nullptr;
  std::uint32_t sent_ = 0;
  bool idle_ = true;  // No request is on its way.

  std::mutex mutex_;
  std::condition_variable changed_;  // Signalled when process_ or ended_ is set.
  std::atomic<std::int32_t> process_{0};
  std::atomic<bool> ended_{false};
  std::unique_ptr<Error> start_failure_;  // Guarded by mutex_.
  std::string cause_;                     // Guarded by mutex_; set before ended_.
  std::deque<std::string> lines_;         // Guarded by mutex_; bounded.
  std::string line_;                      // Of the watching thread: what has no end yet.
  Thread watcher_;  // Forks, too: the kernel takes the end of that thread for menger's death.
};

// "was killed by SIGSEGV (Segmentation fault)", from the status that waitpid gives.
std::string ExitCause(int wait_status);

}  // namespace menger
