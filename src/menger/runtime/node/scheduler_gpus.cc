#include <algorithm>

#include "menger/runtime/node/scheduler.h"

// The part of the scheduler that keeps processes which may have seen GPUs apart from others.
namespace menger {

// A worker of the pool that serves no class and may serve this one; or null. For a class with GPUs
// one is spent where that makes room for a process that has done nothing.
Worker* Scheduler::IdleFor(const SchedulingClass& scheduling) {
  if (idle_.empty()) return nullptr;
  if (gpu_classes_ == 0 || idle_.back()->thread) return idle_.back();
  const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](const Worker* worker) {
    return worker->used != scheduling.gpus;
  });
  if (found != idle_.rend()) return *found;
  if (!scheduling.gpus) return AllWaitForGpus() ? nullptr : idle_.back();
  if (workers_starting_ > 0) return nullptr;
  if (!available_.Contains(scheduling.need)) ReclaimIdle();
  if (!available_.Contains(scheduling.need)) return nullptr;
  Worker& used = *idle_.back();
  idle_.pop_back();
  Spend(used);
  StartOneMore();
  return !idle_.empty() && !idle_.back()->used ? idle_.back() : nullptr;
}

// Whether calls with GPUs that can begin need all processes that have done nothing: others would
// take one after the other from them. Where it is crowded they may have to wait for long.
bool Scheduler::AllWaitForGpus() const {
  if (IsCrowded()) return false;
  const auto waiting = std::ranges::count_if(classes_, [this](const auto& scheduling) {
    return scheduling->gpus && scheduling->ready_count > 0 && !scheduling->foreign &&
           available_.Contains(scheduling->need) && !IsHeldBack(*scheduling);
  });
  return static_cast<std::size_t>(waiting) >= idle_.size();
}

// It serves no class any longer.
void Scheduler::Rest(Worker& worker) {
  if (worker.gpus && !worker.thread) return Spend(worker);
  idle_.push_back(&worker);
}

void Scheduler::Spend(Worker& worker) {
  std::erase(all_, &worker);
  --pool_size_;
  worker.dedicated = true;
  spent_.push_back(&worker);
}

Worker* Scheduler::TakeSpent() {
  if (spent_.empty()) return nullptr;
  Worker* const spent = spent_.back();
  spent_.pop_back();
  return spent;
}

}  // namespace menger
