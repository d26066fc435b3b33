#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that deals with actors: a call waits until its arguments are there
// and the calls that its caller made before it have gone ahead; then it is the actor's turn, one
// call at a time, wherever the actor lives. Calls of an actor with concurrency do not wait for each
// other: the one that would make the other's argument may be among them.
namespace menger {
namespace {

constexpr std::string_view kActorDead = "its actor is dead";
constexpr std::string_view kNotNeeded = "nobody refers to its actor any longer";

bool KeepsOrder(const Actor& actor) { return actor.construction->header().concurrency == 1; }

}  // namespace

Actor* NodeMachine::FindActor(ActorId id) {
  const auto found = actors_.find(id);
  return found != actors_.end() ? found->second.get() : nullptr;
}

Actor* NodeMachine::FindActor(std::string_view name) {
  const auto found = actor_by_name_.find(name);
  return found != actor_by_name_.end() ? found->second : nullptr;
}

// False if an actor has that name already.
bool NodeMachine::DeclareActor(Task& construction) {
  const SpecHeader& header = construction.header();
  if (header.named && FindActor(construction.spec->name()) != nullptr) return false;
  auto actor = std::make_unique<Actor>();
  actor->id = header.actor;
  actor->construction = &construction;
  actor->object = construction.results.front();
  actor->restarts = header.restarts;
  if (!options_.threads) actor->checkpoint_every = header.checkpoint_every;  // Threads do not die.
  construction.actor = actor.get();
  if (header.named) {
    actor->name = construction.spec->name();
    actor_by_name_.emplace(actor->name, actor.get());
  }
  effects_->ActorChanged(*actors_.emplace(header.actor, std::move(actor)).first->second);
  return true;
}

void NodeMachine::Construct(Task& task) {
  JoinMailbox(task, Scheduler::Place::kFirst);
  ServeActor(*task.actor);
}

// ---- The order of calls.

void NodeMachine::OrderCall(Task& task) {
  Actor* const actor = FindActor(task.header().actor);
  if (actor == nullptr || actor->state == Actor::State::kDead) return SettleDead(task, actor);
  if (task.header().home != actor->object->id) {
    StopWaiting(task);
    return SettleFailed(task, Describe(FailureKind::kException, ErrorCode::kInvalidArgument, task,
                                       "the call does not hold its actor"));
  }
  task.actor = actor;
  task.in_line = task.pending > 0 || (KeepsOrder(*actor) && actor->held_back.contains(task.caller));
  if (!task.in_line) return CallReady(task);
  actor->held_back[task.caller].PushBack(&task);
}

// A call of an actor that is dead or never lived.
void NodeMachine::SettleDead(Task& task, const Actor* actor) {
  const Object* const stands_for = objects_.Find(task.header().home);
  Payload error;
  if (actor != nullptr) {
    error = actor->death;
  } else if (stands_for != nullptr && stands_for->value.kind == ObjectValue::Kind::kError) {
    error = stands_for->value.payload;
  } else {
    error = Describe(FailureKind::kActorDied, ErrorCode::kFailedPrecondition, task,
                     fmt::format("actor {} is no more", ToString(task.header().actor)));
  }
  StopWaiting(task);
  SettleFailed(task, error);
}

void NodeMachine::CallReady(Task& task) {
  Actor& actor = *task.actor;
  if (task.in_line && KeepsOrder(actor)) return LetCallerGo(actor, task.caller);
  LeaveLine(task);
  JoinMailbox(task, Scheduler::Place::kLast);
  ServeActor(actor);
}

void NodeMachine::JoinMailbox(Task& task, Scheduler::Place place) {
  states_.Enter(task.state, Task::State::kReady);
  IntrusiveList<Task>& mailbox = task.actor->mailbox;
  place == Scheduler::Place::kLast ? mailbox.PushBack(&task) : mailbox.PushFront(&task);
}

// The first call of the line may have become ready, or left: those that can go now do.
void NodeMachine::LetCallerGo(Actor& actor, const Id& caller) {
  const auto line = actor.held_back.find(caller);
  if (line == actor.held_back.end()) return;
  IntrusiveList<Task>& calls = line->second;
  bool any = false;
  while (!calls.empty() && calls.front()->pending == 0) {
    Task* const task = calls.PopFront();
    task->in_line = false;
    JoinMailbox(*task, Scheduler::Place::kLast);
    any = true;
  }
  if (calls.empty()) actor.held_back.erase(line);
  if (any) ServeActor(actor);
}

void NodeMachine::LeaveLine(Task& task) {
  if (!std::exchange(task.in_line, false)) return;
  task.actor->held_back.at(task.caller).Remove(&task);
  LetCallerGo(*task.actor, Id(task.caller));
}

// ---- Where an actor lives.

// A process of its own, for good; of threads whichever has time, while it has calls of the actor.
bool NodeMachine::FindHome(Actor& actor) {
  if (actor.worker != nullptr && (!options_.threads || actor.in_flight > 0)) return true;
  actor.worker =
      options_.threads ? scheduler_.Freest() : scheduler_.Dedicate(*actor.construction->scheduling);
  if (actor.worker == nullptr) return false;
  if (!options_.threads) actor.worker->actor = &actor;
  return true;
}

void NodeMachine::ServeActor(Actor& actor) {
  if (actor.state == Actor::State::kDead) return;
  if (actor.worker == nullptr && actor.waits_for_room) return;  // The next Run looks for a home.
  if (NeedsCheckpoint(actor)) AskForCheckpoint(actor);
  // Until it lives, only its construction may go.
  const bool living = actor.state == Actor::State::kAlive;
  if (actor.mailbox.empty() || (!living && actor.mailbox.front() != actor.construction)) return;
  if (!FindHome(actor)) return ServeLater(actor);
  std::size_t offered = 0;
  while (!actor.mailbox.empty() && (living || offered == 0)) {
    Task* const task = actor.mailbox.PopFront();
    if (!scheduler_.OfferTo(*actor.worker, *task)) {
      actor.mailbox.PushFront(task);
      break;
    }
    ++actor.in_flight;
    ++offered;
    if (task->header().kind == CallKind::kMethod) ++actor.unsaved_calls;
    if (NeedsCheckpoint(actor)) AskForCheckpoint(actor);
  }
  if (offered > 0) effects_->Announce(*actor.worker);
  if (!actor.mailbox.empty() && actor.in_flight == 0) ServeLater(actor);
}

void NodeMachine::ServeLater(Actor& actor) {
  if (std::exchange(actor.waits_for_room, true)) return;
  waiting_actors_.push_back(&actor);
}

void NodeMachine::LeaveWorker(Task& task) { --task.actor->in_flight; }

// Calls of actors that their workers had not begun; the last one first.
void NodeMachine::CallsReturned(const std::vector<Task*>& calls) {
  for (Task* const call : calls) {
    LeaveWorker(*call);
    JoinMailbox(*call, Scheduler::Place::kFirst);
    ServeLater(*call->actor);
  }
}

void NodeMachine::ActorCallDone(Task& task) {
  Actor& actor = *task.actor;
  LeaveWorker(task);
  if (&task == actor.construction && actor.state != Actor::State::kDead) {
    if (actor.state == Actor::State::kRestarting) Replay(actor);
    states_.Enter(actor.state, Actor::State::kAlive);
    NoteActor(NodeEventKind::kActorStarted, actor);
  } else if (actor.checkpoint_every > 0 && task.header().kind == CallKind::kMethod) {
    task.logged = true;
  }
  ServeActor(actor);
}

// ---- The end of an actor.

void NodeMachine::ActorWorkerLost(Actor& actor, const TaskFailure& cause) {
  actor.worker = nullptr;
  actor.in_flight = 0;
  if (actor.state == Actor::State::kDead) return;
  const bool lost = std::any_of(actor.log.begin(), actor.log.end(),
                                [](const Task* task) { return task->unrepeatable; });
  if (actor.restarts == 0 || lost) {
    TaskFailure failure = cause;
    failure.kind = FailureKind::kActorDied;
    if (lost)
      failure.text += "; what a call had asked since the last checkpoint was too much to keep";
    failure.task = NameOf(*actor.construction);
    return ActorDead(actor, Encode(failure));
  }
  // What was to be done once more, if it is there, is done from the beginning.
  for (Task* task = actor.mailbox.front(); task != nullptr;) {
    Task& upkeep = *std::exchange(task, task->next);
    if (!IsUpkeep(upkeep)) continue;
    actor.mailbox.Remove(&upkeep);
    UpkeepLost(upkeep);
  }
  --actor.restarts;
  ++counts_.actors_restarted;
  if (actor.state == Actor::State::kAlive) states_.Enter(actor.state, Actor::State::kRestarting);
  NoteActor(NodeEventKind::kActorRestarted, actor);
  Task& construction = *actor.construction;
  if (construction.state == Task::State::kReady) return ServeLater(actor);  // It has its arguments.
  if (construction.state == Task::State::kDone) {
    states_.Enter(construction.state, Task::State::kWaiting);
  }
  EndRun(construction);
  for (std::uint32_t i = 0; i < construction.references; ++i) {
    AwaitArgument(construction, *construction.arguments[i]);
  }
  if (construction.pending == 0) Construct(construction);
}

void NodeMachine::KillActor(Actor& actor, bool may_restart, std::string_view why) {
  if (actor.state == Actor::State::kDead) return;
  Worker* const worker = actor.worker;
  if (may_restart && worker == nullptr && actor.restarts > 0 && !options_.threads) {
    --actor.restarts;  // One that waits for a place has nothing else to lose.
    return;
  }
  if (!may_restart) actor.restarts = 0;
  TaskFailure cause{
      .kind = FailureKind::kActorDied, .code = ErrorCode::kCancelled, .text = std::string(why)};
  if (worker != nullptr && !worker->thread) {
    effects_->EndWorker(*worker, "its actor was killed");
    return WorkerDied(*worker, cause);
  }
  cause.task = NameOf(*actor.construction);
  ActorDead(actor, Encode(cause));
  SpreadNews();
}

// All calls that it has not begun fail; its process, if it had one, has ended or ends.
void NodeMachine::ActorDead(Actor& actor, const Payload& death) {
  if (actor.state == Actor::State::kDead) return;
  Object& object = *actor.object;
  objects_.Hold(object);  // The last call may be what still held it.
  actor.death = death;
  std::vector<Task*> calls;
  const std::vector<Task*> running = TakeCalls(actor, calls);
  // What they still give is nobody's.
  for (Task* const task : running) EndRunning(*task, death, /*force=*/false);
  if (Worker* const worker = EndLife(actor)) {
    effects_->EndWorker(*worker, kActorDead);
    Retire(*worker, kActorDead);
  }
  for (Task* const task : calls) {
    StopWaiting(*task);
    SettleFailed(*task, death);
  }
  objects_.Release(object);
}

// Those that it has not begun; where its worker is a process, which ends with it, all. Gives the
// others, which run on.
std::vector<Task*> NodeMachine::TakeCalls(Actor& actor, std::vector<Task*>& calls) {
  std::vector<Task*> running;
  Task& construction = *actor.construction;
  const auto take = [&](Task& task) {
    if (task.state == Task::State::kReady) states_.Enter(task.state, Task::State::kWaiting);
    if (IsUpkeep(task)) {
      UpkeepLost(task);
    } else if (&task != &construction) {
      calls.push_back(&task);
    }
  };
  Worker* const worker = actor.worker;
  Task* next = worker != nullptr ? worker->outstanding.front() : nullptr;
  while (next != nullptr) {
    Task& task = *std::exchange(next, next->next);
    if (task.actor != &actor) continue;
    if (worker->thread && !effects_->Recall(*worker, task)) {
      if (task.header().kind == CallKind::kMethod && !task.abandoned()) running.push_back(&task);
      continue;
    }
    scheduler_.Done(*worker, task, -1);
    LeaveWorker(task);
    take(task);
  }
  while (Task* const task = actor.mailbox.PopFront()) take(*task);
  for (auto& [caller, line] : std::exchange(actor.held_back, {})) {
    while (Task* const task = line.PopFront()) {
      task->in_line = false;
      calls.push_back(task);
    }
  }
  if (construction.state == Task::State::kWaiting) calls.push_back(&construction);
  return running;
}

// From now on it is nowhere, and its name is free. The process that is to end with it; or null.
Worker* NodeMachine::EndLife(Actor& actor) {
  states_.Enter(actor.state, Actor::State::kDead);
  NoteActor(NodeEventKind::kActorEnded, actor);
  if (!actor.name.empty()) actor_by_name_.erase(actor.name);
  DropLog(actor);
  if (Object* const checkpoint = std::exchange(actor.checkpoint, nullptr)) {
    objects_.Release(*checkpoint);
  }
  if (actor.worker == nullptr || actor.worker->thread) return nullptr;
  actor.worker->actor = nullptr;
  return std::exchange(actor.worker, nullptr);
}

// Nobody refers to it any longer, and it has no calls: each held it.
void NodeMachine::ReleaseActor(Actor& actor) {
  if (actor.state != Actor::State::kDead) {
    std::vector<Task*> none;
    TakeCalls(actor, none);
    if (Worker* const worker = EndLife(actor)) {
      effects_->DismissWorker(*worker, kNotNeeded);
      Retire(*worker, kNotNeeded);
    }
  }
  effects_->ActorReleased(actor.id);
  Task& construction = *actor.construction;
  construction.actor = nullptr;
  if (construction.state != Task::State::kDone) {
    states_.Enter(construction.state, Task::State::kDone);
  }
  StopWaiting(construction);
  scheduler_.StopReading(construction);
  std::erase(waiting_actors_, &actor);
  actors_.erase(actor.id);
  const std::vector<Object*> arguments = std::exchange(construction.arguments, {});
  const std::vector<Object*> held = std::exchange(construction.held, {});
  for (Object* const argument : arguments) objects_.Release(*argument);
  for (Object* const object : held) objects_.Release(*object);
}

}  // namespace menger
