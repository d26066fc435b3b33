#include "menger/runtime/node/notes.h"

#include <algorithm>

#include "menger/runtime/node/node_parts.h"

namespace menger {
namespace {

std::uint8_t Attempt(const Task& task) {
  return static_cast<std::uint8_t>(std::min<int>(task.lost, UINT8_MAX));
}

double Seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::int64_t BeganAt(const Worker& worker, const Task& task) {
  return std::max(task.offered_at, worker.ended_at);
}

// Whether a call that its worker has is among those that the worker may do at once.
bool IsRunning(const Task& task) {
  const Actor* const actor = task.worker->actor;
  int before = actor != nullptr ? actor->construction->header().concurrency : 1;
  for (const Task* each = task.previous; each != nullptr; each = each->previous) {
    if (--before == 0) return false;
  }
  return true;
}

const char* CallStateName(const Task& task) {
  if (task.state == TaskState::kWaiting) return "waiting";
  if (task.state == TaskState::kReady) return "ready";
  return IsRunning(task) ? "running" : "given";
}

}  // namespace

// Calls of one function nearly always have one name.
std::uint16_t Notes::NumberOfName(FunctionTimes& times, const TaskSpec& spec) {
  const std::string_view name = spec.name();
  if (!times.has_name_number || times.name != name) {
    times.has_name_number = true;
    times.name = name;
    times.name_number =
        events_.Intern(name.empty() ? node_.effects.NameOfFunction(spec.header().function) : name);
  }
  return times.name_number;
}

// A worker's word for when and how long is taken as far as it is possible: its runs lie behind one
// another, and none ends later than now.
void Notes::NoteTask(NodeEventKind kind, Worker& worker, const Task& task, double nanoseconds,
                     std::int64_t ended_at) {
  const std::int64_t before = worker.ended_at;
  worker.ended_at =
      ended_at > before && ended_at < node_.now ? ended_at : std::max(before, node_.now);
  const auto longest = static_cast<double>(worker.ended_at - before);
  events_.Add(
      {.time = worker.ended_at,
       .duration = static_cast<std::int64_t>(nanoseconds >= 0 ? std::min(nanoseconds, longest)
                                                              : 0),  // Not if it is no number.
       .subject = task.header().task.low,
       .subject_high = task.header().task.high,
       .worker = worker.index,
       .name = task.name,
       .kind = kind,
       .attempt = Attempt(task)});
}

void Notes::NoteWorker(NodeEventKind kind, const Worker& worker, std::string_view cause) {
  events_.Add(
      {.time = node_.now, .worker = worker.index, .name = events_.Intern(cause), .kind = kind});
}

void Notes::NoteActor(NodeEventKind kind, const Actor& actor) {
  events_.Add({.time = node_.now,
               .subject = actor.id.low,
               .subject_high = actor.id.high,
               .worker = actor.worker != nullptr ? actor.worker->index : 0,
               .name = actor.construction->name,
               .kind = kind});
  node_.effects.ActorChanged(actor);
}

void Notes::NoteObject(NodeEventKind kind, const Object& object) {
  const Task* const producer = object.producer;
  events_.Add({.time = node_.now,
               .subject = object.id.low,
               .subject_high = object.id.high,
               .name = producer != nullptr ? producer->name : std::uint16_t{0},
               .kind = kind});
}

Payload Notes::Describe(FailureKind kind, ErrorCode code, const Task& task,
                        std::string text) const {
  return Encode(TaskFailure{
      .kind = kind, .code = code, .text = std::move(text), .task = std::string(NameOf(task))});
}

// ---- What it says when it is asked.

void Notes::CopyRunning(std::vector<NodeEvent>& events) const {
  for (const auto& [index, worker] : node_.workers.all()) {
    const Task* const task = worker->outstanding.front();
    if (task == nullptr) continue;
    events.push_back({.time = BeganAt(*worker, *task),
                      .subject = task->header().task.low,
                      .subject_high = task->header().task.high,
                      .worker = index,
                      .name = task->name,
                      .kind = NodeEventKind::kTaskStarted,
                      .attempt = Attempt(*task)});
  }
}

std::size_t Notes::CopyCalls(std::size_t from, std::size_t limit,
                             std::vector<NodeStatus::CallStatus>& calls) const {
  const std::size_t end = std::min(from + limit, node_.tasks.size());
  for (std::size_t i = from; i < end; ++i) {
    const Task& task = node_.tasks.at(i);
    const bool shown = task.spec != nullptr && task.header().kind != CallKind::kReserve &&
                       task.state != TaskState::kDone && !task.abandoned();
    if (!shown) continue;
    calls.push_back({.id = ToString(task.header().task),
                     .name = std::string(NameOf(task)),
                     .state = CallStateName(task),
                     .actor = task.actor != nullptr ? ToString(task.actor->id) : "",
                     .constructs = task.header().kind == CallKind::kConstruct,
                     .worker = task.worker != nullptr ? task.worker->index : 0,
                     .attempt = Attempt(task)});
  }
  return end < node_.tasks.size() ? end : 0;
}

void Notes::FillStatus(NodeStatus& status) const {
  for (const auto& [index, worker] : node_.workers.all()) {
    if (worker->gone()) continue;
    NodeStatus::WorkerStatus& one = status.workers.emplace_back();
    one.index = index;
    const Peer* const lender = node_.peers.Find(worker->lender);
    if (lender != nullptr) one.node = ToString(lender->node);
    const Peer* const borrower = node_.peers.Find(worker->borrower);
    if (borrower != nullptr) one.lent_to = ToString(borrower->node);
    one.guest = worker->program != kOwnProgram;
    one.blocked = worker->blocked();
    if (worker->actor != nullptr) one.actor = NameOf(*worker->actor->construction);
    const Task* const task = worker->outstanding.front();
    if (task == nullptr) continue;
    one.running = NameOf(*task);
    one.running_seconds = Seconds(node_.now - BeganAt(*worker, *task));
    one.queued = worker->outstanding.size() - 1;
  }
  std::sort(status.workers.begin(), status.workers.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  FillActors(status);
  FillTasks(status);
  status.objects = node_.objects.size();
  status.lineage_bytes = node_.lineage.bytes();
  node_.groups.FillStatus(status);
  // What a worker of the pool keeps for the next call of its class is whoever's that needs it.
  Resources free = node_.scheduler.available();
  Resources borrowed = node_.groups.Elsewhere();
  for (const auto& [index, worker] : node_.workers.all()) {
    if (worker->serving == nullptr) continue;
    const bool idle = worker->actor == nullptr && worker->outstanding.empty() && !worker->blocked();
    if (worker->lender == 0) {
      if (idle && worker->loan == 0) free.Add(worker->serving->need);  // Lent is not free.
    } else if (!idle && !worker->blocked() && worker->serving->group == nullptr) {
      borrowed.Add(worker->serving->need);
    }
  }
  for (const Resources::Named& resource : borrowed.amounts()) {
    status.borrowed.push_back({.name = resource.name, .amount = borrowed.Get(resource.name)});
  }
  for (const Resources::Named& resource : node_.scheduler.total().amounts()) {
    if (resource.name.find('@') != std::string::npos) continue;  // Set aside.
    status.resources.push_back({.name = resource.name,
                                .total = node_.scheduler.total().Get(resource.name),
                                .free = free.Get(resource.name)});
  }
}

void Notes::FillActors(NodeStatus& status) const {
  status.actor_count = node_.actors.all().size();
  status.actors_restarted = node_.counts.actors_restarted;
  status.checkpoints = node_.counts.checkpoints;
  status.replayed = node_.counts.replayed;
  for (const auto& [id, actor] : node_.actors.all()) {
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

void Notes::FillTasks(NodeStatus& status) const {
  NodeStatus::TaskStatus& tasks = status.tasks;
  tasks.ready = node_.scheduler.ready();
  tasks.kept = node_.lineage.calls();
  for (const auto& [index, worker] : node_.workers.all()) tasks.given += worker->outstanding.size();
  for (const auto& [id, actor] : node_.actors.all()) {
    tasks.ready += actor->mailbox.size();
    if (actor->construction->state == Task::State::kDone) ++tasks.kept;
  }
  tasks.ready += node_.groups.waiting();
  tasks.kept += node_.groups.size() - node_.groups.waiting();
  const std::size_t others = tasks.ready + tasks.kept + tasks.given;
  tasks.waiting = node_.tasks.in_use() - std::min(node_.tasks.in_use(), others);
  tasks.submitted = node_.counts.submitted;
  tasks.finished = node_.counts.finished;
  tasks.failed = node_.counts.failed;
  tasks.retried = node_.counts.retried;
  tasks.rebuilt = node_.counts.rebuilt;
}

}  // namespace menger
