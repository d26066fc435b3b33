#include "menger/runtime/node/circles.h"

#include <algorithm>

namespace menger {
namespace {

constexpr std::int64_t kLookEvery = 100'000'000;  // Nanoseconds.

}  // namespace

namespace {

// The worker that a call needs before it is done; null if that is not known.
const Worker* WorkerOf(const Task& task) {
  if (task.worker != nullptr) return task.worker;
  return task.actor != nullptr ? task.actor->worker : nullptr;
}

}  // namespace

// The workers whose calls must go on before that of this one can.
std::vector<const Worker*> Circles::AwaitedBy(const Worker& worker) const {
  std::vector<const Worker*> workers;
  std::vector<const Task*> more;
  std::set<const Task*> seen;
  const auto add = [&more](const Object* object) {
    const bool pending = object != nullptr && object->state == Object::State::kPending;
    if (pending && object->producer != nullptr) more.push_back(object->producer);
  };
  for (const ObjectId& id : worker.awaited) add(objects_->Find(id));
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

std::vector<const Task*> Circles::Look(std::int64_t now) {
  if (told_ || scheduler_->waits().empty() || now < look_at_) return {};
  look_at_ = now + kLookEvery;
  if (scheduler_->ready() > 0 || scheduler_->IsStarting()) return {};
  for (const auto& [index, worker] : *workers_) {
    const bool waits = worker->blocked() && !worker->timed;
    if (!worker->gone() && !worker->outstanding.empty() && !waits) return {};
  }
  told_ = true;
  std::set<const Worker*> done;
  for (const auto& [wait, worker] : scheduler_->waits()) {
    if (worker == nullptr || done.contains(worker)) continue;
    std::vector<const Task*> circle = From(*worker, done);
    if (!circle.empty()) return circle;
  }
  return {};
}

// Follows the waits from one worker, depth first, until they lead back to where they went by.
std::vector<const Task*> Circles::From(const Worker& first, std::set<const Worker*>& done) const {
  struct Step {
    const Worker* worker;
    std::vector<const Worker*> next;
  };
  std::vector<Step> way = {{&first, AwaitedBy(first)}};
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
      if (next->blocked() && !done.contains(next)) way.push_back({next, AwaitedBy(*next)});
      continue;
    }
    std::vector<const Task*> calls;
    for (auto step = before; step != way.end(); ++step) {
      calls.push_back(step->worker->outstanding.front());
    }
    return calls;
  }
  return {};
}

}  // namespace menger
