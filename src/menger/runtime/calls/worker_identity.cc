#include "menger/runtime/calls/worker_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kPollMilliseconds = 60'000;

// All of the group: what tasks have started, and this process, which leads it.
void EndGroup(int) {
  kill(0, SIGKILL);
  _exit(1);
}

bool became_worker = false;  // Before any call is done.

pid_t watched_process = 0;  // For the handler: the worker, not what it forks.

void DoNothingInWorker(int number) {
  if (getpid() == watched_process) return;
  signal(number, SIG_DFL);
  raise(number);
}

void Handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

bool BecameWorker() { return became_worker; }

bool IsWorker() { return std::getenv(kWorkerVariable) != nullptr; }

void EndForgottenWorker() {
  if (!IsWorker()) return;
  fmt::print(stderr, "this process was started to be a worker; let main begin with: {}\n",
             kWorkerLine);
  _exit(kForgottenWorkerStatus);
}

WorkerIdentity BecomeWorker() {
  const char* const text = std::getenv(kWorkerVariable);
  int control = -1;
  WorkerIdentity identity;
  if (text == nullptr || std::sscanf(text, "%d %d", &control, &identity.driver) != 2) {
    throw FailedPrecondition("{} is '{}'; only a node of the runtime starts workers, and sets it",
                             kWorkerVariable, text == nullptr ? "" : text);
  }
  identity.control = FileDescriptor(control);
  unsetenv(kWorkerVariable);
  became_worker = true;
  fcntl(control, F_SETFD, FD_CLOEXEC);
  prctl(PR_SET_NAME, kWorkerTitle.data());
  WorkerAssignment assignment{.magic = 0};
  ssize_t got = 0;
  do {
    got = recv(control, &assignment, sizeof(assignment), 0);
  } while (got < 0 && errno == EINTR);
  if (got == 0) _exit(0);
  if (got < 0) throw FromErrno("cannot hear from the node", errno);
  if (got != sizeof(assignment) || assignment.magic != WorkerAssignment().magic) {
    throw DataLoss(
        "the node's first packet has {} bytes and is not understood: is it another "
        "version of menger?",
        got);
  }
  identity.worker = assignment.worker;
  return identity;
}

DriverWatch::DriverWatch(int control) : stop_(eventfd(0, EFD_CLOEXEC)) {
  if (!stop_.valid()) throw FromErrno("cannot make an eventfd", errno);
  watched_process = getpid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) Handle(number, DoNothingInWorker);
  // The kernel's SIGKILL, which the process was started with, would leave the group alive. The
  // thread is for where the parent is not the driver (a shell between them), the signal for where
  // the socket stays open (a fork of the driver has it too).
  Handle(SIGRTMAX, EndGroup);
  prctl(PR_SET_PDEATHSIG, SIGRTMAX);
  watcher_ = Thread({.name = "driver watch"}, [this, control] { Watch(control); });
}

// What the kernel does stays: a driver that is dying closes the socket before the kernel tells.
DriverWatch::~DriverWatch() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_.get(), &one, sizeof(one));
}

void DriverWatch::Watch(int control) const {
  pollfd sources[2] = {{.fd = control, .events = POLLRDHUP}, {.fd = stop_.get(), .events = POLLIN}};
  for (;;) {
    poll(sources, 2, kPollMilliseconds);
    if (sources[0].revents != 0) EndGroup(0);  // Also where the worker has seen it and returns.
    if (sources[1].revents != 0) return;
  }
}

void ShowActor(std::string_view name) {
  char* const title = program_invocation_name;  // argv[0], which is as long as there is room.
  const std::size_t room = std::strlen(title);
  if (room < kWorkerTitle.size() + 2 ||
      std::string_view(title, kWorkerTitle.size()) != kWorkerTitle) {
    return;
  }
  std::size_t used = kWorkerTitle.size();
  for (const char c : {':', ' '}) title[used++] = c;
  const std::size_t length = std::min(name.size(), room - used);
  std::memcpy(title + used, name.data(), length);
  std::memset(title + used + length, ' ', room - used - length);
}

}  // namespace menger
