#include "menger/runtime/driver/worker_process.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/runtime/calls/worker_identity.h"

namespace menger {
namespace {

constexpr std::size_t kTitleBytes = 128;  // What `ps` shows of a worker and its task.

bool IsOwnImage(const WorkerProgram& program) { return program.arguments.empty(); }

std::string OwnTitle() {
  std::string title(kWorkerTitle);
  title.resize(kTitleBytes, ' ');
  return title;
}

}  // namespace

// A process that is a worker or waits to become one.
struct WorkerProcesses::Process {
  bool own_image = false;

  // The watching thread's, once the process has been given to it.
  std::atomic<pid_t> process{0};  // Read by any.
  FileDescriptor worker_end;      // Of the control socket; until the process has it.

  // Guarded by mutex_.
  int worker = -1;          // -1: waits to become one.
  FileDescriptor node_end;  // Until it becomes one.
  ChildId child = 0;
  bool awaited = true;  // It has the deadline to connect.
};

WorkerProcesses::WorkerProcesses(WorkerEvents events, std::chrono::nanoseconds connect_deadline)
    : events_(std::move(events)), connect_deadline_(connect_deadline) {
  EndForgottenWorker();
}

WorkerProcesses::~WorkerProcesses() {
  const std::lock_guard lock(mutex_);
  spares_.clear();  // Their ends are no news any more.
}

void WorkerProcesses::StartAhead(int count, const WorkerProgram& program) {
  const std::lock_guard lock(mutex_);
  ahead_ = count;
  if (program != ahead_program_) {
    // Who waits to become a worker ends with the socket on which it would hear of that.
    for (const auto& spare : spares_) spare->node_end.Close();
    spares_.clear();
  }
  ahead_program_ = program;
  FillSpares();
}

FileDescriptor WorkerProcesses::Start(int worker, const WorkerProgram& program) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Process> process = program == ahead_program_ ? TakeSpare() : nullptr;
  if (process == nullptr) process = Spawn(program);
  process->worker = worker;
  workers_[worker] = process;
  children_.LimitMemory(process->child, program.memory_bytes_max);
  children_.KillAfter(process->child, connect_deadline_,
                      fmt::format("{:.1f} s were not enough",
                                  std::chrono::duration<double>(connect_deadline_).count()));
  // Where it is dead already, its end is on the way.
  const WorkerAssignment assignment{.worker = worker};
  send(process->node_end.get(), &assignment, sizeof(assignment), MSG_NOSIGNAL | MSG_DONTWAIT);
  FillSpares();
  return std::move(process->node_end);
}

void WorkerProcesses::Connected(int worker) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end() || !found->second->awaited) return;
  found->second->awaited = false;
  children_.CancelKill(found->second->child);
}

pid_t WorkerProcesses::ProcessOf(int worker) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(worker);
  return found != workers_.end() ? found->second->process.load() : 0;
}

void WorkerProcesses::KillAfter(int worker, std::chrono::nanoseconds delay, std::string because) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  found->second->awaited = false;  // Connected would cancel this.
  children_.KillAfter(found->second->child, delay, std::move(because));
}

std::shared_ptr<WorkerProcesses::Process> WorkerProcesses::Spawn(const WorkerProgram& program) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw FromErrno("cannot make a socket for a worker", errno);
  }
  auto process = std::make_shared<Process>();
  process->node_end = FileDescriptor(ends[0]);
  process->worker_end = FileDescriptor(ends[1]);
  process->own_image = IsOwnImage(program);
  ChildProgram child{.arguments = program.arguments,
                     .variables = program.variables,
                     .folder = program.folder,
                     .inherited = {ends[1]}};
  if (process->own_image) {
    child.arguments = {OwnTitle()};
    child.file = "/proc/self/exe";
  }
  child.variables.emplace_back(kWorkerVariable, fmt::format("{} {}", ends[1], getpid()));
  process->child = children_.Start(
      std::move(child),
      {.on_start = [this, process](pid_t number) { HandleStart(*process, number); },
       .on_line =
           [this, process](std::string_view line) {
             int worker = -1;
             {
               const std::lock_guard lock(mutex_);
               worker = process->worker;
             }
             if (events_.on_line) events_.on_line(worker, process->process, line);
           },
       .on_end = [this, process](const ChildEnd& end) { HandleEnd(*process, end); }});
  return process;
}

std::shared_ptr<WorkerProcesses::Process> WorkerProcesses::TakeSpare() {
  if (spares_.empty()) return nullptr;
  std::shared_ptr<Process> spare = std::move(spares_.front());
  spares_.pop_front();
  return spare;
}

void WorkerProcesses::FillSpares() {
  try {
    while (static_cast<int>(spares_.size()) < ahead_) spares_.push_back(Spawn(ahead_program_));
  } catch (const Error& error) {
    LogWarning("no worker process is started ahead: {}", error.what());
  }
}

void WorkerProcesses::HandleStart(Process& process, pid_t number) {
  process.process = number;
  process.worker_end.Close();
}

void WorkerProcesses::HandleEnd(Process& process, const ChildEnd& end) {
  process.worker_end.Close();
  int worker = -1;
  bool spare = false;
  ChildEnd told = end;
  {
    const std::lock_guard lock(mutex_);
    worker = process.worker;
    told.cause = Cause(process, end);
    workers_.erase(worker);
    spare = std::erase_if(spares_, [&](const auto& one) { return one.get() == &process; }) > 0;
  }
  if (spare) LogWarning("worker process {}, started ahead, {}", process.process.load(), told.cause);
  if (worker >= 0 && events_.on_end) events_.on_end(worker, process.process, told);
}

std::string WorkerProcesses::Cause(const Process& process, const ChildEnd& end) {
  if (!end.started || !process.awaited) return end.cause;
  const bool forgotten =
      WIFEXITED(end.wait_status) && WEXITSTATUS(end.wait_status) == kForgottenWorkerStatus;
  if (forgotten) {
    return fmt::format("does not know that it is one: let main begin with: {}", kWorkerLine);
  }
  return fmt::format(
      "{} before it connected{}", end.cause,
      process.own_image ? fmt::format(" (does main begin with: {} ?)", kWorkerLine) : "");
}

}  // namespace menger
