#include "menger/runtime/watching/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace menger {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The text was checked with the parser of prometheus_client 0.26.0 (Python).
TEST(MetricsTest, TheTextIsPrometheus) {
  MetricsText text;
  text.Family("menger_events_total", MetricKind::kCounter, "Events,\nby \"kind\" \\ name.");
  text.Sample({{"kind", "a"}, {"name", "f(\"x\")\n\\"}}, 1234567);
  text.Sample({{"kind", "b"}}, 0);
  text.Family("menger_used_bytes", MetricKind::kGauge, "Memory.");
  text.Sample({}, 0.5);
  text.Sample({{"what", "more"}}, std::numeric_limits<double>::infinity());
  EXPECT_EQ(text.text(),
            R"(# HELP menger_events_total Events,\nby "kind" \\ name.
# TYPE menger_events_total counter
menger_events_total{kind="a",name="f(\"x\")\n\\"} 1234567
menger_events_total{kind="b"} 0
# HELP menger_used_bytes Memory.
# TYPE menger_used_bytes gauge
menger_used_bytes 0.5
menger_used_bytes{what="more"} +Inf
)");
}

TEST(MetricsTest, BucketsOfAHistogramAreCumulative) {
  DurationHistogram durations;
  for (const std::int64_t nanoseconds : {0, 1, 1024, 1025, 4096}) durations.Add(nanoseconds);
  durations.Add(std::int64_t{100'000'000'000});
  MetricsText text;
  text.Family("menger_task_seconds", MetricKind::kHistogram, "Time.");
  text.Sample({{"node", "1"}}, durations);
  EXPECT_THAT(text.text(), StartsWith(R"(# HELP menger_task_seconds Time.
# TYPE menger_task_seconds histogram
menger_task_seconds_bucket{node="1",le="1.024e-06"} 3
menger_task_seconds_bucket{node="1",le="2.048e-06"} 4
menger_task_seconds_bucket{node="1",le="4.096e-06"} 5
menger_task_seconds_bucket{node="1",le="8.192e-06"} 5
)"));
  EXPECT_THAT(text.text(), HasSubstr(R"(menger_task_seconds_bucket{node="1",le="68.719476736"} 5
menger_task_seconds_bucket{node="1",le="+Inf"} 6
menger_task_seconds_sum{node="1"} 100.000006147
menger_task_seconds_count{node="1"} 6
)"));
}

}  // namespace
}  // namespace menger
