#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/node_machine.h"
#include "menger/runtime/simulation/checker.h"
#include "menger/runtime/simulation/simulated_worker.h"

namespace menger::simulation {

// A node, its workers and a driver in one thread: the real NodeMachine, and around it a world in
// which messages take any time, workers die at any moment, and all that follows from one seed.
// A run makes a random program, runs it on a random schedule, and checks that every value is that
// of Interpret or a permitted error, that what happens once happens once, that nothing waits for
// ever, and that in the end nothing is left.
class SimulatedCluster final : private NodeEffects, private Surroundings {
 public:
  explicit SimulatedCluster(std::uint64_t seed);
  ~SimulatedCluster();

  // Throws Internal that says what is wrong.
  void Run();

  // What has happened, for those who doubt that anything does.
  struct Counts {
    std::uint64_t events = 0;
    std::uint64_t values = 0;  // Checked by the driver.
    std::uint64_t errors = 0;  // Likewise: permitted ones.
    std::uint64_t deaths = 0;
    NodeMachine::Counts node;
  };
  const Counts& counts() const { return counts_; }

 private:
  // What a schedule may do, drawn from the seed.
  struct Plan {
    bool threads = false;
    int workers = 1;
    int driver_steps = 0;
    int deaths = 0;   // Still allowed,
    int cancels = 0;  // likewise,
    int losses = 0;
    std::uint16_t retries = 0;
    std::uint16_t restarts = 0;
    std::uint16_t checkpoint_every = 0;
    std::size_t room = 0;  // Of a worker's queue.
    int shared_percent = 0;
    bool errors = false;  // Calls may fail because workers die, and the like.
  };
  static Plan MakePlan(Random& random);
  static NodeMachineOptions Options(const Plan& plan);

  // What the driver refers to.
  struct Held {
    Reference reference;
    KnownPointer known;
    bool watched = false;
  };

  // ---- NodeEffects.
  bool Offer(Worker& worker, const Task& task) override;
  bool Recall(Worker& worker, const Task& task) override;
  void Announce(Worker&) override {}
  void StartWorker() override { ++starting_; }
  void Ready(const Watch& watch, Object& object) override;
  void Free(const ObjectValue& value) override;
  void EndWorker(Worker& worker, std::string_view why) override;
  void Interrupt(Worker&, const Task&) override {}
  void ActorReleased(ActorId id) override { released_.push_back(id); }

  // ---- Surroundings.
  NodeMachine& machine() override { return machine_; }
  ObjectValue MakeValue(WorkerIndex worker, Payload bytes) override;
  Payload Read(const ObjectValue& value) override;
  void Publish(const ObjectValue& value) override;
  void Complete(SpecHeader& header) override;
  void CheckCall(const TaskSpec& spec) override { checker_.Called(spec); }
  void CheckPut(ObjectId id, std::uint64_t fold) override { checker_.WasPut(id, fold); }
  void CheckMethod(const SpecHeader& header, const ActorState& state) override {
    checker_.MethodDone(header, state.state, state.position);
  }

  int Draw(int bound) { return static_cast<int>(random_.Integers(0, bound)); }
  bool OneIn(int count) { return Draw(count) == 0; }

  // ---- The schedule.
  bool DoSomething();  // False if nobody can do anything.
  void Kill(SimulatedWorker& worker);
  void Bury();
  void EndReleased();
  void LetTimePass();
  [[noreturn]] void FailStuck() const;

  // ---- The driver.
  void DriverStep();
  void DriverDrop();
  void DriverCall();
  void DriverMethod();
  void DriverCreate();
  void DriverPut();
  void DriverGet();
  void DriverCancel();
  void DriverLose();
  void Submit(SpecHeader header, CallContent content, std::vector<ObjectId> values,
              KnownPointer known, SlotKind kind);
  void Check(Held& held, const Object& object);
  void Drop(std::size_t index);
  int Pick(SlotKind kind);  // Of those that the driver holds, its place; -1 for none.
  void CheckNothingLeft();

  Random random_;
  Plan plan_;
  NodeMachine machine_;
  Checker checker_;
  Counts counts_;
  std::int64_t now_ = 0;
  std::map<WorkerIndex, std::unique_ptr<SimulatedWorker>> workers_;
  int starting_ = 0;
  ActorStates states_;  // Of threads.
  std::vector<ActorId> released_;

  struct Extent {
    Payload bytes;
    WorkerIndex writer = 0;
    bool published = false;
  };
  std::unordered_map<std::uint64_t, Extent> extents_;
  std::uint64_t last_extent_ = 0;

  std::vector<Held> held_;
  std::uint64_t driver_calls_ = 0;
};

}  // namespace menger::simulation
