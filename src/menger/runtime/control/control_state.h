#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/control/store_writer.h"
#include "menger/runtime/node/node_machine.h"
#include "menger/runtime/values/ids.h"

namespace menger {

// Values of so many bytes are large: they have records of their own.
inline constexpr std::uint64_t kLargeObjectBytes = std::uint64_t{1} << 20;

// Writes down, in the control store, what of a job others may want to know while it runs and after
// it was killed: the job, its functions, workers, actors and their names, large objects, and the
// last 4096 events that are not ends of tasks. Never a write a task: what has changed is gathered
// ten times a second, and of what changed twice the last is written.
//
// Keys begin with "JOB/"; values are JSON. What an earlier job of the same number and folder has
// left is deleted first, except what the kJobs table says of others.
class ControlState {
 public:
  // `folder`: of the log on the disk; "": in memory only. Throws as EmbeddedStore.
  ControlState(std::uint64_t job, const std::string& folder);

  // ---- What has changed; under the node's lock.
  void ActorChanged(ActorId actor) { changed_actors_.insert(actor); }  // Also: it is no more.
  void LargeObject(ObjectId object) { new_objects_.push_back(object); }

  // Takes what has changed out of the machine; under the node's lock.
  void Gather(NodeMachine& machine);

  // Gives it to the store; without the lock, on one thread.
  void Write() { writer_.Flush(); }

  // The job ends: waits, for some seconds at most, until the store knows all. Nothing is gathered
  // any more.
  void Finish();

  ControlStore& store() { return store_; }

 private:
  void DeleteWhatWasLeft();
  void PutJob(const char* state);
  void GatherActors(NodeMachine& machine);
  void GatherWorkers(NodeMachine& machine);
  void GatherFunctions(const NodeMachine& machine);
  void GatherObjects(NodeMachine& machine);
  void GatherEvents(const NodeMachine& machine);

  const std::uint64_t job_;
  const std::string prefix_;  // "JOB/"
  EmbeddedStore store_;
  StoreWriter writer_;

  std::set<ActorId> changed_actors_;
  std::vector<ObjectId> new_objects_;
  std::set<ActorId> actors_;                    // That are written.
  std::map<ActorId, std::string> actor_names_;  // Likewise.
  std::set<WorkerIndex> workers_;               // Likewise.
  std::map<ObjectId, std::uint64_t> objects_;   // Likewise; their bytes.
  std::set<std::string> functions_;             // Likewise; their keys.
  std::uint64_t worker_events_ = 0;             // Seen.
  std::size_t function_count_ = 0;              // Likewise.
  std::uint64_t events_ = 0;                    // Likewise.
};

}  // namespace menger
