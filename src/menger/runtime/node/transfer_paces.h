#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "menger/runtime/values/object_value.h"

namespace menger {

// How long values take from node to node (0: this one), by what they took so far: each counts by
// its bytes, so that small ones, which the way to another node delays most, say little.
class TransferPaces {
 public:
  // Nanoseconds a byte. Of a way that nothing has come yet: what others took, those from and to
  // this node if it is one of them, and else those between others; 1 at first.
  double Of(PeerIndex from, PeerIndex to) const;
  void Note(PeerIndex from, PeerIndex to, std::uint64_t bytes, std::int64_t nanoseconds);
  void Forget(PeerIndex node);

 private:
  std::unordered_map<std::uint64_t, double> paces_;
  std::array<double, 2> of_all_{1, 1};  // Between others, and from and to this node.
};

}  // namespace menger
