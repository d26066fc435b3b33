#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "menger/runtime/node/node_records.h"

namespace menger {

class ValuePlaces;

// How much of each node's memory calls read there: what they read may not leave it, and what they
// give needs room there, too. So no further call is given to a worker while more than a part of its
// node's memory would be read, unless all who read there wait for something, which may be that
// call. Who waits for room is not passed by others that read anything, so that he gets it; and
// waits for 5 s at the most, for who reads may poll for what this call gives.
//
// Of other nodes only what this node's calls read there is known, and how many nodes' calls do.
class ReadingRooms {
 public:
  explicit ReadingRooms(const ValuePlaces& places) : places_(&places) {}

  // Of so much memory calls read a part at the most. (Ray's max_task_args_memory_fraction.)
  static std::uint64_t PartOf(std::uint64_t bytes) { return bytes / 10 * 7; }

  // Beyond so many bytes the room of that node is full; 0: it never is. 0 is this node.
  void Open(PeerIndex node, std::uint64_t bytes_max) { rooms_[node].bytes_max = bytes_max; }
  void Close(PeerIndex node);  // It is gone, with all who read there.
  // So many nodes' calls read there, and each has an equal part of the room.
  void Share(PeerIndex node, std::uint32_t sharers);

  // Whether the call may read its arguments there, `now`. If not, it waits from now on.
  bool MayEnter(PeerIndex node, const Task& task, std::int64_t now);

  // It does, and these stay until it has left. Again changes nothing; it leaves what it read
  // elsewhere.
  void Admit(PeerIndex node, const Task& task);
  void Leave(const Task& task);

  // The call, which somebody has, waits for values to come to its node, too; it goes on. As many as
  // it likes: it reads already.
  void Fetch(PeerIndex node, const Task& task, std::span<Object* const> values);
  void StopFetching(const Task& task);

  // When somebody may enter who waits now, whatever happens.
  std::optional<std::int64_t> NextEntry(std::int64_t now) const;

 private:
  struct Read {
    std::uint64_t bytes = 0;
    std::uint32_t calls = 0;
  };
  struct Room {
    std::uint64_t bytes_max = 0;
    std::uint32_t sharers = 1;
    std::uint64_t bytes = 0;
    std::unordered_map<const Object*, Read> read;
    TaskId waiting;                  // The call that waits until there is room,
    std::int64_t waiting_since = 0;  // since then; 0: none does.
  };
  using Values = std::vector<const Object*>;
  struct Visit {
    PeerIndex node = 0;
    Values reads;    // Larger values.
    Values fetches;  // Likewise.
  };

  bool IsFullFor(PeerIndex node, const Room& room, const Task& task, bool others_first) const;
  bool SomebodyGoesOn(PeerIndex node) const;
  bool AwaitsValues(PeerIndex node, const Task& task) const;
  static void Add(Room& room, std::span<Object* const> values, Values& added);
  static void Remove(Room& room, Values& values);
  void Empty(Visit& visit);

  const ValuePlaces* places_;
  std::map<PeerIndex, Room> rooms_;
  std::unordered_map<const Task*, Visit> visits_;  // Of those that read larger values.
};

}  // namespace menger
