#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "menger/runtime/node_machine.h"

// The part of the node's logic that deals with calls that wait for others.
//
// Each call that waits has a number; what it waits for is wanted under that number, and so is all
// that this needs in turn: what makes its arguments, the actor of a method and that actor's calls
// before it. The scheduler runs what is wanted first, the latest wait's before others'. A mark is
// not taken back when the wait is over; whoever meets it asks the scheduler whether it still is
// one.
namespace menger {
namespace {

constexpr std::int64_t kLookForCirclesEvery = 100'000'000;  // Nanoseconds.
constexpr std::size_t kNamesMax = 8;                        // Of a chain of waits.

}  // namespace

void NodeMachine::Block(Worker& worker, std::span<Object* const> objects, bool timed) {
  Task* const call = worker.outstanding.front();
  if (call == nullptr || worker.blocked) return;
  if (call->waits_as == 0) call->waits_as = ++last_waits_as_;
  worker.waits_as = call->waits_as;
  worker.timed = timed;
  worker.awaited.clear();
  for (const Object* const object : objects) worker.awaited.push_back(object->id);
  circle_told_ = false;
  if (worker.lender != 0) {
    Tell(worker.lender, {.kind = PeerMessage::Kind::kBlocked, .loan = worker.loan});
  }
  std::vector<Task*> recalled;
  scheduler_.Block(worker, recalled);
  CallsReturned(recalled);
  for (const Object* const object : objects) {
    if (object->state == Object::State::kPending && object->producer != nullptr) {
      Want(*object->producer, worker.waits_as);
    }
  }
}

void NodeMachine::Unblock(Worker& worker) {
  if (worker.lender != 0 && worker.blocked) {
    Tell(worker.lender, {.kind = PeerMessage::Kind::kUnblocked, .loan = worker.loan});
  }
  worker.awaited.clear();
  scheduler_.Unblock(worker);
}

// ---- What is wanted.

void NodeMachine::Want(Task& first, std::uint64_t wait) {
  if (!scheduler_.waits().contains(wait)) return;  // It is over.
  std::vector<Task*> more = {&first};
  while (!more.empty()) {
    Task& task = *more.back();
    more.pop_back();
    const bool wanted = task.wanted >= wait && scheduler_.waits().contains(task.wanted);
    if (wanted || task.state == Task::State::kDone) continue;
    scheduler_.Want(task, wait);
    if (task.pending > 0) {
      for (const Object* const argument : task.arguments) {
        const bool pending = argument->state == Object::State::kPending;
        if (pending && argument->producer != nullptr) more.push_back(argument->producer);
      }
    }
    if (task.actor == nullptr) continue;
    task.actor->wanted = std::max(task.actor->wanted, wait);
    more.push_back(task.actor->construction);
    // The call of its caller before it, which is waited for by all that come after.
    if (task.in_line && task.previous != nullptr) more.push_back(task.previous);
  }
}

// It may be that somebody waited for what it gives before it was made, or made again.
void NodeMachine::WantAlready(Task& task) {
  std::uint64_t latest = 0;
  for (const Object* const result : task.results) {
    for (const auto& [other, wait] : result->waiting) {
      if (other->wait == wait) latest = std::max(latest, other->wanted);
    }
    for (const Watch& watch : result->watches) {
      const Worker* const worker = watch.process != kDriver ? FindWorker(watch.process) : nullptr;
      if (worker != nullptr && worker->blocked) latest = std::max(latest, worker->waits_as);
    }
  }
  if (latest > 0) Want(task, latest);
}

std::uint64_t NodeMachine::BeginDriverWait(std::span<Object* const> objects) {
  if (driver_waits_.size() >= kDriverWaitsMax) return 0;
  const Object* needed = nullptr;
  for (const Object* const object : objects) {
    if (object->state != Object::State::kPending || object->producer == nullptr) continue;
    if (needed != nullptr && needed->producer != object->producer) return 0;
    needed = object;
  }
  if (needed == nullptr) return 0;
  driver_waits_.emplace(++last_driver_wait_, needed->id);
  scheduler_.BeginDriverWait(last_driver_wait_);
  return last_driver_wait_;
}

void NodeMachine::EndDriverWait(std::uint64_t wait) {
  if (wait == 0) return;
  driver_waits_.erase(wait);
  scheduler_.EndDriverWait(wait);
}

// Not before it is crowded: until then priorities decide.
void NodeMachine::WantForDriver() {
  if (driver_waits_.empty() || !scheduler_.IsCrowded()) return;
  for (const auto& [wait, id] : driver_waits_) {
    const Object* const object = objects_.Find(id);
    if (object == nullptr || object->state != Object::State::kPending) continue;
    if (object->producer != nullptr) Want(*object->producer, wait);
  }
}

// Those first whose calls somebody waits for.
void NodeMachine::SortWaitingActors() {
  const auto wanted = [this](const Actor* actor) {
    return scheduler_.waits().contains(actor->wanted) ? actor->wanted : 0;
  };
  if (waiting_actors_.size() < 2 || scheduler_.waits().empty()) return;
  std::stable_sort(waiting_actors_.begin(), waiting_actors_.end(),
                   [&](const Actor* a, const Actor* b) { return wanted(a) > wanted(b); });
}

// ---- What cannot go on.

// "outer waits for middle waits for inner".
std::string NodeMachine::WaitersOf(const Task& task) const {
  std::vector<std::string_view> names = {NameOf(task)};
  for (std::uint64_t wait = task.wanted; names.size() <= scheduler_.waits().size();) {
    const auto found = scheduler_.waits().find(wait);
    if (found == scheduler_.waits().end() || found->second == nullptr) break;
    const Task* const call = found->second->outstanding.front();
    if (call == nullptr) break;
    names.push_back(NameOf(*call));
    wait = call->wanted;
  }
  std::string text;
  for (std::size_t i = names.size(); i-- > 0;) {
    const std::size_t from_root = names.size() - 1 - i;
    if (from_root >= kNamesMax / 2 && i >= kNamesMax / 2) {
      if (i == kNamesMax / 2) {
        text += fmt::format("... ({} more) waits for ", names.size() - kNamesMax);
      }
      continue;
    }
    text += names[i];
    if (i > 0) text += " waits for ";
  }
  return text;
}

// Some worker has a call that does not wait, or waits only until the driver has read more of its
// stream.
bool NodeMachine::SomeCallGoesOn() const {
  const auto goes_on = [](const Worker& worker) {
    return !worker.gone && !worker.blocked && !worker.outstanding.empty();
  };
  if (std::any_of(workers_.begin(), workers_.end(),
                  [&](const auto& entry) { return goes_on(*entry.second); })) {
    return true;
  }
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    const Stream& stream = entry.second;
    return stream.reader == kDriver && stream.gate->state == Object::State::kPending;
  });
}

// A call that others wait for and no worker can be had for: all that there may be wait.
void NodeMachine::FailStranded() {
  Task* const task = scheduler_.Stranded();
  if (task == nullptr || SomeCallGoesOn()) return;
  End(*task,
      Describe(FailureKind::kException, ErrorCode::kUnavailable, *task,
               fmt::format("all {} workers wait, and there may be no more "
                           "(RuntimeOptions::workers_max): {}",
                           scheduler_.pool_size(), WaitersOf(*task))),
      /*force=*/false);
  SpreadNews();
}

void NodeMachine::StartFailed(std::string_view cause) {
  scheduler_.StartFailed();
  if (cause.empty()) return;
  const auto text = [cause] { return fmt::format("no worker could be started for it: {}", cause); };
  const auto homeless =
      std::find_if(waiting_actors_.begin(), waiting_actors_.end(), [](const Actor* actor) {
        return actor->worker == nullptr && actor->state != Actor::State::kDead;
      });
  if (homeless != waiting_actors_.end()) {
    const Task& construction = *(*homeless)->construction;
    ActorDead(**homeless,
              Describe(FailureKind::kActorDied, ErrorCode::kUnavailable, construction, text()));
  } else if (Task* const task = scheduler_.WithoutWorker()) {
    End(*task, Describe(FailureKind::kWorkerDied, ErrorCode::kUnavailable, *task, text()),
        /*force=*/false);
  }
  SpreadNews();
}

// Once there was a need for it.
void NodeMachine::EndSpare() {
  if (options_.threads) return;
  Worker* const spare = scheduler_.Spare();
  if (spare == nullptr) return;
  constexpr std::string_view kWhy = "it was not needed any longer";
  effects_->EndWorker(*spare, kWhy);
  Retire(*spare, kWhy);
  CloseStreamsOf(spare->index);
}

// ---- Circles.

namespace {

// The worker that a call needs before it is done; null if that is not known.
const Worker* WorkerOf(const Task& task) {
  if (task.worker != nullptr) return task.worker;
  return task.actor != nullptr ? task.actor->worker : nullptr;
}

}  // namespace

// The workers whose calls must go on before that of this one can.
std::vector<const Worker*> NodeMachine::WorkersAwaitedBy(const Worker& worker) const {
  std::vector<const Worker*> workers;
  std::vector<const Task*> more;
  std::set<const Task*> seen;
  const auto add = [&more](const Object* object) {
    const bool pending = object != nullptr && object->state == Object::State::kPending;
    if (pending && object->producer != nullptr) more.push_back(object->producer);
  };
  for (const ObjectId& id : worker.awaited) add(objects_.Find(id));
  while (!more.empty()) {
    const Task& task = *more.back();
    more.pop_back();
    if (!seen.insert(&task).second) continue;
    if (const Worker* const needed = WorkerOf(task)) workers.push_back(needed);
    if (task.pending == 0) continue;
    for (const Object* const argument : task.arguments) add(argument);
  }
  return workers;
}

// Where all that runs waits, and for nothing that could come by itself, one of the waits is most
// likely part of a circle: said once, so that somebody can find it.
void NodeMachine::LookForCircle() {
  if (circle_told_ || scheduler_.waits().empty() || now_ < look_for_circles_at_) return;
  look_for_circles_at_ = now_ + kLookForCirclesEvery;
  if (scheduler_.ready() > 0 || scheduler_.IsStarting() || !waiting_actors_.empty()) return;
  for (const auto& [index, worker] : workers_) {
    const bool waits = worker->blocked && !worker->timed;
    if (!worker->gone && !worker->outstanding.empty() && !waits) return;
  }
  circle_told_ = true;
  std::set<const Worker*> done;
  for (const auto& [wait, worker] : scheduler_.waits()) {
    if (worker != nullptr && !done.contains(worker) && TellCircle(*worker, done)) return;
  }
}

// Follows the waits from one worker, depth first; true if they lead back to where they went by.
bool NodeMachine::TellCircle(const Worker& first, std::set<const Worker*>& done) {
  struct Step {
    const Worker* worker;
    std::vector<const Worker*> next;
  };
  std::vector<Step> way = {{&first, WorkersAwaitedBy(first)}};
  while (!way.empty()) {
    if (way.back().next.empty()) {
      done.insert(way.back().worker);
      way.pop_back();
      continue;
    }
    const Worker* const next = way.back().next.back();
    way.back().next.pop_back();
    const auto before = std::find_if(way.begin(), way.end(),
                                     [next](const Step& step) { return step.worker == next; });
    if (before == way.end()) {
      if (next->blocked && !done.contains(next)) way.push_back({next, WorkersAwaitedBy(*next)});
      continue;
    }
    std::string text;
    for (auto step = before; step != way.end(); ++step) {
      text += fmt::format("{} waits for ", NameOf(*step->worker->outstanding.front()));
    }
    effects_->Warn(fmt::format("calls wait for one another in a circle and never end: {}{}", text,
                               NameOf(*next->outstanding.front())));
    return true;
  }
  return false;
}

}  // namespace menger
