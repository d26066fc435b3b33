#include "menger/runtime/node/reading_rooms.h"

#include <algorithm>
#include <utility>

#include "menger/runtime/node/scheduler.h"

namespace menger {
namespace {

constexpr std::int64_t kWaitMost = 5'000'000'000;  // Nanoseconds.

std::span<Object* const> ReadBy(const Task& task) {
  return {task.arguments.data(), task.references};
}

// In memory, or to be brought there; small values are in no such memory.
std::uint64_t BytesOf(const Object& object) {
  using Kind = ObjectValue::Kind;
  const Kind kind = object.value.kind;
  const bool is_large = kind == Kind::kShared || kind == Kind::kSpilled || kind == Kind::kRemote;
  return is_large ? object.value.extent.bytes : 0;
}

bool IsLarge(const Object* object) { return BytesOf(*object) > 0; }

}  // namespace

void ReadingRooms::Close(PeerIndex node) {
  std::erase_if(visits_, [node](const auto& visit) { return visit.second.node == node; });
  rooms_.erase(node);
}

void ReadingRooms::Share(PeerIndex node, std::uint32_t sharers) {
  rooms_.at(node).sharers = std::max<std::uint32_t>(sharers, 1);
}

// ---- Who may enter.

bool ReadingRooms::MayEnter(PeerIndex node, const Task& task, std::int64_t now) {
  const auto found = rooms_.find(node);
  if (found == rooms_.end()) return true;
  Room& room = found->second;
  const bool waited = room.waiting_since != 0 && room.waiting == task.header().task;
  const bool full = IsFullFor(node, room, task, room.waiting_since != 0 && !waited);
  if (full && room.waiting_since == 0) {
    room.waiting_since = now;
    room.waiting = task.header().task;
  }
  const bool waits = full && now - room.waiting_since < kWaitMost;
  if (!waits && (full || waited)) room.waiting_since = 0;
  return !waits;
}

// Never for what reads nothing else, or where all who read wait.
bool ReadingRooms::IsFullFor(PeerIndex node, const Room& room, const Task& task,
                             bool others_first) const {
  if (room.bytes_max == 0 || room.read.empty()) return false;
  std::uint64_t more = 0;
  for (const Object* const object : ReadBy(task)) {
    if (!room.read.contains(object)) more += BytesOf(*object);
  }
  if (more == 0 || (!others_first && room.bytes + more <= room.bytes_max / room.sharers))
    return false;
  const auto visit = visits_.find(&task);
  const bool is_in = visit != visits_.end() && visit->second.node == node;
  return !is_in && SomebodyGoesOn(node);
}

bool ReadingRooms::SomebodyGoesOn(PeerIndex node) const {
  return std::ranges::any_of(visits_, [this, node](const auto& entry) {
    const auto& [task, visit] = entry;
    if (visit.node != node) return false;
    const bool works = task->worker != nullptr && !task->worker->blocked();
    return works || AwaitsValues(node, *task) || !visit.fetches.empty();
  });
}

// An actor's call that has all may be one that comes after the one that waits for room.
bool ReadingRooms::AwaitsValues(PeerIndex node, const Task& task) const {
  if (!task.fetching || task.actor == nullptr) return task.fetching;
  return std::ranges::any_of(
      ReadBy(task), [this, node](const Object* object) { return !places_->IsAt(*object, node); });
}

std::optional<std::int64_t> ReadingRooms::NextEntry(std::int64_t now) const {
  std::optional<std::int64_t> next;
  for (const auto& [node, room] : rooms_) {
    // Whoever waited may have been cancelled since.
    const std::int64_t at = room.waiting_since + kWaitMost;
    if (room.waiting_since != 0 && at > now) next = std::min(next.value_or(at), at);
  }
  return next;
}

// ---- Who is in.

void ReadingRooms::Add(Room& room, std::span<Object* const> values, Values& added) {
  for (const Object* const value : values) {
    if (!IsLarge(value)) continue;
    Read& read = room.read[value];
    if (read.calls++ == 0) room.bytes += read.bytes = BytesOf(*value);
    added.push_back(value);
  }
}

void ReadingRooms::Remove(Room& room, Values& values) {
  for (const Object* const value : std::exchange(values, {})) {
    const auto found = room.read.find(value);
    if (--found->second.calls > 0) continue;
    room.bytes -= found->second.bytes;
    room.read.erase(found);
  }
}

void ReadingRooms::Admit(PeerIndex node, const Task& task) {
  if (std::ranges::none_of(ReadBy(task), IsLarge)) return;
  for (auto& [place, room] : rooms_) {
    if (room.waiting == task.header().task) room.waiting_since = 0;
  }
  const auto room = rooms_.find(node);
  if (room == rooms_.end()) return Leave(task);
  Visit& visit = visits_[&task];
  if (visit.node == node && !visit.reads.empty()) return;
  Empty(visit);
  visit.node = node;
  Add(room->second, ReadBy(task), visit.reads);
}

void ReadingRooms::Leave(const Task& task) {
  if (visits_.empty()) return;
  const auto visit = visits_.find(&task);
  if (visit == visits_.end()) return;
  Empty(visit->second);
  visits_.erase(visit);
}

void ReadingRooms::Empty(Visit& visit) {
  const auto room = rooms_.find(visit.node);
  if (room == rooms_.end()) return;
  Remove(room->second, visit.reads);
  Remove(room->second, visit.fetches);
}

void ReadingRooms::Fetch(PeerIndex node, const Task& task, std::span<Object* const> values) {
  const auto room = rooms_.find(node);
  if (room == rooms_.end() || std::ranges::none_of(values, IsLarge)) return;
  Visit& visit = visits_[&task];
  visit.node = node;
  Add(room->second, values, visit.fetches);
}

void ReadingRooms::StopFetching(const Task& task) {
  const auto visit = visits_.find(&task);
  if (visit == visits_.end() || visit->second.fetches.empty()) return;
  const auto room = rooms_.find(visit->second.node);
  Remove(room->second, visit->second.fetches);
  if (visit->second.reads.empty()) visits_.erase(visit);
}

}  // namespace menger
