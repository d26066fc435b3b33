#pragma once

#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/cluster/cluster_access.h"
#include "menger/runtime/control/node_record.h"

namespace menger {

// A member as the control store has it.
struct ListedNode {
  NodeRecord node;
  bool expired = false;  // Its lease is over: it is dead, or cut off.
};

// Who is there, asked by a process that is none of them. Throws Unavailable and DeadlineExceeded
// where the head cannot be reached, FailedPrecondition where it has another token.
std::vector<ListedNode> ListNodes(const ClusterAccess& access, const Deadline& deadline);

}  // namespace menger
