#include <algorithm>
#include <utility>

#include "menger/runtime/calls/stream.h"
#include "menger/runtime/node/foreign_objects.h"
#include "menger/runtime/node/node_parts.h"

// The part of ForeignObjects that has to do with streams of another's actor: its owner has the
// stream (Streams), and takes the node of whoever called for its reader. Each item is told as it is
// yielded (kItem, and its value), and held at the reader's node until it is taken.
namespace menger {

// ---- The owner.

void ForeignObjects::TellItem(PeerIndex reader, TaskId call, std::uint64_t index, Object& item) {
  Peer& peer = *node_.peers.Find(reader);
  node_.objects.AddReferrer(peer.process, item);
  node_.peers.Tell(reader,
                   {.kind = PeerMessage::Kind::kItem, .kept = index, .object = ObjectId{call}});
  TellWhenReady(peer, item);
}

// ---- The reader's node.

void ForeignObjects::OpenStream(PeerIndex owner, ProcessIndex reader, const SpecHeader& header) {
  reads_[StreamEnd(header.task)] = {
      .call = header.task, .owner = owner, .reader = reader, .ahead = header.stream_ahead};
}

void ForeignObjects::ItemCame(const Peer& owner, const PeerMessage& message) {
  const TaskId call{message.object};
  const auto found = reads_.find(StreamEnd(call));
  const bool wanted = found != reads_.end() && found->second.owner == owner.index &&
                      found->second.came == message.kept && found->second.closed == 0;
  const ObjectId id = StreamItem(call, message.kept);
  if (!wanted) {  // The owner counts a reference.
    return node_.peers.Tell(owner.index,
                            {.kind = PeerMessage::Kind::kForget, .count = 1, .object = id});
  }
  Object& item = node_.objects.FindOrMake(id);
  node_.objects.Hold(item);
  if (!item.foreign) MakeForeign(item, {id, owner.node, owner.epoch});
  Record& record = *Find(item);
  ++record.owed;
  record.wanted = true;  // Its value comes without a question.
  ++found->second.came;
}

void ForeignObjects::Take(ProcessIndex reader, TaskId call, std::uint64_t count) {
  const auto found = reads_.find(StreamEnd(call));
  if (found == reads_.end() || found->second.reader != reader) return;
  Read& read = found->second;
  if (count >= kStreamLeft) {
    CloseStream(read, count);
    return node_.values.SpreadNews();
  }
  ReleaseItems(read, std::min(count, read.came));
  // As often as the owner tells the writer (Streams::Take).
  if (read.taken - read.told < (read.ahead + 7) / 8 && read.taken < read.came) return;
  read.told = read.taken;
  TellTaken(read, read.taken);
}

void ForeignObjects::ReleaseItems(Read& read, std::uint64_t end) {
  while (read.taken < end) {
    Object* const item = node_.objects.Find(StreamItem(read.call, read.taken++));
    if (item != nullptr) node_.objects.Release(*item);
  }
}

void ForeignObjects::TellTaken(const Read& read, std::uint64_t count) {
  node_.peers.Tell(
      read.owner,
      {.kind = PeerMessage::Kind::kTake, .bytes = count, .object = ObjectId{read.call}});
}

// Of a call that is not made yet the owner hears when it is.
void ForeignObjects::CloseStream(Read& read, std::uint64_t count) {
  ReleaseItems(read, read.came);
  const auto calls = calls_.find(read.owner);
  const bool is_made =
      calls == calls_.end() ||
      std::ranges::find(calls->second, read.call, &Call::task) == calls->second.end();
  read.closed = count;
  if (is_made) EndStream(read.call);
}

// Tells the owner that it is closed, if it is.
void ForeignObjects::EndStream(TaskId call) {
  const auto found = reads_.find(StreamEnd(call));
  if (found == reads_.end() || found->second.closed == 0) return;
  TellTaken(found->second, found->second.closed);
  if (found->second.end) --ends_held_;
  reads_.erase(found);
}

void ForeignObjects::CloseStreamsOf(ProcessIndex reader) {
  std::vector<Read*> reads;
  for (auto& [end, read] : reads_) {
    if (read.reader == reader && read.closed == 0) reads.push_back(&read);
  }
  for (Read* const read : reads) CloseStream(*read, kStreamDropped);
}

void ForeignObjects::DropStreamsOf(PeerIndex owner) {
  for (auto next = reads_.begin(); next != reads_.end();) {
    const auto entry = next++;
    if (entry->second.owner != owner) continue;
    ReleaseItems(entry->second, entry->second.came);
    if (entry->second.end) --ends_held_;
    reads_.erase(entry);
  }
}

// ---- The end of a stream, which comes after all of its items.

// The value of an item may come later than the end: others are to know first of what is in it.
bool ForeignObjects::HoldEnd(const Peer& owner, const PeerMessage& message) {
  const auto found = reads_.find(message.object);
  if (found == reads_.end() || found->second.owner != owner.index) return false;
  Read& read = found->second;
  if (!AwaitsItems(read)) return false;
  if (!read.end) ++ends_held_;
  read.end = message;
  return true;
}

bool ForeignObjects::AwaitsItems(const Read& read) const {
  for (std::uint64_t i = read.taken; i < read.came; ++i) {
    const Object* const item = node_.objects.Find(StreamItem(read.call, i));
    if (item != nullptr && item->state == Object::State::kPending) return true;
  }
  return false;
}

void ForeignObjects::TellEnds(Peer& owner) {
  for (auto next = reads_.begin(); ends_held_ > 0 && next != reads_.end();) {
    Read& read = (next++)->second;
    if (read.owner != owner.index || !read.end || AwaitsItems(read)) continue;
    --ends_held_;
    const PeerMessage end = *std::exchange(read.end, std::nullopt);
    ValueCame(owner, end);
  }
}

}  // namespace menger
