#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace menger {

// What may become of the objects, calls, workers and actors that a node knows: the only states
// that there are, and the only ways from one to another, with the function that owns each and when
// it goes it. tests/documents/states_test.py finds in the code exactly these owners, and the
// simulation (simulation_test.cc) sees each way happen, and no other.

enum class ObjectState : std::uint8_t {
  kPending,  // Its value is being made.
  kReady,    // It has a value, or an error.
  kFreed,    // Nobody needs it; it is remembered while a kept call might run again with it.
};

enum class TaskState : std::uint8_t {
  kWaiting,    // For its arguments, or for what is to become of it after a run.
  kReady,      // In a queue: of its class, its actor, or for a placement group.
  kLeased,     // A worker has it, and may have begun it.
  kAbandoned,  // Its results are settled, but its worker goes on; whatever it still does is
               // ignored.
  kDone,       // Its results are settled. It may be kept to be run again.
};

enum class WorkerState : std::uint8_t {
  kServing,
  kBlocked,  // Its call waits for objects: its resources are lent to others.
  kGone,     // Dead, ended or given back: what it still tells is ignored.
};

enum class ActorState : std::uint8_t { kPending, kAlive, kRestarting, kDead };

// A row: a way that there is, who goes it ("Class::Function"), and when.
template <typename State>
struct Transition {
  State from;
  State to;
  std::string_view owner;
  std::string_view when;
};

// clang-format off
inline constexpr auto kObjectTransitions = std::to_array<Transition<ObjectState>>({
    {ObjectState::kPending, ObjectState::kReady, "ObjectTable::Fill", "its call has ended, or it was put"},
    {ObjectState::kReady, ObjectState::kPending, "ObjectTable::Lose", "its value was lost and is made again"},
    {ObjectState::kFreed, ObjectState::kPending, "ObjectTable::Lose", "a kept call needs it again"},
    {ObjectState::kReady, ObjectState::kFreed, "ObjectTable::Settle", "nobody refers to it or holds it"},
});

inline constexpr auto kTaskTransitions = std::to_array<Transition<TaskState>>({
    {TaskState::kWaiting, TaskState::kReady, "Scheduler::Enqueue", "its arguments are there, or it runs again"},
    {TaskState::kWaiting, TaskState::kReady, "Actors::JoinMailbox", "the same, of an actor's"},
    {TaskState::kWaiting, TaskState::kReady, "Groups::Ask", "a placement group is to be had"},
    {TaskState::kDone, TaskState::kReady, "Actors::JoinMailbox", "its actor does it once more to become what it was"},
    {TaskState::kReady, TaskState::kLeased, "Scheduler::OfferTo", "a worker is given it"},
    {TaskState::kLeased, TaskState::kWaiting, "Scheduler::Done", "its worker has ended it, lost it, or given it back"},
    {TaskState::kReady, TaskState::kWaiting, "Actors::TakeCalls", "its actor is dead"},
    {TaskState::kReady, TaskState::kWaiting, "Values::ReconsiderFetching", "an argument was lost"},
    {TaskState::kReady, TaskState::kWaiting, "Actors::LeaveHome", "the same, of a construction"},
    {TaskState::kDone, TaskState::kWaiting, "Values::Revive", "a result was lost and is made again"},
    {TaskState::kDone, TaskState::kWaiting, "Actors::MakeAgain", "a construction: its actor is made again"},
    {TaskState::kLeased, TaskState::kAbandoned, "Calls::EndRunning", "it is cancelled, out of time, or its actor is dead"},
    {TaskState::kWaiting, TaskState::kDone, "Calls::Conclude", "its results are settled"},
    {TaskState::kReady, TaskState::kDone, "Calls::Conclude", "it is cancelled, or cannot run, before it was given to a worker"},
    {TaskState::kWaiting, TaskState::kDone, "Checkpoints::UpkeepLost", "what its actor did once more is done"},
    {TaskState::kReady, TaskState::kDone, "Checkpoints::UpkeepLost", "the same, where its actor has died again before"},
    {TaskState::kWaiting, TaskState::kDone, "Actors::Release", "a construction: nobody refers to its actor"},
    {TaskState::kAbandoned, TaskState::kDone, "Calls::Conclude", "its worker has ended it at last"},
});

inline constexpr auto kWorkerTransitions = std::to_array<Transition<WorkerState>>({
    {WorkerState::kServing, WorkerState::kBlocked, "Scheduler::Block", "its call begins to wait"},
    {WorkerState::kBlocked, WorkerState::kServing, "Scheduler::Unblock", "the wait is over"},
    {WorkerState::kServing, WorkerState::kGone, "Workers::Retire", "it has died, or is not needed"},
    {WorkerState::kBlocked, WorkerState::kGone, "Workers::Retire", "it has died while its call waited"},
});

inline constexpr auto kActorTransitions = std::to_array<Transition<ActorState>>({
    {ActorState::kPending, ActorState::kAlive, "Actors::CallDone", "its construction has ended"},
    {ActorState::kAlive, ActorState::kRestarting, "Actors::MakeAgain", "its worker has died, and it has restarts left, or its node will leave"},
    {ActorState::kRestarting, ActorState::kAlive, "Actors::CallDone", "it is constructed again"},
    {ActorState::kPending, ActorState::kDead, "Actors::EndLife", "its construction failed, or nobody wants it"},
    {ActorState::kAlive, ActorState::kDead, "Actors::EndLife", "it was killed, has no restarts left, or nobody refers to it"},
    {ActorState::kRestarting, ActorState::kDead, "Actors::EndLife", "the same, while it was made again"},
});
// clang-format on

// A state of a record. Everybody reads it; only States changes it.
template <typename State>
class StateOf {
 public:
  operator State() const { return now_; }  // NOLINT(google-explicit-constructor): it is one.
  State now() const { return now_; }

 private:
  friend class States;
  State now_{};
};

// Changes states, and notes which changes there were: the tests compare them with the tables. (A
// change that is in none is a mistake, but no reason to end a program that runs.)
class States {
 public:
  static constexpr std::size_t kStatesMax = 5;
  using Seen = std::bitset<kStatesMax * kStatesMax>;  // By from * kStatesMax + to.

  template <typename State>
  void Enter(StateOf<State>& state, State to) {
    SeenOf(state.now_).set(Place(state.now_, to));
    state.now_ = to;
  }

  template <typename State>
  static constexpr std::size_t Place(State from, State to) {
    return static_cast<std::size_t>(from) * kStatesMax + static_cast<std::size_t>(to);
  }

  void Add(const States& other) {
    objects_ |= other.objects_;
    tasks_ |= other.tasks_;
    workers_ |= other.workers_;
    actors_ |= other.actors_;
  }

  const Seen& objects() const { return objects_; }
  const Seen& tasks() const { return tasks_; }
  const Seen& workers() const { return workers_; }
  const Seen& actors() const { return actors_; }

 private:
  Seen& SeenOf(ObjectState) { return objects_; }
  Seen& SeenOf(TaskState) { return tasks_; }
  Seen& SeenOf(WorkerState) { return workers_; }
  Seen& SeenOf(ActorState) { return actors_; }

  Seen objects_;
  Seen tasks_;
  Seen workers_;
  Seen actors_;
};

}  // namespace menger
