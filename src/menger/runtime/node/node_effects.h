#pragma once

#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/peer_message.h"
#include "menger/runtime/node/scheduler.h"
#include "menger/runtime/node/shared_names.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// A value that is to be brought here from another node. What has come is told by
// NodeMachine::Pulled, NotPulled or PullRefused, with `owner` and `pull`.
struct PullOrder {
  const Peer* owner = nullptr;   // Whose it is; null: this node's.
  std::uint64_t pull = 0;        // As whose pull.
  const Peer* source = nullptr;  // Who has it; null: its owner, who knows it by the pull.
  bool here = false;             // It lies here already, as `name`, and is to be copied.
  std::uint64_t name = 0;        // As what the source keeps it for its owner.
  std::uint64_t bytes = 0;
};

// What the node's logic asks of the world; done at once, before the call returns, and without a
// call of the machine.
class NodeEffects : public WorkerQueues {
 public:
  // One more worker with another node's program is wanted; AddGuest or GuestFailed follows.
  virtual void StartGuest(ProgramIndex) {}
  // A watched object has its value (or error) now. The watch is over.
  virtual void Ready(const Watch& watch, Object& object) = 0;
  // There is no room for its value where it is watched. The watch is over.
  virtual void Refuse(const Watch&, const Object&, const Payload& /*error*/) {}
  // One of this node's that is on the disk is wanted in memory: NodeMachine::Restored or NoRoom
  // follows. Again changes nothing.
  virtual void Restore(Object&) {}
  virtual void Pull(const PullOrder&) {}
  // A value that nobody needs any longer, wherever it lies.
  virtual void Free(const ObjectValue& value) = 0;
  // The worker is to end: its process is killed. It is gone for the machine: WorkerDied is not
  // called for it, and nothing that it says is told any longer.
  virtual void EndWorker(Worker& worker, std::string_view why) = 0;
  // The same, but the process may end of itself first, as a program does: it has done its work.
  virtual void DismissWorker(Worker& worker, std::string_view why) { EndWorker(worker, why); }
  // The call should stop; a thread cannot be made to.
  virtual void Interrupt(Worker& worker, const Task& task) = 0;
  // Nobody refers to the actor any longer, and none of its calls runs. Where its worker was a
  // process, that ends.
  virtual void ActorReleased(ActorId) {}
  // Its state or place is another.
  virtual void ActorChanged(const Actor&) {}
  // A value in shared memory is ready.
  virtual void SharedReady(const Object&) {}
  // A worker is gone; `ran` is the call that it had begun, if any: the first of `begun`.
  // `cause.worker` is "" where the node itself wished for its end.
  virtual void WorkerLost(const Worker&, const Task* /*ran*/, std::size_t /*begun*/,
                          const TaskFailure& /*cause*/) {}
  // Goes to the machine of that node.
  virtual void TellPeer(const Peer&, const PeerMessage&) {}
  // From now on what the worker says goes to that node, until it is back: it is offered a call of
  // this node's then.
  virtual void Lent(Worker&, const Peer&) {}
  // Of a lent worker that has died: the calls that it had begun and not ended, as its borrower
  // knows them.
  virtual std::vector<LeaseNumber> BegunBy(const Worker&) { return {}; }
  // Goes to those who keep the names of the cluster; NodeMachine::NameAnswered follows.
  virtual void AskName(const NameQuestion&) {}
  // Who has asked by NodeMachine::FindActor refers to what stands for the actor that he is told.
  virtual void Named(const Watch& /*asker*/, const NameAnswer&) {}
  // What somebody should know.
  virtual void Warn(std::string_view) {}
  // What people call the function; "" if nobody knows.
  virtual std::string NameOfFunction(FunctionId) { return ""; }

 protected:
  ~NodeEffects() = default;
};

}  // namespace menger
