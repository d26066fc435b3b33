// What the tests of worker processes run: a program that is its own worker, and misbehaves on
// request. As a worker it does what each packet on its control socket says. As a driver:
//
//   menger_fake_worker COMMAND [AHEAD]
//
// starts worker 0, prints its greeting, its answer to the command and its end, and waits.
//
// With FORGETFUL set its main does not ask whether it is a worker.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/calls/worker_identity.h"
#include "menger/runtime/driver/worker_process.h"

namespace menger {
namespace {

constexpr int kPatienceMilliseconds = 60'000;

void Say(int control, const std::string& text) {
  send(control, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string Hear(int control) {
  pollfd source{.fd = control, .events = POLLIN};
  char text[256];
  int ready = 0;
  do {
    ready = poll(&source, 1, kPatienceMilliseconds);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return "";
  const ssize_t got = recv(control, text, sizeof(text), 0);
  return got <= 0 ? "" : std::string(text, static_cast<std::size_t>(got));
}

void Obey(int control, const std::string& command) {
  if (command == "exit") std::exit(3);
  if (command == "segfault") {
    signal(SIGSEGV, SIG_DFL);  // Sanitizers have a handler of their own.
    raise(SIGSEGV);
  }
  if (command == "abort") std::abort();
  if (command == "print") fmt::print(stderr, "a line\n");
  if (command == "terminate") {
    const pid_t child = fork();
    if (child == 0) {
      sleep(60);
      _exit(0);
    }
    kill(child, SIGTERM);
    int status = 0;
    waitpid(child, &status, 0);
    return Say(control, WIFSIGNALED(status) ? "ended" : "lives");
  }
  if (command == "show") {
    ShowActor("Rollout " + std::string(200, 'x'));
    ShowActor("Rollout");
    std::string shown;
    std::getline(std::ifstream("/proc/self/cmdline"), shown);
    return Say(control, shown);
  }
  if (command == "eat") {
    const std::vector<char> memory(std::size_t{64} << 20, 'x');
    pause();
  }
  if (command == "start") {
    const pid_t child = fork();
    if (child == 0) execlp("sleep", "sleep", "1000", nullptr);
    return Say(control, std::to_string(child));
  }
  Say(control, "done");
}

int WorkerMain() {
  const WorkerIdentity identity = BecomeWorker();
  const int control = identity.control.get();
  const DriverWatch watch(control);
  Say(control, fmt::format("{} {} {}", identity.worker, getpid(), identity.driver));
  for (std::string command = Hear(control); !command.empty(); command = Hear(control)) {
    Obey(control, command);
  }
  return 0;
}

int DriverMain(const std::string& command, int ahead) {
  std::promise<std::string> end;
  WorkerProcesses workers(
      {.on_end = [&](int, pid_t, const ChildEnd& ended) { end.set_value(ended.cause); }},
      std::chrono::seconds(10));
  workers.StartAhead(ahead);
  if (ahead > 0) usleep(50'000);
  const Stopwatch watch;
  const FileDescriptor control = workers.Start(0, {});
  const std::string greeting = Hear(control.get());
  fmt::print("{}; after {:.2f} ms\n", greeting, watch.seconds() * 1e3);
  if (!greeting.empty()) workers.Connected(0);
  Say(control.get(), command);
  fmt::print("{}\n", Hear(control.get()));
  std::fflush(stdout);
  fmt::print("worker 0 {}\n", end.get_future().get());
  std::fflush(stdout);
  pause();
  return 0;
}

}  // namespace
}  // namespace menger

int main(int argc, char** argv) {
  const bool forgetful = std::getenv("FORGETFUL") != nullptr;
  if (!forgetful && menger::IsWorker()) return menger::WorkerMain();
  return menger::DriverMain(argc > 1 ? argv[1] : "exit", argc > 2 ? std::atoi(argv[2]) : 0);
}
