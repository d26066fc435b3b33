#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/node/node_machine.h"
#include "menger/runtime/node/peer_link.h"
#include "menger/runtime/simulation/checker.h"
#include "menger/runtime/simulation/simulated_worker.h"

namespace menger::simulation {

class SimulatedNode;

// What one node tells another: done there. `sender`: as the receiver knows it.
using Letter = std::function<void(SimulatedNode& receiver, PeerIndex sender)>;
using Link = PeerLink<Letter>;
enum class Lane : std::uint8_t { kControl, kBulk };  // Two ways between two nodes.

// What the programs of a schedule may meet: the same for all nodes.
struct CommonPlan {
  std::uint16_t retries = 0;
  std::uint16_t restarts = 0;
  std::uint16_t checkpoint_every = 0;
  int shared_percent = 0;
  bool gpus = false;        // Some calls need one,
  bool seats = false;       // some actors a seat.
  bool strategies = false;  // Some calls go to nodes in turn, or to a GPU where there is one.
  bool spread = false;      // Placement groups have two bundles, on two nodes if they can.
  bool meets = false;       // Drivers give one another what they refer to.
  bool orderly = false;     // No node ends before it has drained.
  bool guests = false;      // Each node's calls run a program of its own.
  bool keepsakes = false;   // Some calls leave a reference in the process.
  bool errors = false;      // Calls may fail because workers die, and the like.
};

// What one node may do.
struct NodePlan {
  bool threads = false;
  int workers = 1;
  bool gpu = false;
  int seats = 0;
  int driver_steps = 0;
  int deaths = 0;   // Still allowed,
  int cancels = 0;  // likewise,
  int losses = 0;
  std::size_t room = 0;  // Of a worker's queue.
  double wait_here_max = 0;
  std::uint64_t reading_bytes_max = 0;
};

// For those who doubt that anything happens.
struct SimulationCounts {
  std::uint64_t events = 0;
  std::uint64_t values = 0;  // Checked by drivers.
  std::uint64_t errors = 0;  // Likewise: permitted ones.
  std::uint64_t deaths = 0;
  std::uint64_t node_deaths = 0;
  std::uint64_t drained = 0;  // Nodes that have left without a loss.
  std::uint64_t groups = 0;   // Placement groups that were asked for,
  std::uint64_t asked = 0;    // other nodes that were asked for bundles,
  std::uint64_t removed = 0;  // and those that were removed while calls were in them.
  std::uint64_t loans = 0;
  std::uint64_t guests = 0;      // Workers that were started for them,
  std::uint64_t rests = 0;       // and loans that rested.
  std::uint64_t away = 0;        // Of these for actors,
  std::uint64_t inside = 0;      // likewise: for calls in placement groups.
  std::uint64_t remote = 0;      // What lent workers have said,
  std::uint64_t fetched = 0;     // and values brought from where they lay,
  std::uint64_t spread = 0;      // of these those that a third node needed.
  std::uint64_t given = 0;       // References that another driver got,
  std::uint64_t called = 0;      // calls that were made of another's actor,
  std::uint64_t brought = 0;     // and values of another's that were brought for own use.
  std::uint64_t packets = 0;     // That were lost.
  std::uint64_t partings = 0;    // Of two nodes, for a while;
  std::uint64_t rifts = 0;       // for so long that they took each other for dead.
  std::uint64_t fail_overs = 0;  // Of the control store.
  std::uint64_t fenced = 0;      // Nodes that were cut off from it for too long.
  NodeMachine::Counts node;
  States states;
};

// One node in one of its lives, its workers and a driver: the real NodeMachine, and around it a
// world in which messages take any time and workers die at any moment.
class SimulatedNode final : private NodeEffects, private Surroundings {
 public:
  // `number` and `epoch` say who it is. All is borrowed.
  SimulatedNode(int number, std::uint64_t epoch, const CommonPlan& common, const NodePlan& plan,
                Random& random, SimulationCounts& counts);
  ~SimulatedNode();

  int number() const { return number_; }
  std::uint64_t epoch() const { return epoch_; }
  const NodePlan& plan() const { return plan_; }
  static Resources ResourcesOf(const NodePlan& plan);
  static NodeId IdOf(int number);

  void Start() { machine_.StartWorkers(); }

  // ---- What the simulation does with it. After each: Settle.
  // How many things could happen now, and one of them.
  int Choices();
  void Do(int choice);
  bool Drives() const { return plan_.driver_steps > 0 || !held_.empty(); }
  bool HasCalls() const { return machine_.live_tasks() > 0; }
  bool DropSomething();  // False if there is nothing, or the driver waits.
  void Settle(std::int64_t now);
  void RunMachine() { machine_.Run(); }
  void EndGuests();
  void Drain();
  bool HasActorsOfOthers();
  bool drains() const { return drains_; }
  bool MayLeave() const { return drains_ && machine_.drain_progress().done(); }

  // ---- Other nodes.
  void Meet(const SimulatedNode& other);
  bool Knows(int number, std::uint64_t epoch) const;
  void HearOfDeath(int number, std::uint64_t epoch);
  // The end of the way to that node's present life; null if it is not known.
  Link* LinkTo(int number, Lane lane);
  void Arrive(int from, Lane lane, Link::Packet packet);

  // Throws Internal.
  void CheckNothingLeft();
  std::string Describe() const;
  const NodeMachine::Counts& machine_counts() const { return machine_.counts(); }
  const States& machine_states() const { return machine_.states(); }

 private:
  // What the driver refers to.
  struct Held {
    Reference reference;
    KnownPointer known;
    bool watched = false;
    std::uint64_t wait = 0;  // See NodeMachine::BeginDriverWait.
  };
  struct Neighbour {
    std::uint64_t epoch = 0;
    PeerIndex peer = 0;
    Link control;
    Link bulk;
  };

  // ---- NodeEffects.
  bool Offer(Worker& worker, const Task& task) override;
  bool Recall(Worker& worker, const Task& task) override;
  void Announce(Worker&) override {}
  void StartWorker() override { ++starting_; }
  void StartGuest(ProgramIndex program) override { starting_guests_.push_back(program); }
  void Pull(const PullOrder& order) override;
  void Ready(const Watch& watch, Object& object) override;
  void Free(const ObjectValue& value) override;
  void EndWorker(Worker& worker, std::string_view why) override;
  void Interrupt(Worker&, const Task&) override {}
  void ActorReleased(ActorId id) override { released_.push_back(id); }
  void TellPeer(const Peer& peer, const PeerMessage& message) override;
  void Lent(Worker&, const Peer&) override { ++counts_.loans; }
  std::vector<LeaseNumber> BegunBy(const Worker& worker) override {
    return workers_.at(worker.index)->BegunLeases();
  }

  // ---- Surroundings.
  NodeMachine& machine() override { return machine_; }
  void Forward(News news) override;
  void Bring(Worker& record, std::uint64_t request, Object& object) override;
  ObjectValue MakeValue(WorkerIndex worker, Payload bytes) override;
  Payload Read(const ObjectValue& value) override;
  void Publish(const ObjectValue& value) override;
  void Complete(SpecHeader& header) override;
  std::string_view NeedsOf(const SpecHeader& header) override;
  bool LeavesKeepsake(const SpecHeader& header) override {
    return common_.keepsakes && header.kind == CallKind::kFunction && header.task.low % 3 == 0;
  }
  void CheckCall(const TaskSpec& spec) override { checker_.Called(spec); }
  void CheckPut(ObjectId id, std::uint64_t fold) override { checker_.WasPut(id, fold); }
  void CheckMethod(const SpecHeader& header, const ActorState& state) override {
    checker_.MethodDone(header, state.state, state.position);
  }

  int Draw(int bound) { return static_cast<int>(random_.Integers(0, bound)); }
  bool OneIn(int count) { return Draw(count) == 0; }

  // ---- Other nodes.
  void Send(PeerIndex to, Letter letter);
  SimulatedWorker* FindLent(PeerIndex borrower, LoanNumber loan);
  void Take(PeerIndex from, News& news);
  Value ReadKept(PeerIndex borrower, std::uint64_t kept);
  void SayReturned(PeerIndex borrower, LoanNumber loan, LeaseNumber lease);
  // Whose a value is that is pulled: a node in one of its lives.
  struct Owner {
    int number = 0;
    std::uint64_t epoch = 0;
    bool operator==(const Owner&) const = default;
  };
  struct Pulling {
    Owner owner;
    std::uint64_t pull = 0;
    PeerIndex source = 0;
  };
  Peer* FindPeer(const Owner& owner);  // Null if it is gone.
  void EndPulls(const Owner& gone, PeerIndex source);
  void ServePull(PeerIndex asker, const Owner& owner, std::uint64_t pull, std::uint64_t name);
  void TakePulled(const Owner& owner, std::uint64_t pull, const std::optional<Payload>& bytes);
  void CopyHere();
  // A reference that another driver gives, which keeps it until this node is known to have it.
  void TakeGift(PeerIndex giver, const ForeignName& name, const Reference& reference,
                const KnownPointer& known);
  void SayThanks();
  void TakeThanks(PeerIndex taker, ObjectId id);

  // ---- The schedule.
  void AddProcess(Worker& worker);
  void StartGuestAt(std::size_t index);
  void BringProgram();
  void Kill(SimulatedWorker& worker);
  void Bury();
  void EndReleased();
  void AskAgain();

  // ---- The driver.
  void DriverStep();
  void DriverDrop();
  void DriverCall();
  void DriverMethod();
  void DriverCreate();
  void DriverReserve();
  void DriverPut();
  void DriverGet();
  void DriverCancel();
  void DriverLose();
  void DriverGive();
  TaskId Root() const;
  ObjectId Reserve(std::string_view bundles);
  ObjectId ReserveSlots();
  void LeaveGroup(ObjectId group);
  void Submit(SpecHeader header, const CallContent& content, const std::vector<ObjectId>& values,
              KnownPointer known, SlotKind kind);
  void Check(Held& held, const Object& object);
  void Drop(std::size_t index);
  int Pick(SlotKind kind);  // Of those that the driver holds, its place; -1 for none.

  const int number_;
  const std::uint64_t epoch_;
  const CommonPlan& common_;
  NodePlan plan_;
  Random& random_;
  SimulationCounts& counts_;
  NodeMachine machine_;
  Checker checker_;
  std::int64_t now_ = 0;
  bool drains_ = false;
  std::map<WorkerIndex, std::unique_ptr<SimulatedWorker>> workers_;
  std::vector<std::pair<SimulatedWorker*, int>> choices_;
  int starting_ = 0;
  std::vector<ProgramIndex> starting_guests_;
  std::vector<std::pair<PeerIndex, ProgramIndex>> programs_;  // On their way here.
  ProgramIndex last_program_ = kOwnProgram;
  ActorStates states_;  // Of threads.
  std::vector<ActorId> released_;

  struct Extent {
    Payload bytes;
    WorkerIndex writer = 0;
    bool published = false;
  };
  std::unordered_map<std::uint64_t, Extent> extents_;
  std::uint64_t last_extent_ = 0;

  std::map<int, Neighbour> neighbours_;  // By number: in their present lives.
  std::vector<Pulling> pulling_;
  struct HereAlready {
    Owner owner;
    std::uint64_t pull = 0;
    std::uint64_t name = 0;
  };
  std::vector<HereAlready> here_already_;
  struct Gift {
    PeerIndex other = 0;
    ObjectId object;
  };
  std::vector<Gift> given_;                             // Not known to have arrived.
  std::vector<Gift> taken_;                             // Likewise, by their owners.
  std::vector<std::pair<Watch, ObjectId>> asks_again_;  // They came, and lie elsewhere.
  std::vector<std::uint64_t>
      ended_waits_;  // Of the driver; the machine is told when it is at rest.

  std::vector<Held> held_;
  std::uint64_t driver_calls_ = 0;
};

}  // namespace menger::simulation
