#include "menger/environments/catalog.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/environments/environment_testing.h"

namespace menger {
namespace {

TEST(CatalogTest, AnUnknownNameIsAnsweredWithTheNearestOne) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  try {
    catalog.Find("CartPole-v0");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("CartPole-v1"), std::string::npos) << error.what();
  }
}

TEST(CatalogTest, ANameIsTakenOnce) {
  EnvironmentCatalog catalog = NativeEnvironments();
  EXPECT_THROW(catalog.Add(catalog.entries()[0]), Error);
}

// From Gymnasium 1.4's registry and spaces.
TEST(CatalogTest, TimeLimitsThresholdsAndBoundsAreGymnasiums) {
  struct Expected {
    const char* name;
    int steps;
    double threshold;
    std::int64_t actions;  // 0: continuous.
    std::vector<float> high;
  };
  const float infinity = INFINITY;
  const std::vector<Expected> all = {
      {"CartPole-v1", 500, 475, 2, {4.8F, infinity, 0.41887903F, infinity}},
      {"MaskedCartPole-v1", 500, 475, 2, {4.8F, 0.41887903F}},
      {"Acrobot-v1", 500, -100, 3, {1, 1, 1, 1, 12.566371F, 28.274334F}},
      {"MountainCar-v0", 200, -110, 3, {0.6F, 0.07F}},
      {"MountainCarContinuous-v0", 999, 90, 0, {0.6F, 0.07F}},
      {"Pendulum-v1", 200, NAN, 0, {1, 1, 8}},
      {"LunarLander-v3", 1000, 200, 4, {2.5F, 2.5F, 10, 10, 6.2831855F, 10, 1, 1}},
      {"LunarLanderContinuous-v3", 1000, 200, 0, {2.5F, 2.5F, 10, 10, 6.2831855F, 10, 1, 1}}};
  const EnvironmentCatalog catalog = NativeEnvironments();
  for (const Expected& expected : all) {
    SCOPED_TRACE(expected.name);
    const EnvironmentSpec& spec = catalog.Find(expected.name).spec;
    EXPECT_EQ(spec.max_episode_steps, expected.steps);
    EXPECT_TRUE(spec.reward_threshold == expected.threshold ||
                (std::isnan(spec.reward_threshold) && std::isnan(expected.threshold)));
    const LeafSpec& action = spec.action[0];
    EXPECT_EQ(action.space == Space::kDiscrete ? action.counts[0] : 0, expected.actions);
    const std::vector<double>& high = spec.observation[0].high;
    EXPECT_EQ(std::vector<float>(high.begin(), high.end()), expected.high);
  }
}

TEST(CatalogTest, MaskedCartPoleIsCartPoleWithoutItsSpeeds) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  GroupUnderTest masked(catalog.Find("MaskedCartPole-v1"), 2, 60, {.seed = 3});
  GroupUnderTest whole(catalog.Find("CartPole-v1"), 2, 60, {.seed = 3});
  for (GroupUnderTest* test : {&masked, &whole}) {
    test->group->Reset(test->slab, 0);
    test->Fill(/*salt=*/1, /*go_on=*/false);
  }
  for (int row = 0; row <= 60; ++row) {
    for (int column = 0; column < 2; ++column) {
      const float* shown = masked.slab.observation<float>(0, row, column);
      const float* full = whole.slab.observation<float>(0, row, column);
      ASSERT_EQ(shown[0], full[0]) << row;
      ASSERT_EQ(shown[1], full[2]) << row;
    }
  }
}

class EveryEnvironmentTest : public testing::TestWithParam<const char*> {
 protected:
  GroupUnderTest Make(int columns, int horizon, GroupOptions options = {}) {
    return GroupUnderTest(catalog_.Find(GetParam()), columns, horizon, options);
  }

  const EnvironmentCatalog catalog_ = NativeEnvironments();
};

TEST_P(EveryEnvironmentTest, GoesOnBitIdenticallyAfterSaveAndLoadInTheMiddleOfEpisodes) {
  const std::string path = testing::TempDir() + "/catalog_test_" + GetParam();
  GroupUnderTest straight = Make(5, 130, {.seed = 3});
  straight.group->Reset(straight.slab, 0);
  straight.Fill(/*salt=*/1, /*go_on=*/false);
  {
    ArchiveWriter archive(path);
    ArchiveWriter scope = archive.Scope("group");
    straight.group->Save(scope);
    archive.Commit();
  }

  GroupUnderTest resumed = Make(5, 130, {.seed = 999});
  ArchiveReader archive(path);
  ArchiveReader scope = archive.Scope("group");
  resumed.group->Load(scope);
  straight.slab.Carry(resumed.slab);
  straight.Fill(/*salt=*/1, /*go_on=*/true);
  for (int row = 0; row < 130; ++row) {
    resumed.WriteRandomActions(row, /*salt=*/1);
    resumed.group->Step(resumed.slab, row);
  }
  EXPECT_EQ(resumed.slab.first_step(), straight.slab.first_step());
  EXPECT_TRUE(Fingerprint(resumed.slab) == Fingerprint(straight.slab));
  std::filesystem::remove_all(path);
}

TEST_P(EveryEnvironmentTest, DoesNotDependOnTheCutIntoBlocks) {
  const EnvironmentEntry& entry = catalog_.Find(GetParam());
  const std::vector<int> steps = {0, 30, 3, 99, 250, 17};
  const auto run = [&](int workers) {
    Slab slab({.observation = entry.spec.observation,
               .state = {},
               .action = entry.spec.action,
               .policy = {},
               .horizon = 1,
               .columns = ColumnLayout(6, /*groups=*/1, workers, /*padding=*/1)});
    for (const ColumnBlock& block : slab.columns().blocks()) {
      const auto group = entry.make_group({.columns = block, .seed = 11});
      group->Reset(slab, 0);
      const auto part = std::span(steps).subspan(block.first_environment, block.count);
      group->StepRandomly(slab, 0, part, /*seed=*/21);
    }
    return Fingerprint(slab);
  };
  const std::string whole = run(1);
  EXPECT_TRUE(whole == run(2));
  EXPECT_TRUE(whole == run(6));
}

TEST_P(EveryEnvironmentTest, GoesOnBitIdenticallyAfterRandomStepsAreSaved) {
  const std::string path = testing::TempDir() + "/catalog_test_random_" + GetParam();
  GroupUnderTest straight = Make(3, 20, {.seed = 5});
  straight.group->Reset(straight.slab, 0);
  straight.group->StepRandomly(straight.slab, 0, std::vector<int>{40, 0, 7}, /*seed=*/2);
  {
    ArchiveWriter archive(path);
    straight.group->Save(archive);
    archive.Commit();
  }
  GroupUnderTest resumed = Make(3, 20);
  ArchiveReader archive(path);
  resumed.group->Load(archive);
  std::memcpy(resumed.slab.observation(0, 0), straight.slab.observation(0, 0),
              3 * resumed.slab.observation_bytes(0));
  std::memcpy(resumed.slab.is_first(0), straight.slab.is_first(0), 3);
  straight.Fill(/*salt=*/4, /*go_on=*/false);
  resumed.Fill(/*salt=*/4, /*go_on=*/false);
  EXPECT_TRUE(Fingerprint(resumed.slab) == Fingerprint(straight.slab));
  std::filesystem::remove_all(path);
}

TEST_P(EveryEnvironmentTest, ObservationsStayWithinTheirBounds) {
  GroupUnderTest test = Make(4, 250, {.seed = 1});
  test.group->Reset(test.slab, 0);
  test.Fill(/*salt=*/9, /*go_on=*/false);
  const LeafSpec& leaf = test.group->spec().observation[0];
  for (int row = 0; row <= test.slab.horizon(); ++row) {
    for (int column = 0; column < 4; ++column) {
      for (int k = 0; k < leaf.elements(); ++k) {
        const float value = test.slab.observation<float>(0, row, column)[k];
        ASSERT_GE(value, leaf.low[k]) << row << ' ' << k;
        ASSERT_LE(value, leaf.high[k]) << row << ' ' << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryEnvironmentTest,
                         testing::Values("CartPole-v1", "MaskedCartPole-v1", "Acrobot-v1",
                                         "MountainCar-v0", "MountainCarContinuous-v0",
                                         "Pendulum-v1", "LunarLander-v3",
                                         "LunarLanderContinuous-v3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('-'));
                         });

}  // namespace
}  // namespace menger
