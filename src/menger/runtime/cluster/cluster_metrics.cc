#include "menger/runtime/cluster/cluster_metrics.h"

#include "menger/runtime/cluster/ended_lives.h"
#include "menger/runtime/cluster/member_loop.h"
#include "menger/runtime/cluster/node_streams.h"

namespace menger {

ClusterCounts CountsOf(const NodeStreams& streams, const MemberLoop& members,
                       const EndedLives& ended) {
  ClusterCounts counts{.streams = streams.connected(),
                       .streams_lost = streams.lost(),
                       .store = members.StoreTimes(),
                       .ends = ended.counts()};
  for (const NodeRecord& node : members.Nodes()) {
    if (ended.Has({.node = node.id, .epoch = node.epoch})) continue;
    ++(node.job != 0 ? counts.drivers : counts.nodes);
  }
  return counts;
}

void AddMetrics(const ClusterCounts& counts, MetricsText& text) {
  text.Family("menger_cluster_members", MetricKind::kGauge, "Who is alive, as this one knows.");
  text.Sample({{"role", "node"}}, static_cast<double>(counts.nodes));
  text.Sample({{"role", "driver"}}, static_cast<double>(counts.drivers));
  text.Family("menger_cluster_streams", MetricKind::kGauge, "Members with an open stream to this.");
  text.Sample({}, static_cast<double>(counts.streams));
  text.Family("menger_cluster_streams_lost_total", MetricKind::kCounter,
              "Streams that broke: each was opened again, unless the other end was gone.");
  text.Sample({}, static_cast<double>(counts.streams_lost));
  text.Family("menger_cluster_store_seconds", MetricKind::kHistogram,
              "Until the control store had answered this process.");
  text.Sample({}, counts.store);
  text.Family("menger_cluster_ends_total", MetricKind::kCounter, "Members that have ended.");
  for (const auto& [cause, count] : counts.ends) {
    text.Sample({{"cause", cause}}, static_cast<double>(count));
  }
}

}  // namespace menger
