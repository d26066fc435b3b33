#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "menger/runtime/watching/metrics.h"

namespace menger {

class EndedLives;
class MemberLoop;
class NodeStreams;

// What a process of a cluster counts of the others.
struct ClusterCounts {
  std::size_t nodes = 0;    // Members that do calls, itself among them,
  std::size_t drivers = 0;  // and those whose calls they do.
  std::size_t streams = 0;  // To others, that are open,
  std::uint64_t streams_lost =
      0;                    // and that have broken: each was opened again, or its end given up.
  DurationHistogram store;  // Of the control store: until it has answered.
  std::map<std::string, std::uint64_t> ends;  // Of members, by their causes.
};

ClusterCounts CountsOf(const NodeStreams& streams, const MemberLoop& members,
                       const EndedLives& ended);

// menger_cluster_members, menger_cluster_streams, ...
void AddMetrics(const ClusterCounts& counts, MetricsText& text);

}  // namespace menger
