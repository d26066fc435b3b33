#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "menger/runtime/calls/call_inputs.h"
#include "menger/runtime/node/node_machine.h"
#include "menger/runtime/simulation/simulated_values.h"

namespace menger::simulation {

struct ActorState {
  std::uint64_t state = 0;
  std::uint64_t position = 0;          // Calls so far.
  std::optional<Reference> kept = {};  // A reference that one call leaves to later ones.
};
using ActorStates = std::unordered_map<ActorId, ActorState, IdHash>;

// What failed first, as calls tell those that wait for them.
std::string RootOf(const TaskFailure& failure);

class Surroundings;

// What a worker says: to the machine of the node whose call it does.
struct News {
  PeerIndex borrower = 0;  // That node, where it is another,
  LoanNumber loan = 0;     // and the worker there.
  std::vector<ObjectValue> values;
  // `owner`: that node, `record`: what the worker is there.
  std::function<void(Surroundings& owner, Worker& record, std::vector<ObjectValue>& values)> tell;
};

// What the processes of a simulation have around them: the node, shared memory, and who checks
// them.
class Surroundings {
 public:
  virtual NodeMachine& machine() = 0;
  virtual void Forward(News news) = 0;  // To another node.
  // An object that the worker has asked for.
  virtual void Bring(Worker& record, std::uint64_t request, Object& object) = 0;
  // A value in a message or in shared memory that `worker` may write.
  virtual ObjectValue MakeValue(WorkerIndex worker, Payload bytes) = 0;
  virtual Payload Read(const ObjectValue& value) = 0;
  virtual void Publish(const ObjectValue& value) = 0;  // The node knows of it.
  // The rest of a header: how often the call is run again, and so on.
  virtual void Complete(SpecHeader& header) = 0;
  virtual std::string_view NeedsOf(const SpecHeader& header) = 0;
  // Whether what that call was given stays in its process.
  virtual bool LeavesKeepsake(const SpecHeader& header) = 0;

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

  // A call for the worker, with its arguments.
  struct Entry {
    LeaseNumber lease = 0;
    std::uint32_t number = 0;  // Of the run.
    std::vector<std::byte> bytes;
    const TaskSpec& spec() const { return TaskSpec::View(bytes); }
    TaskId run() const { return RunOf(spec().task(), number); }
    std::vector<Value> values;
    std::vector<std::byte> records;
    // Of the values those that lie where the worker lives: place and number.
    std::vector<std::pair<std::size_t, std::uint64_t>> kept;
  };
  // A value that it has asked for.
  struct Answer {
    std::uint64_t request = 0;
    bool failed = false;
    std::string root;  // What failed first.
    Value value;
    std::uint64_t kept = 0;  // It lies where the worker lives.
    ObjectId pinned;         // Until the worker has read it.
  };

  WorkerIndex index() const { return index_; }

  // ---- The node's end.
  // `owner` has the call; `node`: where the worker lives, as the owner calls it.
  static Entry MakeEntry(Surroundings& owner, const Task& task, PeerIndex node);
  static Answer MakeAnswer(Surroundings& owner, std::uint64_t request, Object& object,
                           Worker& record);
  void Offer(Entry entry) { queue_.push_back(std::move(entry)); }
  bool Recall(LeaseNumber lease);
  std::size_t queued() const { return queue_.size(); }
  std::vector<LeaseNumber> BegunLeases() const;
  void Ready(Answer answer);  // Travels to the worker.

  // ---- What the simulation does with it.
  bool CanStep() const;
  void Step();
  bool CanTimeOut() const;  // It waits, but need not.
  void TimeOut();
  bool HasNews() const { return !to_node_.empty(); }
  void DeliverNews();  // The oldest, to the machine of whoever has lent the worker.
  bool HasAnswer() const { return !to_worker_.empty(); }
  void DeliverAnswer();
  // What a call has left in the process, which refers to it still; false if none has.
  bool DropKeepsake();
  void Die() { alive_ = false; }
  bool alive() const { return alive_; }
  bool busy() const { return call_ != nullptr || !queue_.empty(); }
  std::string Describe() const;

 private:
  // A call under way.
  struct Call {
    Entry entry;
    CallContent content;
    Script script;
    std::uint64_t fold = 0;
    std::vector<Reference> slots;
    std::vector<ObjectId> handles;
    std::size_t next = 0;       // Operation.
    std::uint64_t calls = 0;    // Made so far,
    std::uint64_t puts = 0;     // likewise.
    std::uint64_t request = 0;  // That it waits for; 0: it does not.
    bool inner = false;         // For what lies inside the value of `target`.
    std::vector<ObjectId> watched;
    std::vector<Answer> answers;  // To the request.
    std::unique_ptr<CallInputs> inputs;
  };

  using Telling = std::function<void(Surroundings&, Worker&, std::vector<ObjectValue>&)>;
  static ProcessIndex ProcessOf(const Worker& record) {
    return record.thread ? kDriver : record.index;
  }
  void Tell(Telling tell, std::vector<ObjectValue> values = {}) {
    to_node_.push_back({record_.borrower, record_.loan, std::move(values), std::move(tell)});
  }
  void Claim();
  void BeginCall();
  void Do(const Operation& operation);
  void DoCall(const Operation& operation);
  void DoPut(const Operation& operation);
  void MakeCall(CallKind kind, std::uint64_t seed, const Operation& operation);
  void BeginWait(const std::vector<ObjectId>& objects);
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
  std::optional<ObjectId> keepsake_;
  std::uint64_t requests_ = 0;
  std::deque<News> to_node_;
  std::deque<Answer> to_worker_;
};

}  // namespace menger::simulation
