#include "menger/environments/hosted/host_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/log.h"

extern char** environ;

namespace menger {
namespace {

constexpr std::size_t kLinesKept = 40;
constexpr std::size_t kLineBytesMax = 2000;
constexpr double kCloseSeconds = 2;
constexpr double kEndSeconds = 1;  // For a supervisor, to end what the host has started.
constexpr double kKillSeconds = 10;
constexpr std::chrono::milliseconds kSlice{50};  // Between two looks at whether the host lives.

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9));
}

// What the new process needs between fork and exec, where it may not allocate.
struct Launch {
  std::vector<std::string> texts;  // Owns what the pointers name.
  std::vector<char*> arguments;
  std::vector<char*> variables;
  std::vector<int> inherited;
  cpu_set_t cpus;
  pid_t menger = getpid();
  int output = -1;
  int failure = -1;  // Closed by exec; else it gets the errno.
};

std::vector<std::string> Variables(const HostProgram& program) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(program.variables.begin(), program.variables.end(),
                                      [name](const auto& own) { return own.first == name; });
    if (!replaced) variables.emplace_back(text);
  }
  for (const auto& [name, value] : program.variables)
    variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

Launch PrepareLaunch(const HostProgram& program, std::vector<int> inherited, int control) {
  Launch launch;
  std::vector<std::string> arguments = program.arguments;
  arguments.insert(arguments.end(), {"--control", std::to_string(control)});
  const std::size_t count = arguments.size();
  launch.texts = std::move(arguments);
  for (std::string& variable : Variables(program)) launch.texts.push_back(std::move(variable));
  for (std::size_t i = 0; i < launch.texts.size(); ++i) {
    (i < count ? launch.arguments : launch.variables).push_back(launch.texts[i].data());
  }
  launch.arguments.push_back(nullptr);
  launch.variables.push_back(nullptr);
  launch.inherited = std::move(inherited);
  launch.inherited.push_back(control);
  CPU_ZERO(&launch.cpus);
  for (const int cpu : AvailableCpuList()) CPU_SET(cpu, &launch.cpus);
  return launch;
}

// In the new process. Only what may be called between fork and exec.
[[noreturn]] void Become(const Launch& launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.menger) _exit(127);  // Died before the kernel knew to tell.
  setpgid(0, 0);
  for (const int number : {SIGPIPE, SIGQUIT, kEndHostSignal}) signal(number, SIG_DFL);
  // A batch system that ends a job may signal every process of it: menger saves and closes its
  // hosts, which must live until then.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  sched_setaffinity(0, sizeof(launch.cpus), &launch.cpus);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(launch.output, STDOUT_FILENO);
  dup2(launch.output, STDERR_FILENO);
  for (const int descriptor : launch.inherited) fcntl(descriptor, F_SETFD, 0);
  execvpe(launch.arguments[0], launch.arguments.data(), launch.variables.data());
  const int error = errno;
  [[maybe_unused]] const auto written = write(launch.failure, &error, sizeof(error));
  _exit(127);
}

std::pair<FileDescriptor, FileDescriptor> Pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw FromErrno("cannot make a pipe for a host", errno);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

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

HostProcess::HostProcess(const HostProgram& program, std::span<const int> inherited)
    : memory_(AllocateSharedMemory("menger-control", sizeof(HostControl))) {
  control_ = reinterpret_cast<HostControl*>(memory_->data());
  control_->magic = kHostMagic;
  control_->version = kHostProtocolVersion;
  control_->menger_process = getpid();
  watcher_ =
      Thread({.name = "host watcher"},
             [this, program, descriptors = std::vector<int>(inherited.begin(), inherited.end())] {
               Watch(program, descriptors);
             });
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, Seconds(program.start_deadline_seconds),
                    [this] { return process_ != 0 || start_failure_ != nullptr; });
  if (start_failure_ != nullptr) throw Error(*start_failure_);
}

HostProcess::~HostProcess() {
  if (!ended_ && idle_) {
    control_->command = HostCommand::kClose;
    control_->text_bytes = 0;
    control_->request.Advance();
    WaitForEnd(kCloseSeconds);
  }
  Kill();
}

std::string HostProcess::Call(HostCommand command, double deadline_seconds, std::string_view text) {
  control_->command = command;
  if (text.empty()) {
    control_->text_bytes = 0;
  } else {
    if (text.size() > kHostTextBytes) {
      throw InvalidArgument("a request of {} bytes does not fit a host's {}", text.size(),
                            kHostTextBytes);
    }
    WriteHostText(*control_, text);
  }
  control_->restarts_used = 0;
  idle_ = false;
  ++sent_;
  control_->request.Advance();
  AwaitReply(command, deadline_seconds);
  idle_ = true;
  if (control_->status == HostStatus::kFailed) {
    throw Error(static_cast<ErrorCode>(control_->error_code), ReadHostText(*control_));
  }
  return control_->text_bytes == 0 ? std::string() : ReadHostText(*control_);
}

void HostProcess::AwaitReply(HostCommand command, double deadline_seconds) {
  // Time is counted in slices that were waited: while this process is stopped (Ctrl-Z, a debugger)
  // the clock goes on, and the host is stopped too.
  std::chrono::nanoseconds waited(0);
  std::uint32_t progress = control_->progress.load(std::memory_order_relaxed);
  while (!control_->reply.TryWaitFor(sent_, kSlice)) {
    if (ended_) {
      if (control_->reply.TryWaitFor(sent_, std::chrono::nanoseconds(0))) return;
      std::string cause;
      {
        const std::lock_guard lock(mutex_);
        cause = cause_;
      }
      throw HostLost(fmt::format("its host process {}{}", cause, LastWords()));
    }
    const std::uint32_t now = control_->progress.load(std::memory_order_relaxed);
    waited = now == progress ? waited + kSlice : std::chrono::nanoseconds(0);
    progress = now;
    if (waited < Seconds(deadline_seconds)) continue;
    Kill();
    const bool starting = command == HostCommand::kAttach || command == HostCommand::kDescribe;
    throw HostLost(fmt::format(
        "its host process did not {} within {} s and was killed ({} is how long it may take){}",
        starting ? "start" : "answer", deadline_seconds,
        starting ? "start_deadline" : "step_deadline", LastWords()));
  }
}

std::string HostProcess::LastWords() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& line : lines_) text += "\n    " + line;
  return text.empty() ? text : "; the last it printed:" + text;
}

bool HostProcess::WaitForEnd(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, Seconds(seconds), [this] { return ended_.load(); });
}

void HostProcess::Kill() {
  if (process_ == 0) return;
  Signal(process_, kEndHostSignal);
  if (WaitForEnd(kEndSeconds)) return;
  Signal(process_, SIGKILL);  // It may not lead its group yet.
  Signal(-process_, SIGKILL);
  if (!WaitForEnd(kKillSeconds)) {
    LogWarning("host process {} does not end: it waits in the kernel", process_.load());
  }
}

void HostProcess::Signal(std::int32_t target, int number) {
  const std::lock_guard lock(mutex_);  // Reap holds it too: the number is still this process's.
  if (!ended_) kill(target, number);
}

// The watching thread.
void HostProcess::Watch(const HostProgram& program, const std::vector<int>& inherited) {
  try {
    auto [output, input] = Pipe();
    const int process = Start(program, inherited, input.get());
    {
      const std::lock_guard lock(mutex_);
      process_ = process;
    }
    changed_.notify_all();
    input.Close();
    ReadUntilEnd(std::move(output));
  } catch (...) {
    const std::lock_guard lock(mutex_);
    start_failure_ = std::make_unique<Error>(TranslateCurrentException());
    ended_ = true;
  }
  changed_.notify_all();
}

int HostProcess::Start(const HostProgram& program, const std::vector<int>& inherited, int output) {
  auto [failure_out, failure_in] = Pipe();
  Launch launch = PrepareLaunch(program, inherited, memory_->descriptor());
  launch.output = output;
  launch.failure = failure_in.get();
  const pid_t process = fork();
  if (process < 0) throw FromErrno("cannot start a host process", errno);
  if (process == 0) Become(launch);
  failure_in.Close();
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(failure_out.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(error))) return process;
  waitpid(process, nullptr, 0);
  throw FailedPrecondition("cannot start '{}': {}{}", program.arguments.front(),
                           std::strerror(error),
                           program.advice.empty() ? "" : ". " + program.advice);
}

void HostProcess::ReadUntilEnd(FileDescriptor output) {
  // -1 where the kernel has no pidfd: then looking every 100 ms has to do.
  const FileDescriptor end(static_cast<int>(syscall(SYS_pidfd_open, process_.load(), 0)));
  fcntl(output.get(), F_SETFL, O_NONBLOCK);
  char buffer[4096];
  bool ended = false;
  while (!ended) {
    pollfd events[2] = {{.fd = output.get(), .events = POLLIN},
                        {.fd = end.get(), .events = POLLIN}};
    poll(events, 2, end.get() < 0 ? 100 : 1000);
    siginfo_t info{};
    ended = waitid(P_PID, static_cast<id_t>(process_.load()), &info, WEXITED | WNOHANG | WNOWAIT) ==
                0 &&
            info.si_pid != 0;
    ssize_t got = 0;
    while (output.get() >= 0 && (got = read(output.get(), buffer, sizeof(buffer))) > 0) {
      KeepLines({buffer, static_cast<std::size_t>(got)});
      if (ended && got < static_cast<ssize_t>(sizeof(buffer))) break;
    }
    if (got == 0) output.Close();  // It has closed its output; poll would return at once for ever.
  }
  KeepLines("\n");
  Reap();
}

void HostProcess::KeepLines(std::string_view text) {
  for (const char c : text) {
    if (c != '\n') {
      if (line_.size() < kLineBytesMax) line_ += c;
      continue;
    }
    if (!line_.empty()) {
      LogDebug("host {}: {}", process_.load(), line_);
      const std::lock_guard lock(mutex_);
      lines_.push_back(std::move(line_));
      if (lines_.size() > kLinesKept) lines_.pop_front();
    }
    line_.clear();
  }
}

void HostProcess::Reap() {
  const std::lock_guard lock(mutex_);
  kill(-process_, SIGKILL);  // What it started goes with it.
  int status = 0;
  waitpid(process_, &status, 0);
  cause_ = ExitCause(status);
  ended_ = true;
}

}  // namespace menger
