#include <algorithm>
#include <utility>

#include "menger/runtime/node/scheduler.h"

// The part of the scheduler that decides whose turn it is.
namespace menger {
namespace {

// While so many workers of the pool wait, at least, calls that nobody waits for do not begin: each
// would most likely wait, too, and cost one more worker.
constexpr int kCrowd = 4;
// After so long one is let in nevertheless, after twice as long the next, and so on. Nanoseconds.
constexpr std::int64_t kEntryMin = 10'000'000;
constexpr std::int64_t kEntryMax = 1'000'000'000;

// For so long those that have something keep it while others wait for that.
constexpr std::int64_t kQuantum = 5'000'000;
// Who has waited so long gets all that he needs kept together, also what is free already, for a
// while: he might never find it free at the same time.
constexpr std::int64_t kTogether = 100'000'000;
constexpr std::int64_t kTogetherEnds = 1'100'000'000;

}  // namespace

// ---- The queues.

void Scheduler::Enqueue(Task& task, Place place) {
  states_->Enter(task.state, Task::State::kReady);
  Insert(task, place);
}

void Scheduler::Insert(Task& task, Place place) {
  IntrusiveList<Task>& line = task.scheduling->ready[{task.wanted, task.header().priority}];
  place == Place::kLast ? line.PushBack(&task) : line.PushFront(&task);
  ++task.scheduling->ready_count;
  ++ready_;
  wanted_ready_ += task.wanted != 0 ? 1 : 0;
}

void Scheduler::Dequeue(Task& task) {
  const auto line = task.scheduling->ready.find({task.wanted, task.header().priority});
  line->second.Remove(&task);
  // Waits have numbers of their own; priorities come again.
  if (task.wanted != 0 && line->second.empty()) task.scheduling->ready.erase(line);
  --task.scheduling->ready_count;
  --ready_;
  wanted_ready_ -= task.wanted != 0 ? 1 : 0;
}

Task* Scheduler::Front(const SchedulingClass& scheduling) {
  for (const auto& [turn, tasks] : scheduling.ready) {
    if (!tasks.empty()) return tasks.front();
  }
  return nullptr;
}

// The first that is to run. One whose waiter has gone on without it goes back into its line.
Task* Scheduler::Next(SchedulingClass& scheduling) {
  for (;;) {
    Task* const task = Front(scheduling);
    if (task == nullptr || task->wanted == 0 || waits_.contains(task->wanted)) return task;
    Want(*task, StillWantedBy(*task));
  }
}

void Scheduler::Want(Task& task, std::uint64_t wait) {
  const bool queued = task.state == Task::State::kReady && task.actor == nullptr &&
                      task.header().kind == CallKind::kFunction;
  if (queued) Dequeue(task);
  task.wanted = wait;
  if (queued) Insert(task, Place::kLast);
}

std::uint64_t Scheduler::StillWantedBy(const Task& task) const {
  std::uint64_t latest = 0;
  for (const Object* const result : task.results) {
    for (const auto& [other, wait] : result->waiting) {
      const bool waits = other->wait == wait && waits_.contains(other->wanted);
      if (waits) latest = std::max(latest, other->wanted);
    }
    for (const Watch& watch : result->watches) {
      for (const auto& [wait, worker] : waits_) {
        if (worker != nullptr && worker->index == watch.process) latest = std::max(latest, wait);
      }
    }
  }
  return latest;
}

// ---- The door.

bool Scheduler::IsCrowded() const { return blocked_ >= std::max(kCrowd, workers_wanted_); }

bool Scheduler::MayEnter(const Task& task) {
  if (task.wanted != 0 || !IsCrowded()) return true;
  if (next_entry_ == 0) {
    entry_interval_ = kEntryMin;
    next_entry_ = now_ + entry_interval_;
  }
  return now_ >= next_entry_;
}

void Scheduler::CloseDoorBehind() {
  entry_interval_ = std::min(2 * entry_interval_, kEntryMax);
  next_entry_ = now_ + entry_interval_;
}

// ---- Claims on what others keep.

void Scheduler::AskAgain(Claim& claim) {
  if (claim.round + 1 < round_) claim.since = now_;
  claim.round = round_;
}

void Scheduler::HadTurn(Claim& claim) {
  if (claim.round + 1 >= round_ && claim.since < now_) turn_at_ = now_;
  claim.round = 0;
  claim.since = now_;
}

// Those that ask and have nothing, in this round or the last one.
void Scheduler::FindClaims() {
  claims_.clear();
  for (const auto& scheduling : classes_) {
    if (scheduling->foreign) continue;
    const bool idle = scheduling->ready_count == 0 || !scheduling->workers.empty();
    if (!idle && MayEnter(*Front(*scheduling))) AskAgain(scheduling->calls);
    if (scheduling->calls.round == round_ || scheduling->actors.round == round_) {
      claims_.push_back(scheduling.get());
    }
  }
}

// Calls that have waited for a while for any worker at all come before actors that want one for
// themselves: of these there may always be more.
bool Scheduler::IdleAreForCalls() const {
  const auto waiting = std::ranges::count_if(classes_, [this](const auto& scheduling) {
    const Claim& claim = scheduling->calls;
    return scheduling->ready_count > 0 && scheduling->workers.empty() && !scheduling->foreign &&
           claim.round + 1 >= round_ && now_ - claim.since >= kQuantum &&
           available_.Contains(scheduling->need);
  });
  return static_cast<std::size_t>(waiting) >= idle_.size();
}

// Not by those who claim the same and came later: they would hold back each other for ever.
bool Scheduler::IsHeldBack(const SchedulingClass& scheduling) const {
  const bool claims = scheduling.calls.round == round_;
  return std::any_of(claims_.begin(), claims_.end(), [&](const SchedulingClass* claimed) {
    return (claimed->actors.round == round_ &&
            HoldsBack(claimed->actors, claimed->need, scheduling)) ||
           (claimed != &scheduling && claimed->calls.round == round_ &&
            !(claims && scheduling.calls.since <= claimed->calls.since) &&
            HoldsBack(claimed->calls, claimed->need, scheduling));
  });
}

bool Scheduler::HoldsBack(const Claim& claim, const Resources& claimed,
                          const SchedulingClass& other) const {
  const std::int64_t waited = now_ - std::max(claim.since, turn_at_);
  if (waited < kQuantum) return false;
  if (!ComesFree(claimed)) return false;  // Actors have it, for as long as they live.
  const bool together = waited > kTogether && waited < kTogetherEnds;
  return together ? other.need.Overlaps(claimed) : other.need.OverlapsLack(claimed, available_);
}

std::optional<std::int64_t> Scheduler::NextTurn() const {
  std::optional<std::int64_t> next;
  const auto at = [&next](std::int64_t time) { next = std::min(next.value_or(time), time); };
  if (stacked_ > 0 && (HasIdleWorker() || blocked_ > 0)) at(now_ + 1'000'000);
  if (no_nearer_at_ != 0) at(no_nearer_at_);
  if (const auto entry = reading_rooms_.NextEntry(now_)) at(*entry);
  if (next_entry_ != 0 && ready_ > 0) at(std::max(next_entry_, now_));
  for (const SchedulingClass* const claimed : claims_) {
    for (const Claim* const claim : {&claimed->calls, &claimed->actors}) {
      const std::int64_t turn = std::max(claim->since, turn_at_) + kQuantum;
      if (claim->round == round_ && turn > now_) at(turn);
    }
  }
  return next;
}

// ---- Handing out.

bool Scheduler::Serve(SchedulingClass& scheduling) {
  Task* const next = Next(scheduling);
  if (next == nullptr || !MayEnter(*next)) return false;
  Worker* const awaiting = next->awaited_by;
  const bool awaits = awaiting != nullptr && HasRoom(*awaiting);
  Worker* const worker = awaits ? awaiting : WorkerFor(scheduling);
  if (worker == nullptr) {
    const bool never = idle_.empty() && workers_starting_ == 0 && blocked_ == pool_size_ &&
                       pool_size_ >= pool_max_;
    if (never && next->wanted != 0) stranded_ = next;
    return false;
  }
  // A fair share at a time, so that the first worker does not get what the others could do.
  const std::size_t others = idle_.size() + scheduling.workers.size();
  const std::size_t share =
      scheduling.spread
          ? 1
          : std::max<std::size_t>(1, scheduling.ready_count / std::max<std::size_t>(1, others));
  const bool crowded = IsCrowded();
  std::size_t offered = 0;
  while (offered < share && HasRoom(*worker)) {
    Task* const task = NextFor(*worker, scheduling);
    if (task == nullptr) break;
    const bool unwanted = crowded && task->wanted == 0;
    if (unwanted && (offered > 0 || !MayEnter(*task))) break;
    if (!MayQueue(*task) && !worker->outstanding.empty()) break;
    Dequeue(*task);
    if (!OfferTo(*worker, *task)) {
      Insert(*task, Place::kFirst);
      break;
    }
    ++offered;
    if (unwanted) CloseDoorBehind();
  }
  if (offered > 0) {
    HadTurn(scheduling.calls);
    queues_->Announce(*worker);
  }
  if (offered > 0) return true;
  if (worker->lender == 0) return ServeFetched(*worker, scheduling);
  worker->tried = round_;  // Others may get something.
  return true;
}

// Who waits for room to read may have come before one whose arguments have been brought, and fill
// it.
bool Scheduler::ServeFetched(Worker& worker, const SchedulingClass& scheduling) {
  const auto fetched = std::ranges::find_if(fetching_, [&](const Task* task) {
    const std::span<Object* const> arguments(task->arguments.data(), task->references);
    return task->scheduling == &scheduling && task->actor == nullptr && !IsAwaited(*task) &&
           MayEnter(*task) && std::ranges::all_of(arguments, [this](const Object* one) {
             return places_->IsAt(*one, 0);
           });
  });
  if (fetched == fetching_.end()) return false;
  Task& task = **fetched;
  const bool unwanted = IsCrowded() && task.wanted == 0;
  Dequeue(task);
  if (!OfferTo(worker, task)) {
    Insert(task, Place::kFirst);
    return false;
  }
  if (unwanted) CloseDoorBehind();
  queues_->Announce(worker);
  return true;
}

// Of all classes: `wanted`: what calls that wait need; else all.
void Scheduler::ServeAll(const Group* waiting, bool wanted) {
  for (const auto& scheduling : classes_) {
    if (scheduling->ready_count == 0) continue;
    if (waiting != nullptr && scheduling->need.Overlaps(waiting->total)) continue;
    if (!wanted && !claims_.empty() && IsHeldBack(*scheduling)) continue;
    while (scheduling->ready_count > 0) {
      if (wanted && Next(*scheduling)->wanted == 0) break;
      if (!Serve(*scheduling)) break;
    }
  }
}

void Scheduler::Run(const Group* waiting) {
  stranded_ = nullptr;
  no_nearer_at_ = 0;
  if (ready_ == 0) return;
  if (wanted_ready_ > 0) ServeAll(waiting, /*wanted=*/true);
  FindClaims();
  ServeAll(waiting, /*wanted=*/false);
}

Task* Scheduler::WithoutWorker() const {
  if (pool_size_ > blocked_ || workers_starting_ > 0) return nullptr;
  for (const auto& scheduling : classes_) {
    if (Task* const task = Front(*scheduling)) return task;
  }
  return nullptr;
}

Task* Scheduler::Stranded() { return std::exchange(stranded_, nullptr); }

}  // namespace menger
