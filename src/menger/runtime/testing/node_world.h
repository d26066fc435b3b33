#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/node/node_machine.h"
#include "menger/runtime/testing/state_differences.h"

namespace menger {

// A driver and its workers, as the machine sees them: each worker is a queue of leases.
class World : public NodeEffects {
 public:
  explicit World(NodeMachineOptions options = {.resources = Resources(2, 0), .workers = 2})
      : machine(std::move(options), *this) {}
  ~World() { EXPECT_EQ(StateDifferences(machine.states(), /*all=*/false), ""); }

  // ---- NodeEffects.
  bool Offer(Worker& worker, const Task& task) override {
    if (queues[worker.index].size() >= room) return false;
    queues[worker.index].push_back(&task);
    return true;
  }
  bool Recall(Worker& worker, const Task& task) override {
    return std::erase(queues[worker.index], &task) > 0;
  }
  void Announce(Worker&) override {}
  void StartWorker() override { workers.push_back(&machine.AddWorker(machine.NewWorkerIndex())); }
  void Ready(const Watch& watch, Object&) override { ready.push_back(watch.request); }
  void Free(const ObjectValue& value) override {
    if (value.kind == ObjectValue::Kind::kShared) freed.push_back(value.extent.offset);
  }
  void EndWorker(Worker& worker, std::string_view) override {
    ended.push_back(worker.index);
    std::erase(workers, &worker);
  }
  void Interrupt(Worker&, const Task&) override {}
  void ActorReleased(ActorId) override { ++released_actors; }

  // ---- What the driver does.
  struct Call {
    TaskId task;
    ActorId actor;  // Of a construction.
    ObjectId result(std::uint32_t index = 0) const { return ResultOf(task, index); }
  };
  struct CallWishes {
    TaskId parent = RootTask(1);
    ProcessIndex process = kDriver;
    std::uint16_t results = 1;
    std::string scheduling = "";
    std::vector<ObjectId> contained = {};
    std::uint16_t restarts = 0;
    std::uint32_t run = 0;     // Of the parent.
    std::uint64_t number = 0;  // 0: the next.
    std::uint32_t checkpoint_every = 0;
  };
  Call Submit(SpecHeader header, const std::vector<ObjectId>& arguments, const CallWishes& wishes) {
    header.parent = wishes.parent;
    header.task =
        ChildTask(RunOf(header.parent, wishes.run), wishes.number != 0 ? wishes.number : ++calls);
    header.results = wishes.results;
    header.restarts = wishes.restarts;
    header.checkpoint_every = wishes.checkpoint_every;
    if (header.kind == CallKind::kConstruct) header.actor = ActorOf(header.task);
    const Call call{header.task, header.actor};
    SpecBuilder builder(header, static_cast<std::uint16_t>(arguments.size()), wishes.contained,
                        wishes.scheduling, "call", 0);
    for (const ObjectId id : arguments) builder.AddReference(id);
    machine.Submit(wishes.process, builder.Finish());
    machine.Run();
    return call;
  }
  Call Submit(const std::vector<ObjectId>& arguments = {}) {
    return Submit({}, arguments, CallWishes());
  }
  Call Construct(const CallWishes& wishes) {
    CallWishes actor = wishes;
    if (actor.scheduling.empty()) actor.scheduling = "cpu=0";
    return Submit({.kind = CallKind::kConstruct, .retries = 0}, {}, actor);
  }
  Call Method(const Call& actor, const CallWishes& wishes) {
    return Submit(
        {.kind = CallKind::kMethod, .actor = actor.actor, .home = actor.result(), .retries = 0}, {},
        wishes);
  }
  void Forget(ObjectId id) {
    machine.objects().DropReferrer(kDriver, *machine.objects().Find(id));
    machine.Run();
  }

  // ---- What workers do.
  struct Running {
    Worker* worker = nullptr;
    LeaseNumber lease = 0;
    TaskId task;
    CallKind kind = CallKind::kFunction;
    std::uint32_t run = 0;
    std::vector<std::byte> records = {};
  };
  // The first call in the queue of any worker; lease 0 if there is none.
  Running Begin() {
    for (Worker* const worker : workers) {
      if (!queues[worker->index].empty()) return Begin(*worker);
    }
    return {};
  }
  Running Begin(Worker& worker) {
    const Task& task = *queues[worker.index].front();
    queues[worker.index].pop_front();
    return {&worker, task.lease, task.header().task, task.header().kind, task.run, task.records};
  }
  void Finish(const Running& running, std::vector<ObjectValue> values = {}) {
    std::vector<TaskResult> results;
    for (ObjectValue& value : values) results.push_back({std::move(value), {}});
    if (results.empty()) results.push_back({Small(), {}});
    machine.Finished(*running.worker, running.lease, results, 1000);
    machine.Run();
  }
  void FinishAll() {
    for (Running running = Begin(); running.lease != 0; running = Begin()) Finish(running);
  }
  void Die(Worker& worker) {
    std::erase(workers, &worker);
    machine.WorkerDied(worker, {.kind = FailureKind::kWorkerDied, .text = "it died"});
    machine.Run();
  }

  static ObjectValue Small() { return ObjectValue::Inline(Payload::Allocate(8)); }
  static ObjectValue Large(std::uint64_t offset) { return ObjectValue::Shared({1, offset, 100}); }

  // "" while there is none, "value", or the kind of the error.
  std::string State(ObjectId id) {
    const Object* const object = machine.objects().Find(id);
    if (object == nullptr) return "forgotten";
    if (object->state == Object::State::kFreed) return "freed";
    if (object->state == Object::State::kPending) return "";
    if (object->value.kind != ObjectValue::Kind::kError) return "value";
    return FailureKindName(DecodeFailure(object->value.payload).kind);
  }
  void ExpectNothingLeft() {
    machine.Run();
    EXPECT_EQ(machine.objects().size(), 0);
    EXPECT_EQ(machine.live_tasks(), 0);
    EXPECT_EQ(machine.lineage_bytes(), 0);
    const NodeMachine::Counts& counts = machine.counts();
    EXPECT_EQ(counts.submitted + counts.rebuilt, counts.finished + counts.failed);
    EXPECT_EQ(machine.scheduler().ready(), 0);
  }

  std::vector<Worker*> workers;
  std::map<WorkerIndex, std::deque<const Task*>> queues;
  std::vector<std::uint64_t> ready;
  std::vector<std::uint64_t> freed;
  std::vector<WorkerIndex> ended;
  std::size_t room = 1000;
  int released_actors = 0;
  std::uint64_t calls = 0;
  NodeMachine machine;
};

}  // namespace menger
