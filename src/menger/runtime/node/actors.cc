#include "menger/runtime/node/actors.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {
namespace {

constexpr std::string_view kActorDead = "its actor is dead";
constexpr std::string_view kLacksArguments = "what its actor is constructed with was lost";
constexpr std::string_view kNotNeeded = "nobody refers to its actor any longer";

bool KeepsOrder(const Actor& actor) { return actor.construction->header().concurrency == 1; }

}  // namespace

Actor* Actors::Find(ActorId id) {
  const auto found = actors_.find(id);
  return found != actors_.end() ? found->second.get() : nullptr;
}

Actor* Actors::Find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? found->second : nullptr;
}

bool Actors::Declare(Task& construction) {
  const SpecHeader& header = construction.header();
  if (header.named && Find(construction.spec->name()) != nullptr) return false;
  auto actor = std::make_unique<Actor>();
  actor->id = header.actor;
  actor->construction = &construction;
  actor->object = construction.results.front();
  actor->restarts = header.restarts;
  if (!node_.options.threads)
    actor->checkpoint_every = header.checkpoint_every;  // Threads do not die.
  construction.actor = actor.get();
  if (header.named) {
    actor->name = construction.spec->name();
    by_name_.emplace(actor->name, actor.get());
  }
  if (header.detached) node_.objects.AddReferrer(kDriver, *construction.results.front());
  Actor& declared = *actors_.emplace(header.actor, std::move(actor)).first->second;
  node_.effects.ActorChanged(declared);
  node_.names.Claim(declared);
  return true;
}

void Actors::Construct(Task& task) {
  JoinMailbox(task, Scheduler::Place::kFirst);
  Serve(*task.actor);
}

// ---- The order of calls.

void Actors::OrderCall(Task& task) {
  Actor* const actor = Find(task.header().actor);
  if (actor == nullptr || actor->state == Actor::State::kDead) return SettleDead(task, actor);
  if (task.header().home != actor->object->id) {
    node_.values.StopWaiting(task);
    return node_.calls.SettleFailed(
        task, node_.notes.Describe(FailureKind::kException, ErrorCode::kInvalidArgument, task,
                                   "the call does not hold its actor"));
  }
  task.actor = actor;
  task.in_line = task.pending > 0 || (KeepsOrder(*actor) && actor->held_back.contains(task.caller));
  if (!task.in_line) return CallReady(task);
  actor->held_back[task.caller].PushBack(&task);
}

// A call of an actor that is dead or never lived.
void Actors::SettleDead(Task& task, const Actor* actor) {
  const Object* const stands_for = node_.objects.Find(task.header().home);
  Payload error;
  if (actor != nullptr) {
    error = actor->death;
  } else if (stands_for != nullptr && node_.foreign.IsOrphan(*stands_for)) {
    error = node_.notes.Describe(FailureKind::kActorDied, ErrorCode::kDataLoss, task,
                                 "the program that owned its actor is gone");
  } else if (stands_for != nullptr && stands_for->value.kind == ObjectValue::Kind::kError) {
    error = stands_for->value.payload;
  } else {
    error = node_.notes.Describe(FailureKind::kActorDied, ErrorCode::kFailedPrecondition, task,
                                 fmt::format("actor {} is no more", ToString(task.header().actor)));
  }
  node_.values.StopWaiting(task);
  node_.calls.SettleFailed(task, error);
}

void Actors::CallReady(Task& task) {
  Actor& actor = *task.actor;
  if (task.in_line && KeepsOrder(actor)) return LetCallerGo(actor, task.caller);
  LeaveLine(task);
  JoinMailbox(task, Scheduler::Place::kLast);
  Serve(actor);
}

void Actors::JoinMailbox(Task& task, Scheduler::Place place) {
  node_.states.Enter(task.state, Task::State::kReady);
  IntrusiveList<Task>& mailbox = task.actor->mailbox;
  place == Scheduler::Place::kLast ? mailbox.PushBack(&task) : mailbox.PushFront(&task);
}

// The first call of the line may have become ready, or left: those that can go now do.
void Actors::LetCallerGo(Actor& actor, const Id& caller) {
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
  if (any) Serve(actor);
}

void Actors::LeaveLine(Task& task) {
  if (!std::exchange(task.in_line, false)) return;
  task.actor->held_back.at(task.caller).Remove(&task);
  LetCallerGo(*task.actor, Id(task.caller));
}

// ---- Where an actor lives.

// A process of its own, for good; of threads whichever has time, while it has calls of the actor.
bool Actors::FindHome(Actor& actor) {
  if (actor.worker != nullptr && (!node_.options.threads || actor.in_flight > 0)) return true;
  actor.worker = node_.options.threads ? node_.scheduler.Freest()
                                       : FindProcess(*actor.construction->scheduling);
  if (actor.worker == nullptr) return false;
  if (!node_.options.threads) actor.worker->actor = &actor;
  return true;
}

// At home, where there is room or will be as soon as a process has started; else elsewhere.
Worker* Actors::FindProcess(SchedulingClass& need) {
  Worker* const own = need.foreign ? nullptr : node_.scheduler.Dedicate(need);
  return own != nullptr || node_.scheduler.HasRoomFor(need) ? own : node_.peers.Dedicate(need);
}

void Actors::Serve(Actor& actor) {
  if (actor.state == Actor::State::kDead) return;
  if (actor.worker == nullptr && actor.waits_for_room) return;  // The next Run looks for a home.
  if (IsToMove(actor)) {  // In the next Run, once what it has begun is done, and part of it.
    if (actor.in_flight == 0) ServeLater(actor);
    return;
  }
  if (node_.checkpoints.IsDue(actor)) node_.checkpoints.Ask(actor);
  // Until it lives, only its construction may go.
  const bool living = actor.state == Actor::State::kAlive;
  if (actor.mailbox.empty() || (!living && actor.mailbox.front() != actor.construction)) return;
  if (!living && !Values::ArgumentsAreMade(*actor.construction)) return LeaveHome(actor);
  if (!FindHome(actor)) return ServeLater(actor);
  OfferCalls(actor, living ? std::numeric_limits<std::size_t>::max() : 1);
  if (!actor.mailbox.empty() && actor.in_flight == 0) ServeLater(actor);
}

void Actors::LeaveHome(Actor& actor) {
  Object& stands_for = *actor.object;
  node_.objects.Hold(stands_for);  // As where a worker dies.
  Task& construction = *actor.construction;
  node_.scheduler.StopReading(construction);
  actor.mailbox.Remove(&construction);
  node_.states.Enter(construction.state, Task::State::kWaiting);
  if (actor.worker != nullptr && !actor.worker->thread) EndHome(actor, kLacksArguments);
  AwaitArguments(construction);
  node_.objects.Release(stands_for);
}

void Actors::EndHome(Actor& actor, std::string_view why) {
  Worker& worker = *std::exchange(actor.worker, nullptr);
  worker.actor = nullptr;
  node_.workers.End(worker, why);
  node_.workers.Retire(worker, why);
}

void Actors::AwaitArguments(Task& construction) {
  for (std::uint32_t i = 0; i < construction.references; ++i) {
    node_.values.Await(construction, *construction.arguments[i]);
  }
  if (construction.pending == 0) Construct(construction);
}

// How many it has taken.
std::size_t Actors::OfferCalls(Actor& actor, std::size_t most) {
  std::size_t offered = 0;
  while (!actor.mailbox.empty() && offered < most) {
    Task* const task = actor.mailbox.PopFront();
    if (!node_.scheduler.OfferTo(*actor.worker, *task)) {
      actor.mailbox.PushFront(task);
      break;
    }
    ++actor.in_flight;
    ++offered;
    if (task->header().kind == CallKind::kMethod) ++actor.unsaved_calls;
    if (node_.checkpoints.IsDue(actor)) node_.checkpoints.Ask(actor);
  }
  if (offered > 0) node_.effects.Announce(*actor.worker);
  return offered;
}

void Actors::ServeLater(Actor& actor) {
  if (std::exchange(actor.waits_for_room, true)) return;
  waiting_.push_back(&actor);
}

void Actors::ServeWaiting() {
  if (waiting_.empty()) return;
  SortWaiting();
  // Each once; an actor that is released meanwhile leaves the queue.
  for (std::size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
    Actor& actor = *waiting_.front();
    waiting_.pop_front();
    actor.waits_for_room = false;
    IsToMove(actor) && actor.in_flight == 0 ? MoveSaved(actor) : Serve(actor);
  }
}

// Those first whose calls somebody waits for.
void Actors::SortWaiting() {
  const auto wanted = [this](const Actor* actor) {
    return node_.scheduler.waits().contains(actor->wanted) ? actor->wanted : 0;
  };
  if (waiting_.size() < 2 || node_.scheduler.waits().empty()) return;
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [&](const Actor* a, const Actor* b) { return wanted(a) > wanted(b); });
}

Actor* Actors::Homeless() const {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [](const Actor* actor) {
    return actor->worker == nullptr && actor->state != Actor::State::kDead;
  });
  return found != waiting_.end() ? *found : nullptr;
}

void Actors::LeaveWorker(Task& task) { --task.actor->in_flight; }

void Actors::CallsReturned(const std::vector<Task*>& calls) {
  for (Task* const call : calls) {
    LeaveWorker(*call);
    JoinMailbox(*call, Scheduler::Place::kFirst);
    ServeLater(*call->actor);
  }
}

void Actors::CallDone(Task& task) {
  Actor& actor = *task.actor;
  LeaveWorker(task);
  if (&task == actor.construction && actor.state != Actor::State::kDead) {
    const bool was_before = actor.state == Actor::State::kRestarting || actor.checkpoint != nullptr;
    if (was_before) node_.checkpoints.Replay(actor);
    node_.states.Enter(actor.state, Actor::State::kAlive);
    node_.notes.NoteActor(NodeEventKind::kActorStarted, actor);
  } else if (actor.checkpoint_every > 0 && task.header().kind == CallKind::kMethod) {
    task.logged = true;
  }
  Serve(actor);
}

// ---- The end of an actor.

void Actors::WorkerLost(Actor& actor, const TaskFailure& cause) {
  actor.worker = nullptr;
  actor.in_flight = 0;
  node_.checkpoints.GiveUpComing(actor);  // The log has all since the one before.
  if (actor.state == Actor::State::kDead) return;
  Task& construction = *actor.construction;
  const bool killed = cause.kind == FailureKind::kActorDied;
  // It has lost nothing: another worker constructs it.
  if (construction.state == Task::State::kReady && !killed) return ServeLater(actor);
  const bool lost = std::any_of(actor.log.begin(), actor.log.end(),
                                [](const Task* task) { return task->unrepeatable; });
  // None but its first construction, and who tells of the loss, holds it: nobody would call it.
  const Object& object = *actor.object;
  const bool unwanted =
      object.state == Object::State::kPending && object.referrers == 0 && object.holds == 2;
  if (actor.restarts == 0 || lost || unwanted) {
    TaskFailure failure = cause;
    failure.kind = FailureKind::kActorDied;
    if (lost)
      failure.text += "; what a call had asked since the last checkpoint was too much to keep";
    failure.task = node_.notes.NameOf(*actor.construction);
    return Die(actor, Encode(failure));
  }
  --actor.restarts;
  ++node_.counts.actors_restarted;
  MakeAgain(actor);
}

// By another worker: as it was constructed, then as it was.
void Actors::MakeAgain(Actor& actor) {
  Task& construction = *actor.construction;
  // What was to be done once more, if it is there, is done from the beginning.
  for (Task* task = actor.mailbox.front(); task != nullptr;) {
    Task& upkeep = *std::exchange(task, task->next);
    if (!Checkpoints::IsUpkeep(upkeep)) continue;
    actor.mailbox.Remove(&upkeep);
    node_.checkpoints.UpkeepLost(upkeep);
  }
  if (actor.state == Actor::State::kAlive)
    node_.states.Enter(actor.state, Actor::State::kRestarting);
  node_.notes.NoteActor(NodeEventKind::kActorRestarted, actor);
  if (construction.state == Task::State::kReady) return ServeLater(actor);  // It has its arguments.
  if (construction.state == Task::State::kDone) {
    node_.states.Enter(construction.state, Task::State::kWaiting);
  }
  EndRun(construction);
  AwaitArguments(construction);
}

void Actors::Kill(Actor& actor, bool may_restart, std::string_view why) {
  if (actor.state == Actor::State::kDead) return;
  Worker* const worker = actor.worker;
  if (may_restart && worker == nullptr && actor.restarts > 0 && !node_.options.threads) {
    --actor.restarts;  // One that waits for a place has nothing else to lose.
    return;
  }
  if (!may_restart) actor.restarts = 0;
  TaskFailure cause{
      .kind = FailureKind::kActorDied, .code = ErrorCode::kCancelled, .text = std::string(why)};
  if (worker != nullptr && !worker->thread) {
    node_.workers.End(*worker, "its actor was killed");
    return node_.workers.Died(*worker, cause);
  }
  cause.task = node_.notes.NameOf(*actor.construction);
  Die(actor, Encode(cause));
  node_.values.SpreadNews();
}

void Actors::Die(Actor& actor, const Payload& death) {
  if (actor.state == Actor::State::kDead) return;
  Object& object = *actor.object;
  node_.objects.Hold(object);  // The last call may be what still held it.
  actor.death = death;
  std::vector<Task*> calls;
  const std::vector<Task*> running = TakeCalls(actor, calls);
  // What they still give is nobody's.
  for (Task* const task : running) node_.calls.EndRunning(*task, death, /*force=*/false);
  if (Worker* const worker = EndLife(actor)) {
    node_.workers.End(*worker, kActorDead);
    node_.workers.Retire(*worker, kActorDead);
  }
  for (Task* const task : calls) {
    node_.values.StopWaiting(*task);
    node_.calls.SettleFailed(*task, death);
  }
  node_.objects.Release(object);
}

// Those that it has not begun; where its worker is a process, which ends with it, all. Gives the
// others, which run on.
std::vector<Task*> Actors::TakeCalls(Actor& actor, std::vector<Task*>& calls) {
  std::vector<Task*> running;
  Task& construction = *actor.construction;
  const auto take = [&](Task& task) {
    if (task.state == Task::State::kReady) node_.states.Enter(task.state, Task::State::kWaiting);
    if (Checkpoints::IsUpkeep(task)) {
      node_.checkpoints.UpkeepLost(task);
    } else if (&task != &construction) {
      calls.push_back(&task);
    }
  };
  Worker* const worker = actor.worker;
  Task* next = worker != nullptr ? worker->outstanding.front() : nullptr;
  while (next != nullptr) {
    Task& task = *std::exchange(next, next->next);
    if (task.actor != &actor) continue;
    if (worker->thread && !node_.effects.Recall(*worker, task)) {
      if (task.header().kind == CallKind::kMethod && !task.abandoned()) running.push_back(&task);
      continue;
    }
    node_.scheduler.Done(*worker, task, -1);
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
Worker* Actors::EndLife(Actor& actor) {
  node_.states.Enter(actor.state, Actor::State::kDead);
  node_.notes.NoteActor(NodeEventKind::kActorEnded, actor);
  if (actor.construction->header().detached) node_.objects.DropReferrer(kDriver, *actor.object);
  if (!actor.name.empty()) {
    by_name_.erase(actor.name);
    node_.names.Release(actor);
  }
  node_.checkpoints.GiveUpComing(actor);
  node_.checkpoints.DropLog(actor);
  if (Object* const checkpoint = std::exchange(actor.checkpoint, nullptr)) {
    node_.objects.Release(*checkpoint);
  }
  if (actor.worker == nullptr || actor.worker->thread) return nullptr;
  actor.worker->actor = nullptr;
  return std::exchange(actor.worker, nullptr);
}

void Actors::Release(Actor& actor) {
  if (actor.state != Actor::State::kDead) {
    std::vector<Task*> none;
    TakeCalls(actor, none);
    if (Worker* const worker = EndLife(actor)) {
      node_.workers.End(*worker, kNotNeeded, /*gently=*/true);
      node_.workers.Retire(*worker, kNotNeeded);
    }
  }
  node_.effects.ActorReleased(actor.id);
  Task& construction = *actor.construction;
  construction.actor = nullptr;
  if (construction.state != Task::State::kDone) {
    node_.states.Enter(construction.state, Task::State::kDone);
  }
  node_.values.StopWaiting(construction);
  node_.scheduler.StopReading(construction);
  std::erase(waiting_, &actor);
  actors_.erase(actor.id);
  const std::vector<Object*> arguments = std::exchange(construction.arguments, {});
  const std::vector<Object*> held = std::exchange(construction.held, {});
  for (Object* const argument : arguments) node_.objects.Release(*argument);
  for (Object* const object : held) node_.objects.Release(*object);
}

}  // namespace menger
