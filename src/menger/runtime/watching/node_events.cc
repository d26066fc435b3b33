#include "menger/runtime/watching/node_events.h"

#include <algorithm>
#include <bit>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kNameBytesMax = 200;
constexpr std::uint16_t kOther = UINT16_MAX;

}  // namespace

const char* NodeEventKindName(NodeEventKind kind) {
  static constexpr const char* kNames[kNodeEventKinds] = {
      "task_started",  "task_ended",      "task_failed",        "task_lost",   "worker_started",
      "worker_died",   "object_spilled",  "object_restored",    "object_lost", "object_rebuilt",
      "actor_started", "actor_restarted", "actor_checkpointed", "actor_ended"};
  return kNames[static_cast<std::size_t>(kind)];
}

EventRing::EventRing(std::size_t capacity)
    : capacity_(capacity), events_(std::make_unique_for_overwrite<NodeEvent[]>(capacity)) {
  if (!std::has_single_bit(capacity)) {
    throw InvalidArgument("a node is to keep {} events; it must be a power of two", capacity);
  }
}

std::uint16_t NodeEvents::Intern(std::string_view name) {
  name = name.substr(0, kNameBytesMax);
  if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
  if (names_.size() >= kOther) {
    names_.resize(std::size_t{kOther} + 1, "(other)");
    return kOther;
  }
  const auto number = static_cast<std::uint16_t>(names_.size());
  numbers_.emplace(name, number);
  names_.emplace_back(name);
  return number;
}

std::uint64_t EventRing::Copy(std::uint64_t from, std::size_t limit,
                              std::vector<NodeEvent>& events) const {
  from = std::max(from, written_ - std::min<std::uint64_t>(written_, capacity_));
  while (from < written_ && limit-- > 0) events.push_back(events_[from++ & (capacity_ - 1)]);
  return from;
}

void AddMetrics(const NodeEvents& events, MetricsText& text) {
  text.Family("menger_node_events_total", MetricKind::kCounter, "What has happened on this node.");
  for (int i = 0; i < kNodeEventKinds; ++i) {
    const auto kind = static_cast<NodeEventKind>(i);
    if (kind == NodeEventKind::kTaskStarted) continue;
    text.Sample({{"event", NodeEventKindName(kind)}}, static_cast<double>(events.count(kind)));
  }
  text.Family("menger_task_seconds", MetricKind::kHistogram,
              "How long calls ran, whether they ended, failed or were lost.");
  text.Sample({}, events.task_durations());
}

}  // namespace menger
