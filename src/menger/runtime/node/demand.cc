#include "menger/runtime/node/demand.h"

#include <algorithm>

namespace menger {

std::uint64_t Demand::NumberOf(Task& call) {
  if (call.waits_as == 0) call.waits_as = ++last_of_calls_;
  return call.waits_as;
}

void Demand::Want(Task& first, std::uint64_t wait) {
  if (!scheduler_->waits().contains(wait)) return;  // It is over.
  std::vector<Task*> more = {&first};
  while (!more.empty()) {
    Task& task = *more.back();
    more.pop_back();
    const bool wanted = task.wanted >= wait && scheduler_->waits().contains(task.wanted);
    if (wanted || task.state == Task::State::kDone) continue;
    scheduler_->Want(task, wait);
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

void Demand::WantAlready(Task& task) {
  std::uint64_t latest = 0;
  for (const Object* const result : task.results) {
    for (const auto& [other, wait] : result->waiting) {
      if (other->wait == wait) latest = std::max(latest, other->wanted);
    }
    for (const Watch& watch : result->watches) {
      const auto found = workers_->find(watch.process);
      if (found == workers_->end() || !found->second->blocked()) continue;
      latest = std::max(latest, found->second->waits_as);
    }
  }
  if (latest > 0) Want(task, latest);
}

std::uint64_t Demand::BeginDriverWait(std::span<Object* const> objects) {
  if (driver_waits_.size() >= kDriverWaitsMax) return 0;
  const Object* needed = nullptr;
  for (const Object* const object : objects) {
    if (object->state != Object::State::kPending || object->producer == nullptr) continue;
    if (needed != nullptr && needed->producer != object->producer) return 0;
    needed = object;
  }
  if (needed == nullptr) return 0;
  driver_waits_.emplace(++last_driver_wait_, needed->id);
  scheduler_->BeginDriverWait(last_driver_wait_);
  return last_driver_wait_;
}

void Demand::EndDriverWait(std::uint64_t wait) {
  if (wait == 0) return;
  driver_waits_.erase(wait);
  scheduler_->EndDriverWait(wait);
}

void Demand::WantForDriver() {
  if (driver_waits_.empty() || !scheduler_->IsCrowded()) return;
  for (const auto& [wait, id] : driver_waits_) {
    const Object* const object = objects_->Find(id);
    if (object == nullptr || object->state != Object::State::kPending) continue;
    if (object->producer != nullptr) Want(*object->producer, wait);
  }
}

std::vector<const Task*> Demand::WaitersOf(const Task& task) const {
  std::vector<const Task*> calls = {&task};
  for (std::uint64_t wait = task.wanted; calls.size() <= scheduler_->waits().size();) {
    const auto found = scheduler_->waits().find(wait);
    if (found == scheduler_->waits().end() || found->second == nullptr) break;
    const Task* const call = found->second->outstanding.front();
    if (call == nullptr) break;
    calls.push_back(call);
    wait = call->wanted;
  }
  return calls;
}

}  // namespace menger
