#include "menger/base/child_launch.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/thread.h"

extern char** environ;

namespace menger {
namespace {

// What the new process says when it cannot become the program.
struct Failure {
  int error = 0;
  bool in_folder = false;  // The folder to work in is the reason.
};

// What the new process needs before exec, made beforehand: it may not allocate.
struct Plan {
  std::vector<std::string> texts;  // Owns what the pointers name.
  std::vector<char*> arguments;
  std::vector<char*> variables;
  const char* file = nullptr;
  const char* folder = nullptr;
  const int* inherited = nullptr;
  std::size_t inherited_count = 0;
  cpu_set_t cpus;
  bool heeds_signals = false;
  bool outlives = false;
  pid_t parent = getpid();
  int output = -1;
  int failure = -1;  // Closed by exec; else it gets a Failure.
};

std::vector<std::string> Variables(const ChildProgram& program) {
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

Plan MakePlan(const ChildProgram& program, int output, int failure) {
  Plan plan;
  plan.texts = program.arguments;
  for (std::string& variable : Variables(program)) plan.texts.push_back(std::move(variable));
  for (std::size_t i = 0; i < plan.texts.size(); ++i) {
    (i < program.arguments.size() ? plan.arguments : plan.variables)
        .push_back(plan.texts[i].data());
  }
  plan.arguments.push_back(nullptr);
  plan.variables.push_back(nullptr);
  plan.file = program.name().c_str();
  if (!program.folder.empty()) plan.folder = program.folder.c_str();
  plan.inherited = program.inherited.data();
  plan.inherited_count = program.inherited.size();
  CPU_ZERO(&plan.cpus);
  for (const int cpu : program.cpus.empty() ? AvailableCpuList() : program.cpus) {
    CPU_SET(cpu, &plan.cpus);
  }
  plan.heeds_signals = program.heeds_signals;
  plan.outlives = program.outlives;
  plan.output = output;
  plan.failure = failure;
  return plan;
}

[[noreturn]] void Fail(const Plan& plan, bool in_folder) {
  const Failure failure{.error = errno, .in_folder = in_folder};
  [[maybe_unused]] const auto written = write(plan.failure, &failure, sizeof(failure));
  _exit(127);
}

// In the new process, whose memory is still its parent's. Signals are blocked.
[[noreturn]] void Become(const Plan& plan) {
  if (!plan.outlives) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(127);  // Died before the kernel knew to tell.
  }
  setpgid(0, 0);
  // No handler of the parent's may run here, and nothing that it ignores is to be ignored.
  for (int number = 1; number < NSIG; ++number) {
    const bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP;
    const bool ignored = ends && !plan.heeds_signals;
    struct sigaction action {};
    action.sa_handler = ignored ? SIG_IGN : SIG_DFL;
    sigaction(number, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  sched_setaffinity(0, sizeof(plan.cpus), &plan.cpus);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(plan.output, STDOUT_FILENO);
  dup2(plan.output, STDERR_FILENO);
  // Where the kernel cannot (before 5.11), descriptors that libraries leave open go with it.
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (std::size_t i = 0; i < plan.inherited_count; ++i) fcntl(plan.inherited[i], F_SETFD, 0);
  if (plan.folder != nullptr && chdir(plan.folder) != 0) Fail(plan, /*in_folder=*/true);
  execvpe(plan.file, plan.arguments.data(), plan.variables.data());
  Fail(plan, /*in_folder=*/false);
}

// Returns in the parent alone, when the child has become the program or has failed.
[[gnu::noinline]] pid_t ForkInto(const Plan& plan) {
  sigset_t every;
  sigset_t before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  // fork would copy the page tables: 30 ms for each gigabyte in use. The child keeps to what vfork
  // allows it and leaves this frame alone.
  const pid_t process = vfork();
  if (process == 0) Become(plan);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return process;
}

Error StartFailure(const ChildProgram& program, const Failure& failure) {
  const char* const words = std::strerror(failure.error);
  if (failure.in_folder) {
    return FailedPrecondition("cannot start '{}' in the folder '{}': {}", program.name(),
                              program.folder, words);
  }
  const bool there =
      program.name().find('/') != std::string::npos && access(program.name().c_str(), F_OK) == 0;
  return FailedPrecondition("cannot start '{}': {}{}", program.name(), words,
                            there && failure.error == ENOENT
                                ? " (the file is there; the interpreter or loader it names is not)"
                                : "");
}

}  // namespace

pid_t LaunchChild(const ChildProgram& program, int output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw FromErrno("cannot make a pipe for a process", errno);
  const FileDescriptor failure_out(ends[0]);
  FileDescriptor failure_in(ends[1]);
  const pid_t process = ForkInto(MakePlan(program, output, failure_in.get()));
  if (process < 0) throw FromErrno(fmt::format("cannot start '{}'", program.name()), errno);
  failure_in.Close();
  Failure failure;
  ssize_t got = 0;
  do {
    got = read(failure_out.get(), &failure, sizeof(failure));
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(failure))) return process;
  waitpid(process, nullptr, 0);
  throw StartFailure(program, failure);
}

}  // namespace menger
