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

#include "menger/base/child_process.h"
#include "menger/base/error.h"
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
// base/child_launch.h says what is special about its process. What it leaves behind in its process
// group is killed with it; a host whose environments may start processes of any kind runs under a
// supervisor. The last lines that it prints are told in errors, unless all were seen as they came.
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

  // What a host that was lost during kCheck was at: "step 300"; "" before it said anything.
  std::string LastDoing() const;

  std::int32_t process() const { return process_; }

 private:
  // `seen`: by the user, when it was printed.
  struct Line {
    std::string text;
    bool seen = false;
  };

  void KeepStart(std::int32_t process);
  void KeepLine(std::string_view line);
  void KeepEnd(const ChildEnd& end);
  bool WaitForEnd(double seconds);
  void Kill();
  std::string LastWords();
  void AwaitReply(HostCommand command, double deadline_seconds);

  std::unique_ptr<SharedMemory> memory_;
  HostControl* control_ = nullptr;
  std::uint32_t sent_ = 0;
  bool idle_ = true;  // No request is on its way.

  const double step_deadline_seconds_;
  const std::string speaker_;
  const std::shared_ptr<HostVoice> voice_;  // May be null.
  std::mutex mutex_;
  std::condition_variable started_;  // Signalled when process_ or ended_ is set.
  std::atomic<std::int32_t> process_{0};
  std::atomic<bool> ended_{false};
  std::string cause_;       // Guarded by mutex_; set before ended_.
  std::deque<Line> lines_;  // Guarded by mutex_; bounded.
  ChildId child_ = 0;
  ChildProcesses processes_;  // The last member: its thread uses those above.
};

}  // namespace menger
