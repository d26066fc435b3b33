#include <algorithm>
#include <utility>

#include "menger/runtime/node_machine.h"

// The part of the node's logic that deals with actors: a call waits until its arguments are there
// and the calls that its caller made before it have gone ahead; then it is the actor's turn, one
// call at a time, wherever the actor lives.
namespace menger {

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
  construction.actor = actor.get();
  if (header.named) {
    actor->name = construction.spec->name();
    actor_by_name_.emplace(actor->name, actor.get());
  }
  actors_.emplace(header.actor, std::move(actor));
  return true;
}

void NodeMachine::Construct(Task& task) {
  Actor& actor = *task.actor;
  task.state = Task::State::kReady;
  actor.mailbox.PushFront(&task);
  ServeActor(actor);
}

// ---- The order of calls.

void NodeMachine::OrderCall(Task& task) {
  Actor* const actor = FindActor(task.header().actor);
  if (actor == nullptr || actor->state == Actor::State::kDead) return SettleDead(task, actor);
  task.actor = actor;
  const auto line = actor->held_back.find(task.caller);
  if (line != actor->held_back.end()) {
    line->second.push_back(&task);
  } else if (task.pending > 0) {
    actor->held_back[task.caller].push_back(&task);
  } else {
    CallReady(task);
  }
}

// A call of an actor that is dead or never lived.
void NodeMachine::SettleDead(Task& task, const Actor* actor) {
  const Object* const stands_for = objects_.Find(task.header().actor_object);
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
  const auto line = actor.held_back.find(task.caller);
  if (line != actor.held_back.end()) return LetCallerGo(actor, task.caller);
  task.state = Task::State::kReady;
  actor.mailbox.PushBack(&task);
  ServeActor(actor);
}

// The first call of the line may have become ready, or left: those that can go now do.
void NodeMachine::LetCallerGo(Actor& actor, const Id& caller) {
  const auto line = actor.held_back.find(caller);
  if (line == actor.held_back.end()) return;
  std::vector<Task*>& calls = line->second;
  std::size_t gone = 0;
  for (; gone < calls.size() && calls[gone]->pending == 0; ++gone) {
    calls[gone]->state = Task::State::kReady;
    actor.mailbox.PushBack(calls[gone]);
  }
  calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(gone));
  if (calls.empty()) actor.held_back.erase(line);
  if (gone > 0) ServeActor(actor);
}

void NodeMachine::LeaveLine(Task& task) {
  const auto line = task.actor->held_back.find(task.caller);
  if (line == task.actor->held_back.end()) return;
  std::vector<Task*>& calls = line->second;
  calls.erase(std::remove(calls.begin(), calls.end(), &task), calls.end());
  LetCallerGo(*task.actor, Id(task.caller));
}

// ---- Where an actor lives.

// A process of its own, for good; of threads whichever has time, while it has calls of the actor.
bool NodeMachine::FindHome(Actor& actor) {
  if (actor.worker != nullptr && (!options_.threads || actor.in_flight > 0)) return true;
  actor.worker = options_.threads ? scheduler_.Freest()
                                  : scheduler_.Dedicate(*actor.construction->scheduling);
  if (actor.worker == nullptr) return false;
  if (options_.threads) return true;
  actor.worker->actors.push_back(&actor);
  actor.holds_resources = true;
  return true;
}

void NodeMachine::ServeActor(Actor& actor) {
  if (actor.state == Actor::State::kDead || actor.mailbox.empty()) return;
  // Until it lives, only its construction may go.
  const bool living = actor.state == Actor::State::kAlive;
  if (!living && actor.mailbox.front() != actor.construction) return;
  if (!FindHome(actor)) {
    waiting_actors_.push_back(&actor);
    return;
  }
  std::size_t offered = 0;
  while (!actor.mailbox.empty() && (living || offered == 0)) {
    Task* const task = actor.mailbox.PopFront();
    if (!scheduler_.OfferTo(*actor.worker, *task)) {
      actor.mailbox.PushFront(task);
      break;
    }
    ++actor.in_flight;
    ++offered;
  }
  if (offered > 0) effects_->Announce(*actor.worker);
  if (living && !actor.mailbox.empty() && actor.in_flight == 0) waiting_actors_.push_back(&actor);
}

void NodeMachine::LeaveWorker(Task& task) { --task.actor->in_flight; }

void NodeMachine::ActorCallDone(Task& task) {
  Actor& actor = *task.actor;
  LeaveWorker(task);
  if (&task == actor.construction && actor.state != Actor::State::kDead) {
    actor.state = Actor::State::kAlive;
  }
  if (!actor.mailbox.empty()) ServeActor(actor);
}

// ---- The end of an actor.

void NodeMachine::ActorWorkerLost(Actor& actor, const TaskFailure& cause) {
  actor.worker = nullptr;
  actor.in_flight = 0;
  ReturnResources(actor);
  if (actor.state == Actor::State::kDead) return;
  if (actor.restarts == 0) {
    TaskFailure failure = cause;
    failure.kind = FailureKind::kActorDied;
    failure.task = actor.construction->spec->name();
    return ActorDead(actor, Encode(failure));
  }
  --actor.restarts;
  ++counts_.actors_restarted;
  actor.state = Actor::State::kRestarting;
  Task& construction = *actor.construction;
  if (construction.state != Task::State::kReady) {
    construction.state = Task::State::kReady;
    actor.mailbox.PushFront(&construction);
  }
  ServeActor(actor);
}

void NodeMachine::KillActor(Actor& actor, bool may_restart) {
  Worker* const worker = actor.worker;
  if (!may_restart) actor.restarts = 0;
  const TaskFailure cause{.kind = FailureKind::kActorDied,
                          .code = ErrorCode::kCancelled,
                          .text = "the actor was killed by its user"};
  if (worker != nullptr && !worker->thread) {
    effects_->EndWorker(*worker, "its actor was killed");
    WorkerDied(*worker, cause);
    return;
  }
  TaskFailure failure = cause;
  Task& construction = *actor.construction;
  failure.task = construction.spec->name();
  const bool waits = construction.state == Task::State::kWaiting;
  ActorDead(actor, Encode(failure));
  if (waits) {
    StopWaiting(construction);
    SettleFailed(construction, Encode(failure));
  }
  SpreadNews();
}

// All calls that it has not done fail; its process, if it had one, has ended or ends.
void NodeMachine::ActorDead(Actor& actor, Payload death) {
  if (actor.state == Actor::State::kDead) return;
  actor.state = Actor::State::kDead;
  actor.death = std::move(death);
  if (!actor.name.empty()) actor_by_name_.erase(actor.name);
  if (actor.worker != nullptr && !actor.worker->thread) {
    Worker& worker = *std::exchange(actor.worker, nullptr);
    effects_->EndWorker(worker, "its actor is dead");
    while (Task* const task = worker.outstanding.front()) scheduler_.Done(worker, *task, -1);
    std::erase(worker.actors, &actor);
    retired_.push_back(worker.index);
  }
  ReturnResources(actor);
  std::vector<Task*> calls;
  while (Task* const task = actor.mailbox.PopFront()) calls.push_back(task);
  for (auto& [caller, line] : std::exchange(actor.held_back, {})) {
    calls.insert(calls.end(), line.begin(), line.end());
  }
  for (Task* const task : calls) {
    if (task == actor.construction && task->results.empty()) continue;  // It has lived before.
    StopWaiting(*task);
    SettleFailed(*task, actor.death);
  }
}

void NodeMachine::ReturnResources(Actor& actor) {
  if (!std::exchange(actor.holds_resources, false)) return;
  scheduler_.ReturnResources(*actor.construction->scheduling);
}

// Nobody refers to it any longer, and it has no calls: each held it.
void NodeMachine::ReleaseActor(Actor& actor) {
  ActorDead(actor, Payload());
  Task* const construction = actor.construction;
  std::erase(waiting_actors_, &actor);
  actors_.erase(actor.id);
  const std::vector<Object*> arguments = std::move(construction->arguments);
  tasks_.Return(construction);
  for (Object* const argument : arguments) objects_.Release(*argument);
}

}  // namespace menger
