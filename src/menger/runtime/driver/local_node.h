#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/epoch_counter.h"
#include "menger/base/thread.h"
#include "menger/runtime/calls/client.h"
#include "menger/runtime/calls/runtime_options.h"
#include "menger/runtime/channel/doorbell.h"
#include "menger/runtime/channel/worker_flags.h"
#include "menger/runtime/control/control_state.h"
#include "menger/runtime/control/node_record.h"
#include "menger/runtime/driver/guest_output.h"
#include "menger/runtime/driver/line_printer.h"
#include "menger/runtime/driver/neighbours.h"
#include "menger/runtime/driver/spiller.h"
#include "menger/runtime/driver/worker_host.h"
#include "menger/runtime/driver/worker_team.h"
#include "menger/runtime/memory/value_store.h"
#include "menger/runtime/node/node_machine.h"
#include "menger/runtime/watching/job_socket.h"
#include "menger/runtime/watching/loss_log.h"
#include "menger/runtime/watching/timeline.h"
#include "menger/runtime/worker/executor.h"
#include "menger/tensor/memory.h"

namespace menger {

class ProcessTeam;
class ThreadWorker;

// The node that a driver embeds: the machine under one lock, the workers that do its calls, and the
// driver's way to it.
//
// References on its objects may outlive the runtime: the memory stays until the last has gone. In a
// fork of the driver it stays for good, and whatever lies in it as the fork has found it: the
// threads that would have to be joined, and the owners of the locks, are the parent's.
//
// Whoever has something to tell does the node's work there and then if the lock is free; if it is
// not, the holder does it when he goes. A thread of its own looks after what nobody waits for.
//
// Lock order: getting_, node_mutex_, queue_mutex_.
class LocalNode final : public Client, private NodeEffects {
 public:
  // How it is one node among others. The functions are called under the lock: they wait for
  // nothing.
  struct Place {
    enum class Role : std::uint8_t {
      kBoth,    // Its own workers do its driver's calls, or are lent.
      kDriver,  // It has no workers, and so only what it borrows.
      // It has no driver: its workers run the programs of others (SetProgram). Its resources are
      // as given, also where there is no CPU.
      kNode,
    };
    NodeLife own;
    Role role = Role::kBoth;
    // As NodeMachineOptions::node_patience.
    std::chrono::nanoseconds node_patience{0};
    // Takes packets to others; what it cannot take is sent again after StreamOpened.
    std::function<void(std::vector<Neighbours::Flying>)> post;
    // That node is none of this one's neighbours any longer: it has said so, or has said what
    // nobody may. May be empty.
    std::function<void(const NodeLife& node, const Error& why)> parted;
    // Asks who keeps the names of the cluster; NameAnswered follows. Empty: names are the job's
    // own.
    std::function<void(const NameQuestion& question)> ask_name;
    // Members of the cluster, as far as this one knows, itself first: for whoever asks the job, not
    // under the lock. May be empty.
    std::function<std::vector<NodeRecord>()> members;
    // Names of actors that all nodes share, of those that live; likewise.
    std::function<std::vector<std::string>()> names;
    // Adds what is known of the cluster to the node's metrics; likewise.
    std::function<void(MetricsText& text)> add_metrics;
  };
  // So much its values may take in memory.
  static std::uint64_t StoreBytes(const RuntimeOptions& options);
  // Made by new, and deletes itself after End.
  explicit LocalNode(const RuntimeOptions& options, std::optional<Place> place = {});
  // Ends all workers; from now on whatever is asked for throws FailedPrecondition. Once.
  void End();

  // ---- Client.
  void Submit(SpecPointer spec, std::span<ObjectHandle> results) override;
  ObjectHandle NewObject(ObjectId id) override { return NewHandle(id); }
  std::span<std::byte> Allocate(std::size_t bytes, ObjectValue& value) override;
  void Publish(const ObjectHandle& object, ObjectValue value,
               std::span<const ObjectHandle> contained) override;
  void Discard(const ObjectValue& value) noexcept override;
  Fetched Get(std::span<const ObjectHandle> objects, const Deadline& deadline) override;
  std::vector<std::size_t> Wait(std::span<const ObjectHandle> objects, std::size_t count,
                                const Deadline& deadline) override;
  void Yield(std::uint64_t index, ObjectValue value,
             std::span<const ObjectHandle> contained) override;
  void Take(TaskId stream, std::uint64_t count) noexcept override;
  void Cancel(const ObjectHandle& object, bool force, bool recursive) override;
  void KillActor(ActorId actor, ObjectId object, bool may_restart) override;
  std::optional<NamedActor> FindActor(std::string_view name) override;
  bool IsCancelled() const override;
  void Unpin(const ObjectHandle& object) noexcept override;
  ObjectHandle Adopt(ObjectId id) override;
  void Forget(Reference* reference) noexcept override;
  bool open() const noexcept override { return !stopping() && !InFork(); }
  void CheckOpen() const override;

  // ---- For the threads that do calls.

  // ---- Other nodes. Any thread.
  // What the workers for the calls of one with a job run SetProgram says, or CannotServe why it
  // cannot be had; for others' calls they run what this node's do. `beside`: as Neighbours::Meet.
  void Meet(const NodeRecord& node, bool beside = false);
  bool HasMet(const NodeLife& node);
  // Who owns what others have spoken of, and was not met: it is to be met, or HearOfEnd called.
  std::vector<NodeLife> Strangers();
  void SetProgram(const NodeLife& node, const GuestProgram& program);
  void CannotServe(const NodeLife& node, const std::string& why);
  // False if it was no neighbour.
  bool HearOfEnd(const NodeLife& node, const std::string& why);
  // No other node will be met any longer: what only they could do fails with this as its cause.
  void CutOff(const std::string& why);
  // Packets of one node.
  void Arrive(std::vector<Neighbours::Flying> packets);
  // What was posted to it may be lost, and is posted again.
  void StreamOpened(const NodeLife& node, PeerLane lane);
  // It will leave: it lends nothing more, and the others take what they would miss (drains.h). What
  // they still have of it.
  void Drain();
  DrainProgress HowFarDrained();
  void NameAnswered(const NameQuestion& question, const NameAnswer& answer);
  // An actor of this node has lost its name to another's, and ends.
  void NameLost(const menger::NamedActor& actor);
  // What the workers of others have printed for this one until now shall come.
  void AskForLines();
  bool AwaitsLines();
  // Whether the others are known to have all that they were told.
  bool OthersKnowAll();
  // Before End: the others shall not wait for it.
  void SayFarewell();

  // Does what is to be done; for whoever does not hold the lock.
  void Work();
  // Runs `tell` under the lock, and then what follows from it.
  void Tell(FunctionRef<void(NodeMachine&)> tell);
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }

  NodeMachine::Counts Counts();
  struct StoreUse {
    std::uint64_t used_bytes = 0;      // In shared memory, of which
    std::uint64_t granted_bytes = 0;   // workers may write so many: no values yet.
    std::uint64_t resident_bytes = 0;  // With what is kept to be used again.
    Spiller::Counts spiller;
  };
  StoreUse Store();

  // ---- For whoever looks at the job: any thread, for a moment at a time.
  NodeStatus Status();
  std::string Metrics();  // As Prometheus reads them.
  std::string Calls();    // Those that are not done, as JSON.
  std::string Nodes();  // Of the cluster, as JSON; there are none where this is one machine alone.
  void WriteTimeline(FunctionRef<void(std::string_view piece)> write);
  std::string Names();  // Of actors that all nodes share, as JSON; likewise.
  // One of these, by its name: "status", "calls", "nodes", "names", "metrics" or "timeline". Throws
  // InvalidArgument for another.
  void Answer(std::string_view question, FunctionRef<void(std::string_view piece)> write);

  ActorInstances& actors() { return actors_; }

 private:
  static constexpr std::uint32_t kDriverSegment = 0;

  ~LocalNode() = default;

  // What a thread of the driver has to tell; kept until somebody holds the lock.
  struct Message {
    enum class Kind : std::uint8_t { kSubmit, kAdopt, kForget, kUnpin, kTake } kind;
    SpecPointer spec;         // kSubmit,
    WorkerIndex caller = 0;   // by a call on that thread.
    ObjectId object;          // kAdopt, kForget, kUnpin.
    TaskId stream;            // kTake:
    std::uint64_t count = 0;  // so many items of it.
  };

  // A thread that waits for objects, or for room.
  struct Waiter {
    EpochCounter ready;
    std::atomic<std::size_t> missing{0};  // Written under the lock.
    std::atomic<bool> listens{false};     // It sleeps at the bell, not at `ready`.
    bool ordered = false;                 // It wants to know the
    std::vector<const Object*> order;     // of those that have become ready. Under the lock.
    bool reads = false;                   // It wants the values, in memory:
    std::vector<Object*> pinned;          // what has come stays until it has fetched them.
    const Object* failed = nullptr;       // One of these that it waits for no longer.
    std::optional<TaskFailure> refusal;   // There is no room for some.
    bool cancelled = false;               // The call that waits was.
  };

  // A thread that looks for an actor by its name.
  struct NameAsker {
    EpochCounter told;
    std::optional<NameAnswer> answer;  // Under the lock.
  };

  // The lock; whoever gives it up does what others had to leave to him.
  class Mutex {
   public:
    explicit Mutex(LocalNode& node) : node_(node) {}
    void lock() { mutex_.lock(); }
    bool try_lock() { return mutex_.try_lock(); }
    void unlock() {
      mutex_.unlock();
      node_.DoPendingWork();
    }
    std::mutex& plain() { return mutex_; }  // Of which only the lock is given up.

   private:
    LocalNode& node_;
    std::mutex mutex_;
  };

  // ---- NodeEffects.
  bool Offer(Worker& worker, const Task& task) override { return worker.host->Offer(task); }
  bool Recall(Worker& worker, const Task& task) override { return worker.host->Recall(task); }
  void Announce(Worker& worker) override { worker.host->Announce(); }
  void StartWorker() override { team_->StartWorker(); }
  void StartGuest(ProgramIndex program) override { team_->StartGuest(program); }
  void Restore(Object& object) override { spiller_->Restore(object); }
  void ActorReleased(ActorId actor) override;
  void Ready(const Watch& watch, Object& object) override;
  void Free(const ObjectValue& value) override;
  void EndWorker(Worker& worker, std::string_view why) override { worker.host->End(why); }
  void DismissWorker(Worker& worker, std::string_view why) override { worker.host->Dismiss(why); }
  void Interrupt(Worker& worker, const Task& task) override;
  void Warn(std::string_view text) override;
  void WorkerLost(const Worker& worker, const Task* ran, std::size_t begun,
                  const TaskFailure& cause) override;
  void TellPeer(const Peer& peer, const PeerMessage& message) override {
    neighbours_->Tell(peer, message);
  }
  void AskName(const NameQuestion& question) override { place_->ask_name(question); }
  void Named(const Watch& asker, const NameAnswer& answer) override;
  void Pull(const PullOrder& order) override { neighbours_->Pull(order); }
  void Lent(Worker& worker, const Peer&) override { neighbours_->Lent(worker); }
  std::vector<LeaseNumber> BegunBy(const Worker& worker) override {
    return neighbours_->BegunBy(worker);
  }
  std::string NameOfFunction(FunctionId function) override;
  void ActorChanged(const Actor& actor) override { control_.ActorChanged(actor.id); }
  void SharedReady(const Object& object) override {
    if (object.value.extent.bytes >= kLargeObjectBytes) control_.LargeObject(object.id);
  }

  // The worker that this thread is; null for the driver's own threads, and another runtime's.
  ThreadWorker* ThisWorker() const;

  ObjectHandle NewHandle(ObjectId id);
  void Release() noexcept;  // One user less; the last one deletes the node.
  void Send(Message message);
  void DoPendingWork();
  // `all`: looks at all workers, also at those that have not said that they have something.
  void WorkLocked(bool all = false);
  void DeliverMessages();
  void RunMachine();
  Neighbours::Hooks NeighbourHooks(ProcessTeam& team);
  void ServeNeighbours();
  void SendLines();
  void TellLinesSoon(PeerIndex to);
  std::string NameOfNode(const NodeId& id);
  void TellNeighbours(FunctionRef<void(Neighbours&)> tell);
  bool Part(const NodeLife& node, const std::string& why);
  SharedExtent AwaitRoom(std::size_t bytes, std::unique_lock<Mutex>& lock);
  PinnedBytes Fetch(Object& object);
  static bool IsThere(const Object& object, const Waiter& waiter);
  static bool EndsWait(const Object& object, Waiter& waiter);
  void PinFor(Waiter& waiter, Object& object);
  void DropPins(Waiter& waiter);
  void NoteReady(std::span<const ObjectHandle> handles, std::span<Object* const> objects) const;
  void Refuse(const Watch& watch, const Object& object, const Payload& error) override;
  std::unique_lock<Mutex> AwaitObjects(std::span<const ObjectHandle> handles, std::size_t count,
                                       const Deadline& deadline, std::vector<Object*>& objects,
                                       Waiter& waiter);
  void SlowDown();
  void LookAround();
  void AwaitWaiter(Waiter& waiter, const Deadline& deadline, std::unique_lock<Mutex>& lock);
  void Wake(Waiter& waiter);  // Under the lock.
  void AwaitSignal(Waiter& waiter, const Deadline& deadline);
  void AwaitWorkers(Waiter& waiter, const Deadline& deadline);
  void LookAfter();
  std::chrono::nanoseconds LookOnce(std::chrono::nanoseconds pause);
  std::chrono::nanoseconds NextPause(std::chrono::nanoseconds before, std::int64_t now);
  void WriteLines();
  WorkerPlaces PlacesOf(std::span<const NodeEvent> events, std::span<const std::string> names,
                        const NodeStatus& status) const;
  void KeepControlState(std::int64_t now);
  void GiveBackMemory(std::int64_t now);
  void GiveBackAllMemory();
  void AddDriverSegment();
  Spiller::Options SpillerOptions();
  void StartAnswering();
  void DestroyActors();
  NodeBell& shared_bell() { return *reinterpret_cast<NodeBell*>(bell_memory_->data()); }
  Doorbell& bell() { return shared_bell().doorbell; }

  const RuntimeOptions options_;
  const std::int64_t started_at_ = MonotonicNanoseconds();
  std::atomic<std::int64_t> users_{1};     // The runtime, and each Reference.
  ActorInstances actors_;                  // Of thread workers.
  std::atomic<bool> pending_work_{false};  // Somebody found the lock taken.
  Mutex node_mutex_{*this};
  ControlState control_;             // Guarded by node_mutex_, but for what the caretaker writes.
  NodeMachine machine_;              // Guarded by node_mutex_.
  ValueStore store_;                 // Likewise.
  std::vector<Message> delivering_;  // Likewise; kept for its memory.
  FunctionTable functions_;          // Likewise; for their names.
  LossLog losses_;                   // Likewise.
  std::vector<std::string> lines_;   // Likewise: of the log, to be written without the lock.
  RateMeter finished_rate_;          // Likewise.
  std::uint64_t news_ = 0;           // Likewise: times that somebody had something to tell.
  std::uint64_t seen_news_ = 0;      // By the caretaker. Likewise.
  std::mutex queue_mutex_;
  std::vector<Message> queue_;                      // Guarded by queue_mutex_.
  std::atomic<std::size_t> queued_{0};              // Messages in queue_.
  std::atomic<bool> idle_workers_{true};            // A hint, of the last time that work was done.
  std::atomic<bool> full_{false};                   // Likewise: the driver has made too many calls.
  std::vector<Waiter*> room_waiters_;               // Guarded by node_mutex_.
  std::map<WorkerIndex, Waiter*> waiting_threads_;  // Those whose calls wait. Likewise.
  std::vector<ActorId> ended_actors_;  // Of threads, not destroyed yet. Guarded by node_mutex_.
  std::atomic<bool> stopping_{false};
  std::unique_ptr<SharedMemory> bell_memory_;  // What worker processes ring.
  std::unique_ptr<Spiller> spiller_;           // Guarded by node_mutex_.
  std::mutex getting_;                         // Of the thread that listens to the bell.
  std::unique_ptr<TeamOfWorkers> team_;        // Guarded by node_mutex_.
  const std::optional<Place> place_;
  std::unique_ptr<Neighbours> neighbours_;      // Guarded by node_mutex_. None where it is alone.
  std::map<PeerIndex, ProgramIndex> programs_;  // Likewise.
  ProgramIndex last_program_ = kOwnProgram;     // Likewise.
  GuestOutput guest_output_;
  std::unique_ptr<LinePrinter> line_printer_;  // Of whoever has a driver, among other nodes.
  // Of values that came, and lie elsewhere. Likewise.
  std::vector<std::pair<Watch, ObjectId>> asks_again_;
  std::int64_t gathered_at_ = 0;                   // The caretaker's, as the next two.
  std::int64_t looked_for_unused_at_ = 0;          // In the store.
  bool gives_back_ = false;                        // Some of it is not given back yet.
  std::int64_t looked_at_all_at_ = 0;              // Likewise,
  std::chrono::nanoseconds look_at_all_pause_{0};  // and the pause until the next time.
  std::atomic<bool> resting_{false};               // It looks again only after a while.
  Thread caretaker_;
  std::unique_ptr<JobSocket> socket_;  // None where there is no place for one.
};

}  // namespace menger
