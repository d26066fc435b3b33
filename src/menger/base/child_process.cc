#include "menger/base/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"

namespace menger {
namespace {

constexpr std::size_t kPieceBytesMax = 4096;  // Of a line.
constexpr int kReadsARound = 16;  // So that one that prints a lot leaves time for others.
constexpr int kReadsAtEnd = 1024;
constexpr std::chrono::milliseconds kLookEvery{250};  // At memory, and where there is no pidfd.
constexpr std::chrono::minutes kLongest{1};
constexpr std::size_t kEventsAtOnce = 64;
constexpr std::chrono::seconds kStopAtMost{10};  // One that waits in the kernel stays.

}  // namespace

struct ChildProcesses::Child {
  ChildProgram program;
  ChildEvents events;

  // The watching thread's.
  FileDescriptor output;
  FileDescriptor pidfd;  // None where the kernel has no such thing.
  std::string line;      // What has no end yet.
  bool over_memory = false;
  Deadline next_memory_look = Deadline::After({});

  // Guarded by mutex_.
  pid_t process =
      0;  // 0 until it runs and once it has been waited for: then the number is another's.
  std::optional<Deadline> kill_at;
  std::string because;         // Of the kill to come.
  std::string killed_because;  // Of the one that was sent.
  std::uint64_t memory_max = 0;

  // False at the end of the output.
  bool Read(int reads) {
    char buffer[4096];
    ssize_t got = 1;
    while (got > 0 && reads-- > 0) {
      got = read(output.get(), buffer, sizeof(buffer));
      for (ssize_t i = 0; i < got; ++i) Append(buffer[i]);
    }
    return got != 0;
  }

  void Append(char c) {
    if (c != '\n') line += c;
    if (c == '\n' || line.size() == kPieceBytesMax) EndLine();
  }

  void EndLine() {
    if (!line.empty() && events.on_line) events.on_line(line);
    line.clear();
  }
};

ChildProcesses::ChildProcesses()
    : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), events_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!wake_.valid()) throw FromErrno("cannot make an eventfd", errno);
  if (!events_.valid() || !Listen(0, wake_.get())) throw FromErrno("cannot make an epoll", errno);
  watcher_ = Thread({.name = "child watcher"}, [this] { Watch(); });
}

ChildProcesses::~ChildProcesses() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [id, child] : children_) {
      child->kill_at = Deadline::After({});
      timed_.insert(id);
    }
  }
  Wake();
}

void ChildProcesses::Wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof(one));
}

ChildProcesses::Child* ChildProcesses::Find(ChildId child) {
  const auto found = children_.find(child);
  return found == children_.end() ? nullptr : found->second.get();
}

ChildId ChildProcesses::Start(ChildProgram program, ChildEvents events) {
  auto child = std::make_unique<Child>();
  child->program = std::move(program);
  child->events = std::move(events);
  ChildId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_++;
    children_.emplace(id, std::move(child));
    fresh_.insert(id);
  }
  Wake();
  return id;
}

void ChildProcesses::Signal(ChildId child, int number) {
  const std::lock_guard lock(mutex_);
  if (Child* const found = Find(child); found != nullptr && found->process != 0) {
    kill(found->process, number);
  }
}

void ChildProcesses::KillAfter(ChildId child, std::chrono::nanoseconds delay, std::string because) {
  {
    const std::lock_guard lock(mutex_);
    Child* const found = Find(child);
    if (found == nullptr) return;
    const Deadline at = Deadline::After(delay);
    if (found->kill_at.has_value() && found->kill_at->remaining() <= at.remaining()) return;
    found->kill_at = at;
    found->because = std::move(because);
    timed_.insert(child);
  }
  Wake();
}

void ChildProcesses::CancelKill(ChildId child) {
  const std::lock_guard lock(mutex_);
  if (Child* const found = Find(child); found != nullptr) found->kill_at.reset();
  timed_.erase(child);
}

void ChildProcesses::LimitMemory(ChildId child, std::uint64_t bytes_max) {
  {
    const std::lock_guard lock(mutex_);
    Child* const found = Find(child);
    if (found == nullptr || found->memory_max == bytes_max) return;
    found->memory_max = bytes_max;
    if (!looked_.insert(child).second) return;
  }
  Wake();
}

void ChildProcesses::AfterReading(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    after_reading_.push_back(std::move(then));
  }
  Wake();
}

bool ChildProcesses::WaitForEnd(ChildId child, std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, timeout, [&] { return Find(child) == nullptr; });
}

void ChildProcesses::Watch() {
  std::optional<Deadline> stop;
  // Who was there before the look that was the last, which has found all that was printed by then.
  std::vector<std::function<void()>> after_reading;
  bool found_all = true;
  for (;;) {
    Round();
    if (found_all) {
      for (const auto& then : std::exchange(after_reading, {})) then();
    }
    {
      const std::lock_guard lock(mutex_);
      if (after_reading.empty()) after_reading.swap(after_reading_);
      if (stopping_ && !stop.has_value()) stop = Deadline::After(kStopAtMost);
      if (stopping_ && (children_.empty() || stop->expired())) break;
    }
    found_all = AwaitEvents(after_reading.empty() ? Patience() : std::chrono::nanoseconds(0));
  }
  for (const auto& [id, child] : children_) {
    LogWarning("process {} ('{}') does not end: it waits in the kernel", child->process,
               child->program.name());
  }
}

// Everything that is due.
void ChildProcesses::Round() {
  std::uint64_t wakes = 0;
  [[maybe_unused]] const auto got = read(wake_.get(), &wakes, sizeof(wakes));
  for (const ChildId id : TakeDue()) {
    Child* child = nullptr;
    {
      const std::lock_guard lock(mutex_);
      child = Find(id);
    }
    if (child != nullptr) child->process == 0 ? Launch(id, *child) : Tend(id, *child);
  }
}

std::set<ChildId> ChildProcesses::TakeDue() {
  std::set<ChildId> due = std::exchange(ready_, {});
  const std::lock_guard lock(mutex_);
  due.merge(fresh_);
  fresh_.clear();
  for (const ChildId id : timed_) {
    const std::optional<Deadline>& kill_at = children_.at(id)->kill_at;
    if (kill_at.has_value() && kill_at->expired()) due.insert(id);
  }
  if (next_look_.expired()) {
    next_look_ = Deadline::After(kLookEvery);
    due.insert(looked_.begin(), looked_.end());
  }
  return due;
}

std::chrono::nanoseconds ChildProcesses::Patience() {
  const std::lock_guard lock(mutex_);
  std::chrono::nanoseconds patience = kLongest;
  if (!fresh_.empty()) return {};
  if (!looked_.empty() || stopping_) patience = next_look_.remaining();
  for (const ChildId id : timed_) {
    const std::optional<Deadline>& kill_at = children_.at(id)->kill_at;
    if (kill_at.has_value()) patience = std::min(patience, kill_at->remaining());
  }
  return patience;
}

// False if there may be more.
bool ChildProcesses::AwaitEvents(std::chrono::nanoseconds patience) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  std::array<epoll_event, kEventsAtOnce> found;
  const int count = epoll_wait(events_.get(), found.data(), static_cast<int>(found.size()),
                               static_cast<int>(milliseconds));
  for (int i = 0; i < count; ++i) {
    const auto id = static_cast<ChildId>(found[static_cast<std::size_t>(i)].data.u64);
    if (id != 0) ready_.insert(id);
  }
  return count < static_cast<int>(found.size());
}

bool ChildProcesses::Listen(ChildId id, int descriptor) const {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<std::uint64_t>(id)}};
  return epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

// Taken out first: where this process has forked, the copy would keep it in.
void ChildProcesses::CloseOutput(Child& child) const {
  if (!child.output.valid()) return;
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, child.output.get(), nullptr);
  child.output.Close();
}

void ChildProcesses::Tend(ChildId id, Child& child) {
  CheckMemory(id, child);
  KillWhereDue(id, child);
  if (child.output.valid() && !child.Read(kReadsARound)) CloseOutput(child);
  // An error means that somebody else has waited for it, or that SIGCHLD is ignored.
  siginfo_t info{};
  const bool ours =
      waitid(P_PID, static_cast<id_t>(child.process), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (!ours || info.si_pid != 0) Finish(id, child, /*zombie=*/ours);
}

void ChildProcesses::CheckMemory(ChildId id, Child& child) {
  std::uint64_t memory_max = 0;
  {
    const std::lock_guard lock(mutex_);
    memory_max = child.memory_max;
  }
  if (memory_max == 0 || !child.next_memory_look.expired()) return;
  child.next_memory_look = Deadline::After(kLookEvery);
  const std::uint64_t used = OwnMemory(child.process);
  if (used <= memory_max) return;
  child.over_memory = true;
  KillAfter(id, {},
            fmt::format("it held {:.1f} MiB of memory, more than the {:.1f} MiB of its budget",
                        static_cast<double>(used) / (1 << 20),
                        static_cast<double>(memory_max) / (1 << 20)));
}

void ChildProcesses::Launch(ChildId id, Child& child) {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (child.kill_at.has_value() && child.kill_at->expired()) {
        throw Cancelled("was not started any more");
      }
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw FromErrno("cannot make a pipe for a process", errno);
    child.output = FileDescriptor(ends[0]);
    const FileDescriptor input(ends[1]);
    fcntl(child.output.get(), F_SETFL, O_NONBLOCK);
    const pid_t process = LaunchChild(child.program, input.get());
    child.pidfd = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    const bool heard =
        Listen(id, child.output.get()) && child.pidfd.valid() && Listen(id, child.pidfd.get());
    {
      const std::lock_guard lock(mutex_);
      child.process = process;
      if (!heard) looked_.insert(id);
    }
    if (child.events.on_start) child.events.on_start(process);
  } catch (...) {
    Erase(id, child, {.cause = TranslateCurrentException().what()});
  }
}

void ChildProcesses::KillWhereDue(ChildId id, Child& child) {
  const std::lock_guard lock(mutex_);
  if (!child.kill_at.has_value() || !child.kill_at->expired()) return;
  child.kill_at.reset();
  timed_.erase(id);
  child.killed_because = std::move(child.because);
  kill(child.process, SIGKILL);  // It may have left its group.
  kill(-child.process, SIGKILL);
}

// It has ended; where it is no zombie, it is gone and nobody can know how it ended.
void ChildProcesses::Finish(ChildId id, Child& child, bool zombie) {
  ChildEnd end{.started = true};
  if (zombie) kill(-child.process, SIGKILL);  // The number is still its own.
  if (child.output.valid()) child.Read(kReadsAtEnd);
  child.EndLine();
  {
    const std::lock_guard lock(mutex_);
    if (zombie && waitpid(child.process, &end.wait_status, 0) == child.process) {
      const bool killed = WIFSIGNALED(end.wait_status) && WTERMSIG(end.wait_status) == SIGKILL;
      end.cause = killed && !child.killed_because.empty() ? "was killed: " + child.killed_because
                                                          : ExitCause(end.wait_status);
      end.over_memory = killed && child.over_memory;
    } else {
      end.cause = "has ended, and something else in this process took its exit status";
    }
    child.process = 0;
  }
  Erase(id, child, end);
}

void ChildProcesses::Erase(ChildId id, Child& child, const ChildEnd& end) {
  if (child.events.on_end) child.events.on_end(end);
  CloseOutput(child);
  if (child.pidfd.valid()) epoll_ctl(events_.get(), EPOLL_CTL_DEL, child.pidfd.get(), nullptr);
  decltype(children_)::node_type gone;  // Destroyed outside the lock: the events are the owner's.
  {
    const std::lock_guard lock(mutex_);
    gone = children_.extract(id);
    for (std::set<ChildId>* const ids : {&fresh_, &timed_, &looked_}) ids->erase(id);
  }
  ended_.notify_all();
}

std::uint64_t OwnMemory(pid_t process) {
  const FileDescriptor file(
      open(fmt::format("/proc/{}/statm", process).c_str(), O_RDONLY | O_CLOEXEC));
  char text[256] = {};
  if (read(file.get(), text, sizeof(text) - 1) <= 0) return 0;
  unsigned long resident = 0;
  unsigned long shared = 0;
  if (std::sscanf(text, "%*u %lu %lu", &resident, &shared) != 2 || resident < shared) return 0;
  return std::uint64_t{resident - shared} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string ExitCause(int wait_status) {
  if (WIFEXITED(wait_status)) {
    return fmt::format("ended with exit status {}", WEXITSTATUS(wait_status));
  }
  const int number = WTERMSIG(wait_status);
  if (number == SIGKILL) {
    return "was killed by SIGKILL: somebody did that, or the system had no memory left";
  }
  const char* const name = sigabbrev_np(number);
  return fmt::format("was killed by SIG{} ({})", name != nullptr ? name : std::to_string(number),
                     strsignal(number));
}

}  // namespace menger
