#include "menger/replay/insert_streams.h"

#include <algorithm>
#include <iterator>

namespace menger {

std::uint64_t InsertStreams::LastOf(std::uint64_t stream) const {
  const auto found = by_stream_.find(stream);
  return found == by_stream_.end() ? 0 : found->second->end.last;
}

void InsertStreams::Advance(std::uint64_t stream, std::uint64_t last) {
  const auto found = by_stream_.find(stream);
  if (found == by_stream_.end()) {
    entries_.push_back({.end = {.stream = stream, .last = last}, .is_changed = true});
    by_stream_.emplace(stream, std::prev(entries_.end()));
    ForgetOldest(max_);
    return;
  }
  Entry& entry = *found->second;
  entry.end.last = std::max(entry.end.last, last);
  entry.is_changed = true;
  entries_.splice(entries_.end(), entries_, found->second);
}

void InsertStreams::Forget(std::uint64_t stream) {
  const auto found = by_stream_.find(stream);
  if (found == by_stream_.end()) return;
  entries_.erase(found->second);
  by_stream_.erase(found);
  if (watched_) forgotten_.push_back(stream);
}

void InsertStreams::ForgetOldest(std::size_t left) {
  while (entries_.size() > left) {
    by_stream_.erase(entries_.front().end.stream);
    entries_.pop_front();
  }
}

void InsertStreams::CopyTo(std::vector<InsertStreamEnd>& ends) const {
  ends.clear();
  for (const Entry& entry : entries_) ends.push_back(entry.end);
}

void InsertStreams::Restore(std::span<const InsertStreamEnd> ends) {
  for (const InsertStreamEnd& end : ends) Advance(end.stream, end.last);
}

void InsertStreams::Watch(bool on) {
  watched_ = on;
  forgotten_.clear();
  for (Entry& entry : entries_) entry.is_changed = false;
}

void InsertStreams::TakeChanges(std::vector<InsertStreamEnd>& ends) {
  for (const std::uint64_t stream : forgotten_) ends.push_back({.stream = stream, .last = 0});
  forgotten_.clear();
  auto first = entries_.end();
  while (first != entries_.begin() && std::prev(first)->is_changed) --first;
  for (; first != entries_.end(); ++first) {
    ends.push_back(first->end);
    first->is_changed = false;
  }
}

// One that was forgotten and then inserted comes twice.
void InsertStreams::Apply(std::span<const InsertStreamEnd> ends, std::size_t left) {
  for (const InsertStreamEnd& end : ends) {
    if (end.last == 0) {
      Forget(end.stream);
      continue;
    }
    Advance(end.stream, end.last);
  }
  ForgetOldest(left);
}

}  // namespace menger
