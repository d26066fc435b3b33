#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "menger/base/error.h"
#include "menger/collectors/collector.h"
#include "menger/collectors/random_policy.h"
#include "menger/environments/catalog.h"

// Passes that are shorter than the slab: steps are cut in other places, and are the same steps.
namespace menger {
namespace {

constexpr int kEnvironments = 4;
constexpr int kHorizon = 5;

std::unique_ptr<Collector> Make(CollectorKind kind) {
  const EnvironmentEntry environment =
      NativeEnvironments().Open("CartPole-v1", EnvironmentUse::kTraining);
  return MakeCollector({.kind = kind,
                        .environments = kEnvironments,
                        .workers = kind == CollectorKind::kSerial ? 1 : 2,
                        .groups = kind == CollectorKind::kAlternating ? 2 : 1,
                        .horizon = kHorizon,
                        .history = 2,
                        .seed = 3},
                       environment, RandomPolicies(environment.spec, /*seed=*/1));
}

struct Step {
  std::vector<float> observation;  // [kEnvironments, 4]
  std::vector<double> rewards;
  std::vector<std::int64_t> actions;
  bool operator==(const Step&) const = default;
};

Step StepOf(const Slab& slab, int row) {
  Step step;
  for (int environment = 0; environment < kEnvironments; ++environment) {
    const int position = slab.columns().PositionOf(environment);
    const float* const values = slab.observation<float>(0, row, position);
    step.observation.insert(step.observation.end(), values, values + 4);
    step.rewards.push_back(slab.reward(row)[position]);
    step.actions.push_back(*slab.action<std::int64_t>(0, row, position));
  }
  return step;
}

class ShortSlabsTest : public testing::TestWithParam<CollectorKind> {
 protected:
  // The steps of one more pass, and how many there are before it.
  void Collect(Collector& collector, int rows_max, std::vector<Step>& steps) {
    const Slab& slab = collector.Collect(rows_max);
    EXPECT_EQ(slab.first_step(), static_cast<std::int64_t>(steps.size()));
    for (int row = 0; row < slab.horizon(); ++row) steps.push_back(StepOf(slab, row));
  }
};

TEST_P(ShortSlabsTest, TheStepsAreTheSameWhereverPassesEnd) {
  std::vector<Step> whole;
  std::vector<Step> cut;
  const auto collector = Make(GetParam());
  for (int pass = 0; pass < 8; ++pass) Collect(*collector, 1000, whole);
  const auto cutting = Make(GetParam());
  for (const int rows : {3, 2, 9, 1, 5, 4, 5, 5, 5, 1, 5}) Collect(*cutting, rows, cut);
  ASSERT_EQ(whole.size(), 40);
  ASSERT_EQ(cut.size(), 41);
  cut.pop_back();
  EXPECT_EQ(whole, cut);
}

TEST_P(ShortSlabsTest, ACollectorSavedAfterAShortPassGoesOnAsIfItHadNotBeen) {
  const auto collector = Make(GetParam());
  std::vector<Step> steps;
  Collect(*collector, 3, steps);
  const std::string folder = testing::TempDir() + "/short_slabs_test_" + NameOf(GetParam());
  ArchiveWriter archive(folder);
  collector->Save(archive);
  archive.Commit();

  const auto again = Make(GetParam());
  ArchiveReader saved(folder);
  again->Load(saved);
  std::vector<Step> same = steps;
  Collect(*collector, 4, steps);
  Collect(*again, 4, same);
  EXPECT_EQ(steps, same);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShortSlabsTest,
                         testing::Values(CollectorKind::kSerial, CollectorKind::kLocal,
                                         CollectorKind::kSynchronous, CollectorKind::kAlternating),
                         [](const auto& info) { return NameOf(info.param); });

TEST(ShortSlabTest, APassLongerThanTheSlabIsRefused) {
  Slab slab({.observation = Spec({LeafSpec::Scalar("observation", DataType::kFloat32)}),
             .action = Spec({LeafSpec::Discrete("action", 2)}),
             .horizon = kHorizon});
  EXPECT_THROW(slab.set_horizon(kHorizon + 1), Error);
  EXPECT_THROW(slab.set_horizon(0), Error);
  slab.set_horizon(2);
  EXPECT_EQ(slab.horizon(), 2);
}

}  // namespace
}  // namespace menger
