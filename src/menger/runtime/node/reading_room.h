#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "menger/runtime/node/node_records.h"

namespace menger {

// How much of a node's memory the calls read that were given to its own workers: what they read may
// not leave it, and what they give needs room there, too. So no further call is given to a worker
// while more than a part of the memory would be read, unless all who read wait for something, which
// may be that call.
class ReadingRoom {
 public:
  // Beyond that it is full; 0: never. (Ray's max_task_args_memory_fraction.)
  explicit ReadingRoom(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // There is no room for what the call would read beyond what others do, or `others_first`: another
  // waits for room. Never for what reads nothing else, or where all who read wait.
  bool IsFullFor(const Task& task, bool others_first) const;

  // The call reads its arguments, which stay until it has left. Again changes nothing.
  void Admit(const Task& task);
  void Leave(const Task& task);

  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Read {
    std::uint64_t bytes = 0;
    std::uint32_t calls = 0;
  };

  bool SomebodyGoesOn() const;

  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::unordered_map<const Object*, Read> read_;
  // Those that read larger values, and which.
  std::unordered_map<const Task*, std::vector<const Object*>> calls_;
};

}  // namespace menger
