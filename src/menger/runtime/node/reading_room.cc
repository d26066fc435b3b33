#include "menger/runtime/node/reading_room.h"

#include <algorithm>
#include <span>
#include <utility>

namespace menger {
namespace {

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

}  // namespace

bool ReadingRoom::IsFullFor(const Task& task, bool others_first) const {
  if (bytes_max_ == 0 || calls_.empty() || calls_.contains(&task)) return false;
  std::uint64_t more = 0;
  for (const Object* const object : ReadBy(task)) {
    if (!read_.contains(object)) more += BytesOf(*object);
  }
  return more > 0 && (others_first || bytes_ + more > bytes_max_) && SomebodyGoesOn();
}

bool ReadingRoom::SomebodyGoesOn() const {
  return std::ranges::any_of(calls_, [](const auto& call) {
    const Task& task = *call.first;
    return task.fetching || (task.worker != nullptr && !task.worker->blocked());
  });
}

void ReadingRoom::Admit(const Task& task) {
  const auto is_large = [](const Object* object) { return BytesOf(*object) > 0; };
  if (bytes_max_ == 0 || std::ranges::none_of(ReadBy(task), is_large)) return;
  if (calls_.contains(&task)) return;
  std::vector<const Object*> reads;
  for (const Object* const object : ReadBy(task)) {
    const std::uint64_t bytes = BytesOf(*object);
    if (bytes == 0) continue;
    Read& read = read_[object];
    if (read.calls++ == 0) bytes_ += read.bytes = bytes;
    reads.push_back(object);
  }
  calls_.emplace(&task, std::move(reads));
}

void ReadingRoom::Leave(const Task& task) {
  if (calls_.empty()) return;
  const auto call = calls_.find(&task);
  if (call == calls_.end()) return;
  for (const Object* const object : call->second) {
    const auto found = read_.find(object);
    if (--found->second.calls > 0) continue;
    bytes_ -= found->second.bytes;
    read_.erase(found);
  }
  calls_.erase(call);
}

}  // namespace menger
