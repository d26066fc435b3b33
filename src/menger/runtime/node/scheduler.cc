#include "menger/runtime/node/scheduler.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "menger/base/error.h"
#include "menger/runtime/calls/place_need.h"

namespace menger {
namespace {

// How far ahead a worker is given calls: long enough to hide the way to the node and back, short
// enough that a call does not wait behind others while another worker has nothing to do.
constexpr double kAheadNanoseconds = 200'000;
constexpr std::size_t kOutstandingMax = 512;
constexpr double kBriefNanoseconds = 20'000;
constexpr double kTimesWeight = 0.1;  // Of the newest measurement.
// Of calls that wait more often than so, none is given ahead: each begins only if it may.
constexpr double kSeldomWaits = 0.05;
constexpr std::int64_t kStuckNanoseconds = 500'000;
constexpr std::size_t kClassesMax = 16'384;
constexpr std::size_t kTimesMax = 16'384;
constexpr int kStartsMax = 64;                             // At once.
constexpr std::int64_t kSpareNanoseconds = 2'000'000'000;  // Idle for so long one may go.

void Average(double& mean, double nanoseconds) {
  mean = mean == FunctionTimes::kUnknown ? nanoseconds : mean + kTimesWeight * (nanoseconds - mean);
}

template <typename T>
void Erase(std::vector<T*>& all, const T* one) {
  all.erase(std::remove(all.begin(), all.end(), one), all.end());
}

bool NeedsGpus(const Resources& need) {
  return std::ranges::any_of(need.amounts(), [](const Resources::Named& amount) {
    return amount.name == "gpu" || amount.name.starts_with("gpu@");  // Of a placement group.
  });
}

}  // namespace

Scheduler::Scheduler(Resources total, int workers, int pool_max, ObjectTable& objects,
                     States& states, WorkerQueues& queues, ValuePlaces& places)
    : total_(std::move(total)),
      available_(total_),
      workers_wanted_(workers),
      pool_max_(std::max(workers, pool_max)),
      objects_(&objects),
      states_(&states),
      queues_(&queues),
      places_(&places) {
  SchedulingClass& usual = NewClass("", Resources(1, 0));
  usual.foreign = !total_.Contains(usual.need);
}

SchedulingClass& Scheduler::ClassFor(std::string_view text) {
  SchedulingClass* known = classes_.front().get();  // That of most calls.
  if (!text.empty()) {
    const auto found = class_by_text_.find(std::string(text));
    known = found != class_by_text_.end() ? found->second : nullptr;
  }
  if (known != nullptr) return known->foreign ? CheckKnown(*known) : *known;
  PlaceNeed read = ReadPlaceNeed(text);
  SchedulingClass* const otherwise =
      read.preferred != Resources() ? &ClassFor(read.otherwise) : nullptr;
  read.need.Add(read.preferred);
  const bool foreign = only_borrows_ || !total_.Contains(read.need);
  if (foreign && otherwise == nullptr) CheckElsewhere(read.need, /*was_elsewhere=*/false);
  SchedulingClass& made = NewClass(text, std::move(read.need));
  made.foreign = foreign;
  made.was_elsewhere = foreign && IsElsewhere(made.need);
  made.spread = read.spread;
  made.otherwise = otherwise;
  preferring_ += otherwise != nullptr ? 1 : 0;
  return foreign ? CheckKnown(made) : made;
}

SchedulingClass& Scheduler::NewClass(std::string_view text, Resources need) {
  const auto spare =
      std::find_if(spare_classes_.begin(), spare_classes_.end(),
                   [](const auto* one) { return one->workers.empty() && one->blocked.empty(); });
  SchedulingClass* made = nullptr;
  if (spare != spare_classes_.end()) {
    made = *spare;
    spare_classes_.erase(spare);
  } else if (classes_.size() >= kClassesMax) {
    throw InvalidArgument(
        "calls need {} different amounts of resources, or different bundles of placement groups; "
        "at most so many are kept apart: round amounts, or have fewer groups at a time",
        kClassesMax);
  } else {
    made = classes_.emplace_back(std::make_unique<SchedulingClass>()).get();
  }
  gpu_classes_ -= made->gpus ? 1 : 0;
  made->text = text;
  made->need = std::move(need);
  made->gpus = NeedsGpus(made->need);
  gpu_classes_ += made->gpus ? 1 : 0;
  class_by_text_.emplace(text, made);
  return *made;
}

FunctionTimes& Scheduler::TimesOf(FunctionId function, std::uint64_t callee,
                                  std::string_view name) {
  const std::uint64_t kind =
      callee ^ (name.empty() ? 0 : std::hash<std::string_view>()(name) * 0x9e3779b97f4a7c15ULL);
  const auto known = times_.find({function, kind});
  if (known != times_.end()) return known->second;
  // Names that a program makes up call by call are not worth a record each.
  if (times_.size() >= kTimesMax) return times_[{function, 0}];
  return times_[{function, kind}];
}

void Scheduler::AddWorker(Worker& worker) {
  if (workers_starting_ > 0) --workers_starting_;
  ++pool_size_;
  all_.push_back(&worker);
  idle_.push_back(&worker);
}

void Scheduler::RemoveWorker(Worker& worker) {
  if (worker.blocked()) waits_.erase(worker.waits_as);
  if (worker.lender != 0) return RemoveBorrowed(worker);
  // What it holds is lent already while it is blocked.
  if (worker.serving != nullptr) {
    if (!worker.dedicated) {
      Erase(worker.blocked() ? worker.serving->blocked : worker.serving->workers, &worker);
    }
    if (!worker.blocked()) available_.Add(worker.serving->need);
    worker.serving = nullptr;
  }
  if (worker.dedicated) return Erase(spent_, &worker);
  if (worker.blocked()) --blocked_;
  if (!worker.outstanding.empty()) --busy_;
  if (worker.outstanding.size() > 1) --stacked_;
  Erase(idle_, &worker);
  Erase(all_, &worker);
  --pool_size_;
}

bool Scheduler::Reserve(const Resources& need) {
  if (!available_.Contains(need)) ReclaimIdle();
  if (!available_.Contains(need)) return false;
  available_.Subtract(need);
  return true;
}

Worker* Scheduler::Dedicate(SchedulingClass& need) {
  if (!available_.Contains(need.need) || idle_.empty()) ReclaimIdle();
  if (!available_.Contains(need.need)) {
    AskAgain(need.actors);
    return nullptr;
  }
  Worker* const worker = IdleFor(need);
  if (worker == nullptr || IdleAreForCalls()) {
    // One for each that asks, so that all of them start side by side.
    if (++asking_ > workers_starting_ && workers_starting_ < kStartsMax) StartOneMore();
    return nullptr;
  }
  available_.Subtract(need.need);
  HadTurn(need.actors);
  Erase(idle_, worker);
  Erase(all_, worker);
  --pool_size_;
  worker->dedicated = worker->used = true;
  worker->gpus = need.gpus;
  worker->serving = &need;
  return worker;
}

Worker* Scheduler::Freest() {
  Worker* best = nullptr;
  for (Worker* const worker : all_) {
    if (worker->blocked() || worker->full) continue;
    if (best == nullptr || worker->outstanding.size() < best->outstanding.size()) best = worker;
  }
  if (best == nullptr && workers_starting_ == 0 && pool_size_ < pool_max_) StartOneMore();
  return best;
}

Worker* Scheduler::Spare() const {
  if (pool_size_ <= workers_wanted_ + blocked_) return nullptr;
  const auto spare = std::find_if(all_.begin(), all_.end(), [this](const Worker* worker) {
    return worker->outstanding.empty() && !worker->blocked() &&
           now_ - worker->progress_at > kSpareNanoseconds;
  });
  return spare != all_.end() ? *spare : nullptr;
}

void Scheduler::StartOneMore() {
  ++workers_starting_;
  queues_->StartWorker();
}

// False if not all are in the memory of the worker's node.
bool Scheduler::BeginReading(const Worker& worker, Task& task) {
  if (task.references == 0) return true;
  const std::span<Object* const> arguments(task.arguments.data(), task.references);
  if (!std::exchange(task.reading, true)) {
    for (Object* const argument : arguments) objects_->BeginRead(*argument);
  }
  reading_rooms_.Admit(worker.lender, task);
  bool there = true;
  for (Object* const argument : arguments) {
    if (places_->IsAt(*argument, worker.lender)) continue;
    places_->Bring(*argument, worker.lender);
    there = false;
  }
  if (there == task.fetching) {
    task.fetching = !there;
    if (there) {
      Erase(fetching_, &task);
    } else {
      fetching_.push_back(&task);
    }
  }
  return there;
}

void Scheduler::StopReading(Task& task) {
  reading_rooms_.Leave(task);  // It may have fetched values and read none.
  if (!std::exchange(task.reading, false)) return;
  if (std::exchange(task.fetching, false)) Erase(fetching_, &task);
  StopAwaiting(task);
  for (std::uint32_t i = 0; i < task.references; ++i) objects_->EndRead(*task.arguments[i]);
}

namespace {

// The lease for one more call; none if so many lie between it and the first that is not done. Each
// of those has a place of its own, by its number: where an actor does several calls at once, one
// that waits may keep its place while any number of others come and go.
std::optional<LeaseNumber> NextLease(const Worker& worker) {
  LeaseNumber lease = worker.leases + 1;
  const Task* const first = worker.outstanding.front();
  if (first == nullptr || lease - first->lease < kLeasesMax) return lease;
  if (!worker.dedicated || worker.outstanding.size() >= kLeasesMax) return std::nullopt;
  while (worker.places[lease % kLeasesMax]) ++lease;
  return lease;
}

}  // namespace

bool Scheduler::OfferTo(Worker& worker, Task& task) {
  if (task.references > 0 && !reading_rooms_.MayEnter(worker.lender, task, now_)) return false;
  if (task.awaited_by != &worker) StopAwaiting(task);  // Its arguments come here instead.
  if (!BeginReading(worker, task)) {
    if (worker.lender != 0 && !worker.dedicated) Await(worker, task);
    return false;
  }
  const std::optional<LeaseNumber> lease = NextLease(worker);
  task.lease = lease.value_or(0);
  // What the worker reads is written before it can see the call.
  task.brief = task.times->mean_nanoseconds < kBriefNanoseconds;
  worker.full |= !lease;
  if (worker.full || !queues_->Offer(worker, task)) {
    worker.full = !worker.outstanding.empty();
    StopReading(task);
    return false;
  }
  StopAwaiting(task);
  worker.leases = *lease;
  worker.places.set(*lease % kLeasesMax);
  if (worker.outstanding.empty()) worker.progress_at = now_;
  if (IsOfPool(worker)) {
    busy_ += worker.outstanding.empty() ? 1 : 0;
    stacked_ += worker.outstanding.size() == 1 ? 1 : 0;
  }
  states_->Enter(task.state, Task::State::kLeased);
  task.worker = &worker;
  task.offered_at = now_;
  task.nearer_since = 0;
  worker.outstanding.PushBack(&task);
  worker.queued_nanoseconds += task.times->mean_nanoseconds;
  return true;
}

void Scheduler::Done(Worker& worker, Task& task, double nanoseconds) {
  const bool was_first = worker.outstanding.front() == &task;
  worker.outstanding.Remove(&task);
  if (IsOfPool(worker)) {
    busy_ -= worker.outstanding.empty() ? 1 : 0;
    stacked_ -= worker.outstanding.size() == 1 ? 1 : 0;
  }
  worker.places.reset(task.lease % kLeasesMax);
  StopReading(task);
  worker.full = false;
  worker.progress_at = now_;
  worker.queued_nanoseconds =
      worker.outstanding.empty()
          ? 0
          : std::max(0.0, worker.queued_nanoseconds - task.times->mean_nanoseconds);
  task.worker = nullptr;
  if (!task.abandoned()) states_->Enter(task.state, Task::State::kWaiting);
  // From now on the next one runs: that is what its limit of time is for.
  Task* const next = worker.outstanding.front();
  if (was_first && next != nullptr) next->offered_at = now_;
  double& mean = task.times->mean_nanoseconds;
  if (nanoseconds < 0) return;
  task.times->waits *= 1 - kTimesWeight;
  Average(mean, nanoseconds);
  if (task.actor == nullptr) Average(task.scheduling->mean_nanoseconds, nanoseconds);
}

// Its call takes longer than it was thought to.
bool Scheduler::IsStuck(const Worker& worker) const {
  return now_ - worker.progress_at > kStuckNanoseconds;
}

// Whether it may lie behind other calls, or others behind it.
bool Scheduler::MayQueue(const Task& task) {
  // A limit of time is measured from the offer.
  return task.header().time_limit == 0 && task.times->waits < kSeldomWaits;
}

bool Scheduler::HasRoom(const Worker& worker) const {
  return worker.tried != round_ && TakesMore(worker);
}

bool Scheduler::TakesMore(const Worker& worker) const {
  if (worker.blocked() || worker.full || worker.asked_back) return false;
  if (worker.outstanding.empty()) return true;
  if (!MayQueue(*worker.outstanding.back()) || IsStuck(worker)) return false;
  return worker.queued_nanoseconds < kAheadNanoseconds &&
         worker.outstanding.size() < kOutstandingMax;
}

bool Scheduler::Assign(Worker& worker, SchedulingClass& scheduling) {
  if (!Reserve(scheduling.need)) return false;
  Erase(idle_, &worker);
  worker.serving = &scheduling;
  worker.used = true;
  worker.gpus = scheduling.gpus;
  scheduling.workers.push_back(&worker);
  return true;
}

void Scheduler::Unassign(Worker& worker) {
  Erase(worker.serving->workers, &worker);
  available_.Add(worker.serving->need);
  worker.serving = nullptr;
  Rest(worker);
}

// Workers keep their class while nobody else needs what they hold: most calls are of one class.
void Scheduler::ReclaimIdle() {
  for (std::size_t i = 0; i < all_.size();) {
    Worker* const worker = all_[i];
    if (worker->serving != nullptr && worker->outstanding.empty() && !worker->blocked()) {
      Unassign(*worker);
    }
    if (i < all_.size() && all_[i] == worker) ++i;  // It is not spent.
  }
}

Worker* Scheduler::WorkerFor(SchedulingClass& scheduling) {
  const Task* const next = Front(scheduling);
  Worker* const best = scheduling.spread ? InTurn(scheduling, next) : LeastBusy(scheduling, next);
  if (best != nullptr && best->outstanding.empty() && best->lender == 0) return best;
  // Elsewhere only what is there sooner than its arguments are here.
  if (best != nullptr && best->lender != 0 && CostOf(*best, next) < MissingNanoseconds(*next, 0))
    return best;
  if (scheduling.foreign) return best;  // Also what needs nothing, but is to be in a bundle.
  if (idle_.empty()) ReclaimIdle();
  Worker* idle = IdleFor(scheduling);
  const int pool = pool_size_ + workers_starting_;
  const bool stands_in =
      pool < workers_wanted_ + blocked_ && pool < pool_max_ && available_.Contains(scheduling.need);
  if (idle == nullptr && (pool < workers_wanted_ || stands_in)) {
    StartOneMore();
    idle = IdleFor(scheduling);
  }
  if (idle == nullptr || !Assign(*idle, scheduling)) return best;
  return scheduling.workers.back();
}

void Scheduler::TakeBack(Worker& worker, std::size_t keep, std::vector<Task*>& recalled) {
  const Task* const first = worker.outstanding.front();
  Task* task = worker.outstanding.back();
  while (task != first && worker.outstanding.size() > keep) {
    Task* const before = task->previous;
    // Those of the actor that is busy here have nowhere else to go.
    if (task->actor != nullptr && task->actor == first->actor) {
      task = before;
      continue;
    }
    if (!queues_->Recall(worker, *task)) {
      if (worker.lender == 0) break;  // Begun; so are those before it.
      task = before;
      continue;
    }
    Done(worker, *task, -1);
    if (task->actor != nullptr) {
      recalled.push_back(task);
    } else {
      Enqueue(*task, Place::kFirst);
    }
    task = before;
  }
}

// Of an actor's process.
void Scheduler::TakeBackAll(Worker& worker, std::vector<Task*>& recalled) {
  for (Task* task = worker.outstanding.back(); task != nullptr;) {
    Task* const before = task->previous;
    if (queues_->Recall(worker, *task)) {
      Done(worker, *task, -1);
      recalled.push_back(task);
    }
    task = before;
  }
}

void Scheduler::Block(Worker& worker, std::vector<Task*>& recalled) {
  if (worker.state != Worker::State::kServing) return;
  states_->Enter(worker.state, Worker::State::kBlocked);
  if (const Task* const call = worker.outstanding.front()) {
    call->times->waits += kTimesWeight * (1 - call->times->waits);
  }
  if (worker.waits_as != 0) waits_.emplace(worker.waits_as, &worker);  // 0: it is lent.
  if (worker.lender != 0) return TakeBack(worker, 0, recalled);  // Its node lends what it has.
  if (worker.serving != nullptr) available_.Add(worker.serving->need);
  if (worker.dedicated) return;
  ++blocked_;
  Erase(idle_, &worker);  // A thread with an actor's call serves no class.
  if (worker.serving != nullptr) {
    Erase(worker.serving->workers, &worker);
    worker.serving->blocked.push_back(&worker);
  }
  TakeBack(worker, 0, recalled);
}

void Scheduler::Empty(Worker& worker, std::vector<Task*>& recalled) {
  if (worker.dedicated) {
    TakeBackAll(worker, recalled);
  } else {
    TakeBack(worker, 0, recalled);
  }
}

void Scheduler::Unblock(Worker& worker) {
  if (!worker.blocked()) return;
  states_->Enter(worker.state, Worker::State::kServing);
  if (const Task* const call = worker.outstanding.front()) reading_rooms_.StopFetching(*call);
  waits_.erase(std::exchange(worker.waits_as, 0));
  if (worker.lender != 0) return;
  if (worker.serving != nullptr) available_.Subtract(worker.serving->need);
  if (worker.dedicated) return;
  --blocked_;
  OpenDoor();
  if (worker.serving != nullptr) {
    Erase(worker.serving->blocked, &worker);
    worker.serving->workers.push_back(&worker);
  } else {
    idle_.push_back(&worker);
  }
}

void Scheduler::Balance(std::vector<Task*>& recalled) {
  if (stacked_ == 0) return;
  const int pool = pool_size_ + workers_starting_;
  const bool stands_in = !HasIdleWorker() && pool < std::min(workers_wanted_ + blocked_, pool_max_);
  if (!HasIdleWorker() && !stands_in) return;
  for (Worker* const worker : all_) {
    const std::size_t outstanding = worker->outstanding.size();
    if (outstanding < 2) continue;
    // Those that are idle would have what its class has ready.
    const bool stuck = IsStuck(*worker);
    // Nobody is, but one may be started in place of one that waits.
    if (stands_in) {
      const SchedulingClass* const serving = worker->serving;
      if (!stuck || serving == nullptr || !available_.Contains(serving->need)) continue;
      return StartOneMore();
    }
    if (!stuck && (worker->queued_nanoseconds < kAheadNanoseconds / 4 ||
                   (worker->serving != nullptr && worker->serving->ready_count > 0))) {
      continue;
    }
    TakeBack(*worker, stuck ? 1 : (outstanding + 1) / 2, recalled);
  }
}

}  // namespace menger
