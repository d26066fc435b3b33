#include <algorithm>
#include <string>
#include <utility>

#include "menger/base/error.h"
#include "menger/runtime/node/scheduler.h"

// The part of the scheduler that deals with workers that one node lends to another.
namespace menger {

bool Scheduler::IsElsewhere(const Resources& need) const {
  return std::any_of(elsewhere_.begin(), elsewhere_.end(),
                     [&need](const Resources& total) { return total.Contains(need); });
}

void Scheduler::CheckElsewhere(const Resources& need, bool was_elsewhere) const {
  if (IsElsewhere(need)) return;
  const std::string missing = need.MissingFrom(total_);
  if (was_elsewhere) throw Unavailable("the node that had it is gone: {}", missing);
  throw InvalidArgument("no worker can ever run this call: {}", missing);
}

void Scheduler::SetElsewhere(std::vector<Resources> elsewhere) {
  elsewhere_ = std::move(elsewhere);
  for (const auto& scheduling : classes_) {
    scheduling->was_elsewhere |= scheduling->foreign && IsElsewhere(scheduling->need);
  }
}

void Scheduler::AddBorrowed(Worker& worker, SchedulingClass& scheduling) {
  worker.serving = &scheduling;
  scheduling.workers.push_back(&worker);
}

void Scheduler::Keep(Worker& worker) {
  std::erase(worker.serving->workers, &worker);
  worker.dedicated = true;
}

void Scheduler::AskBack(Worker& worker) {
  worker.asked_back = true;
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
  idle_.push_back(&worker);
}

}  // namespace menger
