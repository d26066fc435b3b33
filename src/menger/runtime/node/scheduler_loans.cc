#include <algorithm>
#include <string>
#include <utility>

#include "menger/base/error.h"
#include "menger/runtime/node/scheduler.h"

// The part of the scheduler that deals with workers that one node lends to another.
namespace menger {

bool Scheduler::IsElsewhere(const Resources& need) const {
  return std::any_of(elsewhere_.begin(), elsewhere_.end(),
                     [&need](const Elsewhere& other) { return other.total.Contains(need); });
}

void Scheduler::OnlyBorrow() {
  only_borrows_ = true;
  for (const auto& scheduling : classes_) scheduling->foreign = true;
}

void Scheduler::CheckElsewhere(const Resources& need, bool was_elsewhere) const {
  if (awaits_nodes_ || IsElsewhere(need)) return;
  const std::string missing = need.MissingFrom(total_);
  if (was_elsewhere) throw Unavailable("the node that had it is gone: {}", missing);
  throw InvalidArgument("no worker can ever run this call: {}", missing);
}

// Of what this node never has: the class, or where its calls go instead. Where nodes may come its
// calls wait for a while (Peers::SendElsewhere).
SchedulingClass& Scheduler::CheckKnown(SchedulingClass& known) const {
  if (known.otherwise == nullptr) {
    CheckElsewhere(known.need, known.was_elsewhere);
    return known;
  }
  if (awaits_nodes_ || IsElsewhere(known.need)) return known;
  return known.otherwise->foreign ? CheckKnown(*known.otherwise) : *known.otherwise;
}

void Scheduler::GoElsewhere(SchedulingClass& scheduling) {
  while (Task* const task = Front(scheduling)) {
    Dequeue(*task);
    task->scheduling = scheduling.otherwise;
    Insert(*task, Place::kLast);
  }
}

void Scheduler::SetElsewhere(std::vector<Elsewhere> elsewhere) {
  elsewhere_ = std::move(elsewhere);
  for (const auto& scheduling : classes_) {
    scheduling->was_elsewhere |= scheduling->foreign && IsElsewhere(scheduling->need);
    std::erase_if(scheduling->turn_of, [this](const auto& turn) {
      return std::ranges::find(elsewhere_, turn.first, &Elsewhere::node) == elsewhere_.end();
    });
  }
}

void Scheduler::AddBorrowed(Worker& worker, SchedulingClass& scheduling) {
  worker.serving = &scheduling;
  scheduling.workers.push_back(&worker);
}

void Scheduler::RemoveBorrowed(Worker& worker) {
  if (worker.awaits != nullptr) StopReading(*worker.awaits);
  if (worker.serving != nullptr) std::erase(worker.serving->workers, &worker);
  worker.serving = nullptr;
}

double Scheduler::BegunHereWithin(double nanoseconds, const SchedulingClass& scheduling) {
  if (scheduling.foreign) return 0;
  const auto own = std::ranges::count(scheduling.workers, PeerIndex{0}, &Worker::lender);
  return nanoseconds * static_cast<double>(std::max<std::ptrdiff_t>(own, 1)) /
         std::max(scheduling.mean_nanoseconds, 1.0);
}

void Scheduler::Keep(Worker& worker) {
  std::erase(worker.serving->workers, &worker);
  worker.dedicated = true;
}

void Scheduler::AskBack(Worker& worker) {
  worker.asked_back = true;
  if (worker.awaits != nullptr) StopReading(*worker.awaits);
  std::vector<Task*> recalled;
  TakeBack(worker, 0, recalled);
}

Worker* Scheduler::Lend(SchedulingClass& need) {
  if (!available_.Contains(need.need)) ReclaimIdle();
  if (!available_.Contains(need.need)) return nullptr;
  return Dedicate(need);
}

void Scheduler::TakeIn(Worker& worker) {
  Unblock(worker);  // It may not have said so.
  worker.dedicated = false;
  available_.Add(worker.serving->need);
  worker.serving = nullptr;
  ++pool_size_;
  all_.push_back(&worker);
  Rest(worker);
}

bool Scheduler::Occupy(Worker& guest, SchedulingClass& need) {
  if (!Reserve(need.need)) return false;
  guest.serving = &need;
  guest.used = true;
  guest.gpus = need.gpus;
  return true;
}

void Scheduler::Vacate(Worker& guest) {
  Unblock(guest);  // It may not have said so.
  available_.Add(guest.serving->need);
  guest.serving = nullptr;
}

// ---- Which call a borrowed worker gets, and whether it is the best for it.

namespace {

constexpr double kHopNanoseconds = 100'000;  // To another node and back.
constexpr std::int64_t kAwaited = 10'000'000'000;
constexpr int kLookedAt = 16;       // Calls, for one whose arguments are there.
constexpr double kNearerMax = 1e9;  // Nanoseconds.

}  // namespace

// For its arguments to come to that node.
double Scheduler::MissingNanoseconds(const Task& task, PeerIndex node) const {
  double nanoseconds = 0;
  for (std::uint32_t i = 0; i < task.references; ++i) {
    nanoseconds += places_->NanosecondsTo(*task.arguments[i], node);
  }
  return nanoseconds;
}

// Until it would begin that call: what it has before it, the way to it, and the arguments'.
double Scheduler::CostOf(const Worker& worker, const Task* next) const {
  const double missing = next != nullptr ? MissingNanoseconds(*next, worker.lender) : 0;
  return worker.queued_nanoseconds + (worker.lender != 0 ? kHopNanoseconds + missing : missing);
}

Worker* Scheduler::LeastBusy(const SchedulingClass& scheduling, const Task* next) const {
  // Without references all nodes are alike; with one node all workers are.
  if (next != nullptr && (next->references == 0 || elsewhere_.empty())) next = nullptr;
  Worker* best = nullptr;
  for (Worker* const worker : scheduling.workers) {
    if (!HasRoom(*worker)) continue;
    if (best == nullptr || CostOf(*worker, next) < CostOf(*best, next)) best = worker;
  }
  return best;
}

void Scheduler::Await(Worker& worker, Task& task) const {
  if (task.awaited_by == &worker) return;
  StopAwaiting(task);
  worker.awaits_since = now_;
  task.awaited_by = &worker;
  worker.awaits = &task;
}

void Scheduler::StopAwaiting(Task& task) {
  if (Worker* const worker = std::exchange(task.awaited_by, nullptr)) worker->awaits = nullptr;
}

// By a worker that could begin it: one whose call turns out to wait, or to be long, keeps no other;
// nor does one for ever to which the arguments do not come.
bool Scheduler::IsAwaited(const Task& task) const {
  const Worker* const worker = task.awaited_by;
  return worker != nullptr && TakesMore(*worker) && now_ - worker->awaits_since < kAwaited;
}

// The first of its class; of those whose arguments are on their way to another node's worker only
// his own. Null if there is none.
Task* Scheduler::NextFor(const Worker& worker, SchedulingClass& scheduling) {
  if (worker.awaits != nullptr) return worker.awaits;
  Task* const first = Next(scheduling);
  if (first == nullptr || (worker.lender == 0 && !IsAwaited(*first))) return first;
  return NextFree(worker, scheduling);
}

// A worker of a node that has more of its arguments may be had, or come free, soon. So it waits,
// but no longer than it would take to bring them: delay scheduling (Zaharia et al. 2010). A node
// that has workers to spare lends one within a hop.
bool Scheduler::AwaitsNearer(const Worker& worker, Task& task) {
  if (worker.lender == 0 || task.references == 0 || task.scheduling->group != nullptr ||
      task.scheduling->spread) {
    return false;
  }
  const double missing = MissingNanoseconds(task, worker.lender);
  if (missing <= kHopNanoseconds) return false;
  const bool any_nearer = std::ranges::any_of(elsewhere_, [&](const Elsewhere& other) {
    return other.total.Contains(task.scheduling->need) &&
           MissingNanoseconds(task, other.node) + kHopNanoseconds < missing;
  });
  if (!any_nearer) return false;
  if (task.nearer_since == 0) task.nearer_since = now_;
  const auto until = task.nearer_since + static_cast<std::int64_t>(std::min(missing, kNearerMax));
  if (now_ >= until) return false;
  no_nearer_at_ = no_nearer_at_ == 0 ? until : std::min(no_nearer_at_, until);
  return true;
}

// Neither awaited, nor in wait for another worker. Those whose arguments are there pass others, but
// none for longer than it may wait for a nearer worker.
Task* Scheduler::NextFree(const Worker& worker, const SchedulingClass& scheduling) {
  Task* first = nullptr;
  int looked_at = 0;
  for (const auto& [turn, tasks] : scheduling.ready) {
    for (Task* task = tasks.front(); task != nullptr; task = task->next) {
      if (++looked_at > kLookedAt) return first;
      if (IsAwaited(*task) || AwaitsNearer(worker, *task)) continue;
      const double missing = worker.lender == 0 ? 0 : MissingNanoseconds(*task, worker.lender);
      if (missing == 0) return task;
      if (first != nullptr) continue;
      first = task;
      if (task->nearer_since == 0) task->nearer_since = now_;
      if (static_cast<double>(now_ - task->nearer_since) >= std::min(missing, kNearerMax)) {
        return task;
      }
    }
    if (first != nullptr) return first;  // Those of later turns do not pass it.
  }
  return nullptr;
}

}  // namespace menger
