#pragma once

#include <cstdint>

#include "menger/runtime/node/node_records.h"

namespace menger {

// Calls and actors that wait for what this node's own actors have, which keep it for as long as
// they live. That may be meant; where it is not, the program would wait without a word.
//
// Part of the node's state machine: no I/O, no lock, no clock.
class Shortage {
 public:
  explicit Shortage(NodeParts& node) : node_(node) {}

  // Says it of each class once, when it has lasted for a while. Looks seldom.
  void Look();

 private:
  bool ActorsHave(const SchedulingClass& scheduling) const;
  Resources LeftAt(PeerIndex node, const Resources& total) const;

  NodeParts& node_;
  std::int64_t look_at_ = 0;
};

}  // namespace menger
