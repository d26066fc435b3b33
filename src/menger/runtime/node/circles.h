#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/object_table.h"
#include "menger/runtime/node/scheduler.h"

namespace menger {

// Finds calls that wait for one another in a circle, and so never end.
//
// Part of the node's state machine: no I/O, no lock, no clock.
class Circles {
 public:
  Circles(const Scheduler& scheduler, const ObjectTable& objects, const WorkersByIndex& workers)
      : scheduler_(&scheduler), objects_(&objects), workers_(&workers) {}

  // Somebody begins to wait: there may be another circle than the one that was told.
  void WaitBegins() { told_ = false; }
  // Where all that runs waits, and for nothing that could come by itself, one of the waits is most
  // likely part of a circle. Gives its calls, each of which waits for the next and the last for the
  // first, once; nothing if there is none, or not now. Looks seldom.
  std::vector<const Task*> Look(std::int64_t now);

 private:
  std::vector<const Worker*> AwaitedBy(const Worker& worker) const;
  std::vector<const Task*> From(const Worker& first, std::set<const Worker*>& done) const;

  const Scheduler* scheduler_;
  const ObjectTable* objects_;
  const WorkersByIndex* workers_;
  bool told_ = false;  // Of the waits that there are now.
  std::int64_t look_at_ = 0;
};

}  // namespace menger
