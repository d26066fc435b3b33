#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "menger/runtime/call_inputs.h"
#include "menger/runtime/node_machine.h"
#include "menger/runtime/simulation/simulated_values.h"

namespace menger::simulation {

struct ActorState {
  std::uint64_t state = 0;
  std::uint64_t position = 0;          // Calls so far.
  std::optional<Reference> kept = {};  // A reference that one call leaves to later ones.
};
using ActorStates = std::unordered_map<ActorId, ActorState, IdHash>;

// What the processes of a simulation have around them: the node, shared memory, and who checks
// them.
class Surroundings {
 public:
  virtual NodeMachine& machine() = 0;
  // A value in a message or in shared memory that `worker` may write.
  virtual ObjectValue MakeValue(WorkerIndex worker, Payload bytes) = 0;
  virtual Payload Read(const ObjectValue& value) = 0;
  virtual void Publish(const ObjectValue& value) = 0;  // The node knows of it.
  // The rest of a header: how often the call is run again, and so on.
  virtual void Complete(SpecHeader& header) = 0;

  virtual void CheckCall(const TaskSpec& spec) = 0;  // Arrives at the node.
  virtual void CheckPut(ObjectId id, std::uint64_t fold) = 0;
  virtual void CheckMethod(const SpecHeader& header, const ActorState& state) = 0;  // Likewise.

 protected:
  ~Surroundings() = default;
};

// A worker, process or thread: claims calls from its queue and does their scripts, one operation a
// step. What it says lies in a channel until the simulation delivers it; so do the answers.
class SimulatedWorker {
 public:
  // `states`: of threads, those of all actors; null for a process, which has its own.
  SimulatedWorker(Surroundings& surroundings, Worker& record, ActorStates* states);

  WorkerIndex index() const { return index_; }

  // ---- The node's end.
  void Offer(const Task& task);
  bool Recall(LeaseNumber lease);
  std::size_t queued() const { return queue_.size(); }
  void Ready(std::uint64_t request, Object& object);  // Travels to the worker.

  // ---- What the simulation does with it.
  bool CanStep() const;
  void Step();
  bool CanTimeOut() const;  // It waits, but need not.
  void TimeOut();
  bool HasNews() const { return !to_node_.empty(); }
  void DeliverNews();  // The oldest, to the machine.
  bool HasAnswer() const { return !to_worker_.empty(); }
  void DeliverAnswer();
  void Die() { alive_ = false; }
  bool alive() const { return alive_; }
  bool busy() const { return call_ != nullptr || !queue_.empty(); }
  std::string Describe() const;

 private:
  struct Entry {
    LeaseNumber lease = 0;
    std::vector<std::byte> bytes;
    const TaskSpec& spec() const { return TaskSpec::View(bytes); }
    std::vector<Value> values;
    std::vector<std::byte> records;
  };
  struct Answer {
    std::uint64_t request = 0;
    bool failed = false;
    std::string root;  // What failed first.
    Value value;
  };
  // A call under way.
  struct Call {
    Entry entry;
    CallContent content;
    Script script;
    std::uint64_t fold = 0;
    std::vector<Reference> slots;
    std::vector<ObjectId> handles;
    std::size_t next = 0;       // Operation.
    std::uint64_t calls = 0;    // Made so far.
    std::uint64_t request = 0;  // That it waits for; 0: it does not.
    bool inner = false;         // For what lies inside the value of `target`.
    std::vector<ObjectId> watched;
    std::vector<Answer> answers;  // To the request.
    std::unique_ptr<CallInputs> inputs;
  };

  ProcessIndex process() const { return record_.thread ? kDriver : index_; }
  void Tell(std::function<void()> news) { to_node_.push_back(std::move(news)); }
  void Claim();
  void BeginCall();
  void Do(const Operation& operation);
  void DoCall(const Operation& operation);
  void DoPut(const Operation& operation);
  void MakeCall(CallKind kind, std::uint64_t seed, const Operation& operation);
  void BeginWait(std::vector<ObjectId> objects);
  void EndWait();
  void GoOnWithGet();
  void GoOnWithWait();
  void CallAfterWait(const Operation& operation, std::uint64_t ready);
  void Adopt(ObjectId id);
  void Forget(ObjectId id);
  void Finish();
  void Report(std::optional<Value> value, const std::string& root);

  Surroundings& surroundings_;
  Worker& record_;
  const WorkerIndex index_;
  ActorStates own_states_;
  ActorStates& states_;
  bool alive_ = true;
  std::deque<Entry> queue_;
  std::unique_ptr<Call> call_;
  std::uint64_t requests_ = 0;
  std::deque<std::function<void()>> to_node_;
  std::deque<Answer> to_worker_;
};

}  // namespace menger::simulation
