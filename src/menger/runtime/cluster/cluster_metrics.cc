#include "menger/runtime/cluster/cluster_metrics.h"

namespace menger {

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
