#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "menger/base/files.h"
#include "menger/runtime/driver/spiller.h"
#include "menger/runtime/memory/value_store.h"
#include "menger/runtime/net/node_letter.h"
#include "menger/runtime/node/node_machine.h"

namespace menger {

// Values that nodes of one machine show each other: who wants one is told where it lies, and reads
// it there, instead of having it brought.
//
// What a node shows stays where it lies until the other has said that he needs it no longer, or his
// process has ended: one that was given up may go on reading. It is half of the node's memory at
// most, and where there is no room it asks for some back.
//
// What a node is shown it has as if it were its own, in memory that it cannot write and that counts
// for nothing in its store. It lasts longer than the process whose memory it is. But that goes as a
// whole, so then, or when it is asked to, the node takes what it does not read into its own.
//
// Under the node's lock.
class ShownValues {
 public:
  struct Hooks {
    std::function<void(PeerIndex to, NodeLetter letter)> send;
    // Room for a value that is to come, as Spiller::Request has it.
    std::function<void(std::uint32_t segment, std::uint64_t bytes, Spiller::Taken taken)> ask_room;
  };
  // `segment`: where values are taken to.
  ShownValues(NodeMachine& machine, ValueStore& store, std::uint32_t segment, Hooks hooks);

  // ---- What this node shows.
  // Makes the wish of a peer's process the answer, by which it sees the value, if it may.
  bool Show(PeerIndex to, Object& object, NodeLetter& wish);
  void Seen(PeerIndex by, std::uint64_t name);
  // Nobody here needs a value any longer. True if others still see it: then its memory is freed
  // once they do not.
  bool KeepFreed(const SharedExtent& extent);
  // Others shall need less of it: so many bytes.
  void ShowLess(std::uint64_t bytes);
  bool shows_any() const { return !shown_.empty(); }

  // ---- What it is shown.
  // Where it lies; a Seen is said of it when that is freed. Throws Unavailable and InvalidArgument
  // where this process cannot see it, DataLoss where nothing can lie.
  SharedExtent See(PeerIndex from, const NodeLetter& letter);
  void NeedLess(PeerIndex from, std::uint64_t name);
  // What nobody reads here is not needed any longer: this node's life ends.
  void SayFarewell();

  // ----
  void PeerGone(PeerIndex peer);
  // What follows from ends, a second later at the latest.
  void Work(std::int64_t now);

 private:
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // Segment and offset.
  // It is read, so it is not moved, but not held: who sees it has a copy of what its owner may
  // free.
  struct Showing {
    Object* object = nullptr;  // Null once it is freed.
    PeerIndex to = 0;
    SharedExtent extent;
    std::int64_t asked_at = 0;
  };
  // A process that was shown something and is no peer any longer.
  struct Stranger {
    FileDescriptor process;
    std::vector<std::uint64_t> shown;
  };
  // A segment of another node: what is seen there, by offset, as what he calls it.
  struct Segment {
    PeerIndex of = 0;  // 0: he is gone.
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::multimap<std::uint64_t, std::uint64_t> seen;
  };

  static Place PlaceOf(const SharedExtent& extent) { return {extent.segment, extent.offset}; }
  static std::uint64_t OwnBytes(const SharedExtent& extent) {
    return extent.is_shown() ? 0 : extent.bytes;
  }
  bool MayShow(PeerIndex to, std::uint32_t process, std::uint64_t bytes);
  void Hide(std::uint64_t name);
  std::uint32_t SegmentOf(PeerIndex from, const SegmentPlace& place);
  void Freed(const SharedExtent& extent);
  void DropUnseen(std::map<std::uint32_t, Segment>::iterator segment);
  void TakeHome();
  void TakeHome(Object& object);
  void CameHome(Object& object, const SharedExtent* room);

  NodeMachine& machine_;
  ValueStore& store_;
  const std::uint32_t segment_;
  const Hooks hooks_;

  std::map<std::uint64_t, Showing> shown_;      // By name: the oldest first.
  std::multimap<Place, std::uint64_t> places_;  // Their names.
  std::uint64_t last_name_ = 0;
  std::uint64_t shown_bytes_ = 0;
  std::map<PeerIndex, FileDescriptor> processes_;  // Of peers: readable once it has ended.
  std::vector<Stranger> strangers_;
  std::int64_t now_ = 0;

  std::map<std::uint32_t, Segment> segments_;
  std::set<Place> unwanted_;  // Its node would rather not show it.
  std::set<const Object*> coming_home_;
  std::int64_t looks_at_ = 0;     // The next time, at those and at segments of who is gone.
  std::int64_t looks_after_ = 0;  // So long after the last time.
};

}  // namespace menger
