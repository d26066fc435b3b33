#pragma once

#include <span>

#include "menger/runtime/node/circles.h"
#include "menger/runtime/node/node_records.h"

namespace menger {

// Calls that wait for others, and those that cannot go on.
class Waits {
 public:
  explicit Waits(NodeParts& node);

  // As NodeMachine's.
  void Block(Worker& worker, std::span<Object* const> objects, bool timed);
  void Unblock(Worker& worker);

  // A call that others wait for and no worker can be had for: all that there may be wait.
  void FailStranded();
  // Calls that wait for one another. Said once, so that somebody can find it.
  void LookForCircle();

 private:
  void BeginBlock(Worker& worker, Task& call);
  void NoteFetches(const Worker& worker, const Task& call, std::span<Object* const> objects);
  std::string WaitersOf(const Task& task) const;

  NodeParts& node_;
  Circles circles_;
};

}  // namespace menger
