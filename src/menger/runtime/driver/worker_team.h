#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "menger/runtime/calls/worker_program.h"
#include "menger/runtime/node/node_records.h"

namespace menger {

// What workers run that do the calls of another node's driver, and the number of his job.
struct GuestProgram {
  WorkerProgram program;
  std::uint64_t job = 0;
};

// The workers of a node; under its lock.
class TeamOfWorkers {
 public:
  virtual ~TeamOfWorkers() = default;

  // One more worker, now or soon: it is then added to the machine.
  virtual void StartWorker() = 0;

  // One more of the program; where it has been dropped nothing follows.
  virtual void StartGuest(ProgramIndex) {}
  virtual void SetProgram(ProgramIndex, const GuestProgram&) {}
  virtual void DropProgram(ProgramIndex) {}
  // `then` is called on another thread, without the lock, once all is in GuestOutput that workers
  // have printed by now.
  virtual void AfterOutput(const std::function<void()>& /*then*/) {}

  // Tells the machine what the workers have reported since, and whether there was anything. `all`:
  // also those are looked at that have not said that they had something.
  virtual bool Drain(bool all) = 0;
  // Wakes those who were told something since.
  virtual void Announce() {}

  // The process of a worker; 0 if there is none. Of threads the driver's.
  virtual pid_t ProcessOf(WorkerIndex index) = 0;
  // Ends all workers. Without the lock; nothing else is called afterwards.
  virtual void Stop() = 0;

  // Why no worker can be had; "" while that is not so.
  const std::string& broken() const { return broken_; }

 protected:
  std::string broken_;
};

}  // namespace menger
