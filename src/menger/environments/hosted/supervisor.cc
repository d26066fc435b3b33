#include "menger/environments/hosted/supervisor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "menger/base/clock.h"
#include "menger/environments/hosted/protocol.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kGrace{300};
constexpr std::chrono::seconds kKillAtMost{5};  // One that waits in the kernel cannot be killed.
constexpr std::chrono::milliseconds kSlice{10};
constexpr std::chrono::seconds kLookForMenger{1};

// The parent that /proc/N/stat names: "N (any text, brackets too) state parent ...".
pid_t ParentOf(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t bracket = text.rfind(") ");
  return bracket == std::string::npos ? 0 : std::atoi(text.c_str() + bracket + 4);
}

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && ParentOf(entry.path()) == getpid()) children.push_back(process);
  }
  return children;
}

// The host and what else has come to this process.
class Family {
 public:
  explicit Family(pid_t host) : host_(host) {}

  // Takes note of all that have ended.
  void Reap() {
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
      if (ended != host_) continue;
      host_ended_ = true;
      status_ = status;
    }
    empty_ = ended < 0;
  }

  // A killed process leaves its own children to this one: those are found in the next round.
  void KillAll() {
    if (!host_ended_) kill(host_, SIGKILL);
    WaitUntilEmpty(kGrace, /*killing=*/false);
    WaitUntilEmpty(kKillAtMost, /*killing=*/true);
  }

  bool host_ended() const { return host_ended_; }
  int status() const { return status_; }

 private:
  void WaitUntilEmpty(std::chrono::nanoseconds patience, bool killing) {
    const Deadline deadline = Deadline::After(patience);
    for (Reap(); !empty_ && !deadline.expired(); Reap()) {
      if (killing) {
        for (const pid_t child : Children()) kill(child, SIGKILL);
      }
      const timespec slice{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kSlice).count()};
      nanosleep(&slice, nullptr);
    }
  }

  const pid_t host_;
  bool host_ended_ = false;
  int status_ = SIGKILL;  // Unless the host says otherwise.
  bool empty_ = false;
};

[[noreturn]] void EndAs(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const rlimit none{};
  setrlimit(RLIMIT_CORE, &none);  // The host has left one, where they are wanted.
  signal(number, SIG_DFL);
  sigset_t open;
  sigemptyset(&open);
  sigprocmask(SIG_SETMASK, &open, nullptr);
  kill(getpid(), number);
  _exit(128 + number);
}

}  // namespace

void Supervise(pid_t host) {
  const pid_t menger = getppid();
  sigset_t every;
  sigfillset(&every);
  sigprocmask(SIG_SETMASK, &every, nullptr);
  signal(SIGCHLD, SIG_DFL);  // Ignored, it would take the host's status away.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, kEndHostSignal);

  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, kEndHostSignal);
  const timespec slice{.tv_sec = kLookForMenger.count(), .tv_nsec = 0};
  Family family(host);
  bool asked = false;
  for (family.Reap(); !asked && !family.host_ended(); family.Reap()) {
    // The look at the parent is for one that died before the kernel knew to tell.
    asked = getppid() != menger || sigtimedwait(&awaited, nullptr, &slice) == kEndHostSignal;
  }
  family.KillAll();
  EndAs(family.status());
}

}  // namespace menger
