#include <algorithm>

#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that others see it by: what it notes as it happens, and what it says
// of itself when it is asked.
namespace menger {

namespace {

std::uint8_t Attempt(const Task& task) {
  return static_cast<std::uint8_t>(std::min<int>(task.lost, UINT8_MAX));
}

}  // namespace

// ---- Notes.

// Calls of one function nearly always have one name.
std::uint16_t NodeMachine::NumberOfName(FunctionTimes& times, const TaskSpec& spec) {
  const std::string_view name = spec.name();
  if (!times.has_name_number || times.name != name) {
    times.has_name_number = true;
    times.name = name;
    times.name_number =
        events_.Intern(name.empty() ? effects_->NameOfFunction(spec.header().function) : name);
  }
  return times.name_number;
}

// A worker's word for when and how long is taken as far as it is possible: its runs lie behind one
// another, and none ends later than now.
void NodeMachine::NoteTask(NodeEventKind kind, Worker& worker, const Task& task, double nanoseconds,
                           std::int64_t ended_at) {
  const std::int64_t before = worker.ended_at;
  worker.ended_at = ended_at > before && ended_at < now_ ? ended_at : std::max(before, now_);
  const auto longest = static_cast<double>(worker.ended_at - before);
  events_.Add(
      {.time = worker.ended_at,
       .duration = static_cast<std::int64_t>(nanoseconds >= 0 ? std::min(nanoseconds, longest)
                                                              : 0),  // Not if it is no number.
       .subject = task.header().task.low,
       .worker = worker.index,
       .name = task.name,
       .kind = kind,
       .attempt = Attempt(task)});
}

void NodeMachine::NoteWorker(NodeEventKind kind, const Worker& worker, std::string_view cause) {
  events_.Add({.time = now_, .worker = worker.index, .name = events_.Intern(cause), .kind = kind});
}

void NodeMachine::NoteActor(NodeEventKind kind, const Actor& actor) {
  events_.Add({.time = now_,
               .subject = actor.id.low,
               .worker = actor.worker != nullptr ? actor.worker->index : 0,
               .name = actor.construction->name,
               .kind = kind});
  effects_->ActorChanged(actor);
}

void NodeMachine::NoteObject(NodeEventKind kind, const Object& object) {
  const Task* const producer = object.producer;
  events_.Add({.time = now_,
               .subject = object.id.low,
               .name = producer != nullptr ? producer->name : std::uint16_t{0},
               .kind = kind});
}

// ---- What it says when it is asked.

namespace {

double Seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::int64_t BeganAt(const Worker& worker, const Task& task) {
  return std::max(task.offered_at, worker.ended_at);
}

}  // namespace

void NodeMachine::CopyRunning(std::vector<NodeEvent>& events) const {
  for (const auto& [index, worker] : workers_) {
    const Task* const task = worker->outstanding.front();
    if (task == nullptr) continue;
    events.push_back({.time = BeganAt(*worker, *task),
                      .subject = task->header().task.low,
                      .worker = index,
                      .name = task->name,
                      .kind = NodeEventKind::kTaskStarted,
                      .attempt = Attempt(*task)});
  }
}

void NodeMachine::FillStatus(NodeStatus& status) const {
  for (const auto& [index, worker] : workers_) {
    if (worker->gone()) continue;
    NodeStatus::WorkerStatus& one = status.workers.emplace_back();
    one.index = index;
    one.blocked = worker->blocked();
    if (worker->actor != nullptr) one.actor = NameOf(*worker->actor->construction);
    const Task* const task = worker->outstanding.front();
    if (task == nullptr) continue;
    one.running = NameOf(*task);
    one.running_seconds = Seconds(now_ - BeganAt(*worker, *task));
    one.queued = worker->outstanding.size() - 1;
  }
  std::sort(status.workers.begin(), status.workers.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  FillActors(status);
  FillTasks(status);
  status.objects = objects_.size();
  status.lineage_bytes = lineage_.bytes();
  status.groups = groups_.size();
  status.groups_waiting = waiting_groups_.size();
  // What a worker of the pool keeps for the next call of its class is whoever's that needs it.
  Resources free = scheduler_.available();
  for (const auto& [index, worker] : workers_) {
    const bool idle = worker->actor == nullptr && worker->outstanding.empty() && !worker->blocked();
    if (idle && worker->serving != nullptr) free.Add(worker->serving->need);
  }
  for (const Resources::Named& resource : scheduler_.total().amounts()) {
    if (resource.name.find('@') != std::string::npos) continue;  // Set aside.
    status.resources.push_back({.name = resource.name,
                                .total = scheduler_.total().Get(resource.name),
                                .free = free.Get(resource.name)});
  }
}

void NodeMachine::FillActors(NodeStatus& status) const {
  status.actor_count = actors_.size();
  status.actors_restarted = counts_.actors_restarted;
  status.checkpoints = counts_.checkpoints;
  status.replayed = counts_.replayed;
  for (const auto& [id, actor] : actors_) {
    if (status.actors.size() >= NodeStatus::kActorsMax) return;
    std::size_t waiting = actor->mailbox.size();
    for (const auto& [caller, line] : actor->held_back) waiting += line.size();
    const std::uint32_t restarts = actor->construction->header().restarts;
    status.actors.push_back({.id = ToString(id),
                             .name = std::string(NameOf(*actor->construction)),
                             .named = actor->construction->header().named,
                             .state = ActorStateName(actor->state),
                             .restarts = restarts - actor->restarts,
                             .restarts_left = actor->restarts,
                             .waiting = waiting,
                             .worker = actor->worker != nullptr ? actor->worker->index : 0});
  }
}

void NodeMachine::FillTasks(NodeStatus& status) const {
  NodeStatus::TaskStatus& tasks = status.tasks;
  tasks.ready = scheduler_.ready();
  tasks.kept = lineage_.calls();
  for (const auto& [index, worker] : workers_) tasks.given += worker->outstanding.size();
  for (const auto& [id, actor] : actors_) {
    tasks.ready += actor->mailbox.size();
    if (actor->construction->state == Task::State::kDone) ++tasks.kept;
  }
  tasks.ready += waiting_groups_.size();
  tasks.kept += groups_.size() - waiting_groups_.size();
  const std::size_t others = tasks.ready + tasks.kept + tasks.given;
  tasks.waiting = tasks_.in_use() - std::min(tasks_.in_use(), others);
  tasks.submitted = counts_.submitted;
  tasks.finished = counts_.finished;
  tasks.failed = counts_.failed;
  tasks.retried = counts_.retried;
  tasks.rebuilt = counts_.rebuilt;
}

}  // namespace menger
