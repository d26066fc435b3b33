#include "menger/training/collectors_needed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace menger {
namespace {

CollectorOptions CollectorOf(std::int64_t environments, std::int64_t workers = 1) {
  CollectorOptions collector;
  collector.environments = environments;
  collector.workers = {.value = workers, .is_auto = false};
  collector.kind = "serial";
  return collector;
}

int CountFor(const PipelineSpeeds& speeds, const CollectorOptions& collector, int cpus,
             bool in_processes = false) {
  return CollectorsFor(speeds, collector, /*learner_threads=*/1, cpus, in_processes).count;
}

TEST(CollectorsNeededTest, AsManyAsTheLearnerIsFasterWhereCpusAreLeft) {
  const PipelineSpeeds busy{.collecting = 4e-3, .busy = 1, .learning = 1e-3};
  EXPECT_EQ(CountFor(busy, CollectorOf(64), /*cpus=*/2), 1);
  EXPECT_EQ(CountFor(busy, CollectorOf(64), /*cpus=*/3), 2);
  EXPECT_EQ(CountFor(busy, CollectorOf(64), /*cpus=*/64), 4);
}

TEST(CollectorsNeededTest, ThoseThatWaitNeedFewCpus) {
  const PipelineSpeeds waiting{.collecting = 40e-3, .busy = 0.1, .learning = 1e-3};
  EXPECT_EQ(CountFor(waiting, CollectorOf(64), /*cpus=*/2), 8);  // Of ten, what shares 64.
  // But the CPUs of other processes were not seen.
  EXPECT_EQ(CountFor(waiting, CollectorOf(64), /*cpus=*/2, /*in_processes=*/true), 1);
}

TEST(CollectorsNeededTest, SharesAreEqualAndFitTheirWorkersAndGroups) {
  const PipelineSpeeds waiting{.collecting = 1, .busy = 0.05, .learning = 1e-3};
  EXPECT_EQ(CountFor(waiting, CollectorOf(7), /*cpus=*/16), 7);
  EXPECT_EQ(CountFor(waiting, CollectorOf(12, /*workers=*/4), /*cpus=*/64), 3);
  CollectorOptions alternating = CollectorOf(12);
  alternating.kind = "alternating";
  EXPECT_EQ(CountFor(waiting, alternating, /*cpus=*/64), 6);
}

TEST(CollectorsNeededTest, WhereNothingCouldBeLearnedOneIsTakenAndTheReasonSaid) {
  const CollectorsNeeded needed = CollectorsFor({.collecting = 1e-3}, CollectorOf(8), 1, 8, false);
  EXPECT_EQ(needed.count, 1);
  EXPECT_THAT(needed.reason, testing::HasSubstr("no batch to learn from"));
}

}  // namespace
}  // namespace menger
