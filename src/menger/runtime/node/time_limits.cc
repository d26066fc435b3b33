#include "menger/runtime/node/time_limits.h"

#include <algorithm>

namespace menger {
namespace {

// Limits may be as long as anybody likes.
std::int64_t After(std::int64_t now, std::int64_t nanoseconds) {
  const std::int64_t last = std::numeric_limits<std::int64_t>::max();
  return nanoseconds > last - now ? last : now + nanoseconds;
}

// A construction takes as long as it takes, and so does what an actor does to become what it was.
bool MayTakeLong(const Task& task) {
  const CallKind kind = task.header().kind;
  return (kind != CallKind::kFunction && kind != CallKind::kMethod) || task.logged;
}

}  // namespace

void TimeLimits::Add(std::int64_t limit, std::int64_t now) {
  if (limit == 0) return;
  if (count_++ == 0) due_ = kNever;
  shortest_ = std::min(shortest_, limit);
  due_ = std::min(due_, After(now, shortest_));
}

void TimeLimits::Remove(std::int64_t limit) {
  if (limit != 0 && --count_ == 0) shortest_ = kNever;
}

std::optional<std::int64_t> TimeLimits::due() const {
  return count_ > 0 ? std::optional(due_) : std::nullopt;
}

std::vector<WorkerIndex> TimeLimits::Look(const WorkersByIndex& workers, std::int64_t now) {
  due_ = After(now, shortest_);
  std::vector<WorkerIndex> over;
  for (const auto& [index, worker] : workers) {
    const std::optional<std::int64_t> end = EndOf(*worker);
    if (!end) continue;
    if (now >= *end) {
      over.push_back(index);
    } else {
      due_ = std::min(due_, *end);
    }
  }
  return over;
}

std::optional<std::int64_t> TimeLimits::EndOf(const Worker& worker) {
  const Task* const task = worker.outstanding.front();
  if (task == nullptr || task->header().time_limit == 0 || task->abandoned()) return std::nullopt;
  if (MayTakeLong(*task)) return std::nullopt;
  const std::int64_t end = After(task->offered_at, task->header().time_limit);
  return end != kNever ? std::optional(end) : std::nullopt;
}

}  // namespace menger
