#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/object_table.h"
#include "menger/runtime/node/scheduler.h"

namespace menger {

// Which calls those that wait are in need of.
//
// Each call that waits has a number; what it waits for is wanted under that number, and so is all
// that this needs in turn: what makes its arguments, the actor of a method and that actor's calls
// before it. The scheduler runs what is wanted first, the latest wait's before others'. A mark is
// not taken back when the wait is over; whoever meets it asks the scheduler whether it still is
// one.
//
// Part of the node's state machine: no I/O, no lock, no clock.
class Demand {
 public:
  Demand(Scheduler& scheduler, const ObjectTable& objects, const WorkersByIndex& workers)
      : scheduler_(&scheduler), objects_(&objects), workers_(&workers) {}

  // Under which number the call waits, this time and all others.
  std::uint64_t NumberOf(Task& call);
  // The wait of that number, if it is one still, needs what the call gives.
  void Want(Task& first, std::uint64_t wait);
  // Somebody may wait for what it gives since before it was made, or made again.
  void WantAlready(Task& task);

  // A thread of the driver waits, until End: see NodeMachine::BeginDriverWait.
  static constexpr std::size_t kDriverWaitsMax = 4;
  std::uint64_t BeginDriverWait(std::span<Object* const> objects);
  void EndDriverWait(std::uint64_t wait);
  // Not before it is crowded: until then priorities decide.
  void WantForDriver();

  // The call, the one that waits for it, the one that waits for that, and so on.
  std::vector<const Task*> WaitersOf(const Task& task) const;

 private:
  Scheduler* scheduler_;
  const ObjectTable* objects_;
  const WorkersByIndex* workers_;
  // The driver's waits have lower numbers than those of calls, which therefore go first.
  static constexpr std::uint64_t kFirstOfCalls = std::uint64_t{1} << 48;
  std::uint64_t last_of_calls_ = kFirstOfCalls;
  std::uint64_t last_driver_wait_ = 0;
  std::map<std::uint64_t, ObjectId> driver_waits_;  // By number: what the one call shall give.
};

}  // namespace menger
