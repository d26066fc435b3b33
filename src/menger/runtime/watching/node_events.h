#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "menger/runtime/watching/metrics.h"

namespace menger {

enum class NodeEventKind : std::uint8_t {
  kTaskStarted,  // Only of what still runs, made when somebody asks: an end knows its beginning.
  kTaskEnded,
  kTaskFailed,  // It threw.
  kTaskLost,    // Its worker died; it may be run again.
  kWorkerStarted,
  kWorkerDied,
  kObjectSpilled,
  kObjectRestored,
  kObjectLost,
  kObjectRebuilt,
  kActorStarted,
  kActorRestarted,
  kActorCheckpointed,
  kActorEnded,  // It died, or nobody needs it any longer.
};
inline constexpr int kNodeEventKinds = 14;
const char* NodeEventKindName(NodeEventKind kind);  // "task_started", ...
inline bool EndsTask(NodeEventKind kind) {
  return kind >= NodeEventKind::kTaskEnded && kind <= NodeEventKind::kTaskLost;
}

// Plain bytes.
struct NodeEvent {
  std::int64_t time = 0;           // In MonotonicNanoseconds; of what took time: its end.
  std::int64_t duration = 0;       // Nanoseconds.
  std::uint64_t subject = 0;       // `low` of the id of the task, object or actor,
  std::uint64_t subject_high = 0;  // and `high`.
  std::uint32_t worker = 0;        // 0: the node itself.
  std::uint16_t name = 0;          // See Intern: of the function, the cause of a death, or of
                                   // another node's worker that node's id.
  NodeEventKind kind = NodeEventKind::kTaskStarted;
  std::uint8_t attempt = 0;  // Of a task: how often it had been run before; 255: or more.
};
static_assert(sizeof(NodeEvent) == 40);

// The last `capacity` events of those that were added.
class EventRing {
 public:
  // A power of two; 40 bytes each, of which those pages are used that events have reached. Throws
  // InvalidArgument for another.
  explicit EventRing(std::size_t capacity);

  void Add(const NodeEvent& event) { events_[written_++ & (capacity_ - 1)] = event; }

  std::uint64_t written() const { return written_; }

  // Appends up to `limit` events from number `from` (they count from 0) on, less those that are
  // overwritten, and returns the number of the next. So a reader need not hold the mutex for all.
  std::uint64_t Copy(std::uint64_t from, std::size_t limit, std::vector<NodeEvent>& events) const;

 private:
  std::size_t capacity_;
  std::unique_ptr<NodeEvent[]> events_;  // Event n at n % capacity_.
  std::uint64_t written_ = 0;
};

// What has happened on a node: the ends of the last runs of tasks and, so that these do not push
// out what is rare, the last of all other events by themselves; and counts of all. Always on: an
// event costs a few nanoseconds and no allocation. Not for several threads at once: the node's
// mutex guards it.
class NodeEvents {
 public:
  explicit NodeEvents(std::size_t tasks_kept = std::size_t{1} << 18,
                      std::size_t others_kept = std::size_t{1} << 14)
      : tasks_(tasks_kept), others_(others_kept) {
    Intern("");
  }

  // A number for the name, the same each time. Not for every event: callers keep the number. Names
  // are cut at 200 bytes; after 65,534 of them all others are "(other)". 0 is the empty name.
  std::uint16_t Intern(std::string_view name);

  void Add(const NodeEvent& event) {
    ++counts_[static_cast<std::size_t>(event.kind)];
    if (!EndsTask(event.kind)) return others_.Add(event);
    tasks_.Add(event);
    task_durations_.Add(event.duration);
  }

  const EventRing& tasks() const { return tasks_; }
  const EventRing& others() const { return others_; }
  std::uint64_t count(NodeEventKind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  const DurationHistogram& task_durations() const { return task_durations_; }
  const std::vector<std::string>& names() const { return names_; }  // By number.

 private:
  struct TextHash {
    using is_transparent = void;  // NOLINT: the library looks for this name.
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  EventRing tasks_;
  EventRing others_;
  std::array<std::uint64_t, kNodeEventKinds> counts_{};
  DurationHistogram task_durations_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint16_t, TextHash, std::equal_to<>> numbers_;
};

// menger_node_events_total by kind, and menger_task_seconds.
void AddMetrics(const NodeEvents& events, MetricsText& text);

}  // namespace menger
