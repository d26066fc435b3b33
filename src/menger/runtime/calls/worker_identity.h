#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "menger/base/files.h"
#include "menger/base/thread.h"

namespace menger {

// What a process knows of being a worker: a process that a runtime's node has started
// (worker_process.h) to run tasks. It is told by the environment variable MENGER_WORKER.

// True until BecomeWorker. The workers of a C++ program are the program itself, so its main begins
//   if (menger::IsWorker()) return menger::WorkerMain();
bool IsWorker();

// Ends this process where IsWorker: its main lacks that line, so it would run the program again and
// start workers of its own. Says so on standard error and by its exit status. For what starts
// workers to call first.
void EndForgottenWorker();
inline constexpr int kForgottenWorkerStatus = 113;

inline constexpr std::string_view kWorkerLine =
    "if (menger::IsWorker()) return menger::WorkerMain();";

// Whether this process has become a worker, or is a fork of one.
bool BecameWorker();

// Who this process is, once it has become a worker.
struct WorkerIdentity {
  int worker = -1;         // The number that the node knows it by.
  pid_t driver = 0;        // The process of the node.
  FileDescriptor control;  // A Unix socket (SOCK_SEQPACKET) to the node; its hang-up is the end.
};

// Waits until the node gives this process a number, which takes as long as it likes where the
// process was started ahead; ends the process when the node goes away meanwhile. What this process
// starts is no worker. Throws FailedPrecondition where this is not a worker, DataLoss where what
// the node says is not understood.
WorkerIdentity BecomeWorker();

// While it exists, this process and what it has started in its process group are killed when the
// node closes the control socket or dies, however it does (by SIGRTMAX, which is taken for this).
// SIGINT, SIGTERM and SIGHUP do nothing here but interrupt system calls; they were ignored until
// now, and are not by what this process forks or starts. One a process.
class DriverWatch {
 public:
  explicit DriverWatch(int control);  // Borrowed.
  ~DriverWatch();
  DriverWatch(const DriverWatch&) = delete;
  DriverWatch& operator=(const DriverWatch&) = delete;

 private:
  void Watch(int control) const;

  const FileDescriptor stop_;  // An eventfd.
  Thread watcher_;
};

// Lets `ps` show "menger-worker: NAME" of a process that has an actor. Does nothing where the
// process was not started with room for it. One thread at a time.
void ShowActor(std::string_view name);

// Between the two ends of a start, worker_process.cc and worker_identity.cc.
inline constexpr char kWorkerVariable[] = "MENGER_WORKER";  // "CONTROL DRIVER", both numbers.
inline constexpr std::string_view kWorkerTitle = "menger-worker";

// The first packet on the control socket.
struct WorkerAssignment {
  std::uint32_t magic = 0x4b574e4d;
  std::int32_t worker = -1;
};

}  // namespace menger
