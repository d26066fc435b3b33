#pragma once

#include <optional>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/runtime/cluster/cluster_access.h"
#include "menger/runtime/control/node_record.h"

namespace menger {

// What a node has said, or why it has said nothing (whole).
struct NodeAnswer {
  std::string text;
  std::optional<Error> failure;
};

// Asks all of them one question (LocalNode::Answer) at the same time, each at its own address: one
// answer a node, in their order. Whoever asks is none of the cluster, but has its token. Throws
// InvalidArgument for files of TLS that cannot be used.
std::vector<NodeAnswer> AskNodes(const ClusterAccess& access, const std::vector<NodeRecord>& nodes,
                                 const std::string& question, const Deadline& deadline);

}  // namespace menger
