// Our environments against recorded Gymnasium trajectories: tests/data/traces, written by
// tools/record_traces.py.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "menger/environments/catalog.h"
#include "menger/environments/environment_testing.h"

namespace menger {
namespace {

struct TraceRow {
  int episode = 0;
  int step = 0;  // 0: a reset.
  std::vector<std::string> action;
  double reward = 0;
  bool terminated = false;
  bool truncated = false;
  std::vector<float> observation;
};

std::vector<TraceRow> ReadTrace(const std::string& file) {
  std::ifstream stream(std::string(MENGER_SOURCE_FOLDER) + "/tests/data/traces/" + file);
  EXPECT_TRUE(stream) << file;
  std::string line;
  std::getline(stream, line);
  std::vector<std::string> header;
  for (std::istringstream cells(line); std::getline(cells, line, ',');) header.push_back(line);
  std::vector<TraceRow> rows;
  while (std::getline(stream, line)) {
    TraceRow row;
    std::istringstream cells(line);
    for (const std::string& name : header) {
      std::string cell;
      std::getline(cells, cell, ',');
      if (name == "episode") row.episode = std::stoi(cell);
      if (name == "step") row.step = std::stoi(cell);
      if (name.starts_with("action_")) row.action.push_back(cell);
      if (name == "reward") row.reward = std::strtod(cell.c_str(), nullptr);
      if (name == "terminated") row.terminated = cell == "1";
      if (name == "truncated") row.truncated = cell == "1";
      if (name.starts_with("observation_")) {
        row.observation.push_back(std::strtof(cell.c_str(), nullptr));
      }
    }
    rows.push_back(row);
  }
  return rows;
}

void WriteAction(Slab& slab, const EnvironmentSpec& spec, const TraceRow& row) {
  if (spec.action[0].space == Space::kDiscrete) {
    *slab.action<std::int64_t>(0, 0) = std::stoll(row.action[0]);
    return;
  }
  for (std::size_t k = 0; k < row.action.size(); ++k) {
    slab.action<float>(0, 0)[k] = std::strtof(row.action[k].c_str(), nullptr);
  }
}

std::vector<float> Floats(const float* from, std::size_t count) { return {from, from + count}; }

// What the step in row 0 ended in: the final observation, or the one that the next row shows.
std::vector<float> ObservationAfter(const Slab& slab, std::size_t count) {
  const std::int32_t slot = slab.final_index(0)[0];
  return Floats(slot < 0 ? slab.observation<float>(0, 1) : slab.final_observation<float>(0, slot),
                count);
}

GroupUnderTest Started(const EnvironmentEntry& entry, std::uint64_t seed) {
  GroupUnderTest test(entry, /*columns=*/1, /*horizon=*/1, {.seed = seed});
  test.group->Reset(test.slab, 0);
  return test;
}

class ClassicControlTest : public testing::TestWithParam<const char*> {};

TEST_P(ClassicControlTest, EpisodesFromGivenSeedsEqualGymnasiumsToTheLastBit) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  const EnvironmentEntry& entry = catalog.Find(GetParam());
  GroupUnderTest test = Started(entry, 0);
  for (const TraceRow& row : ReadTrace(std::string(GetParam()) + ".csv")) {
    SCOPED_TRACE(fmt::format("episode {} step {}", row.episode, row.step));
    const std::size_t size = row.observation.size();
    if (row.step == 0) {
      test = Started(entry, row.episode);
      ASSERT_EQ(Floats(test.slab.observation<float>(0, 0), size), row.observation);
      continue;
    }
    WriteAction(test.slab, entry.spec, row);
    test.group->Step(test.slab, 0);
    ASSERT_EQ(ObservationAfter(test.slab, size), row.observation);
    ASSERT_EQ(test.slab.reward(0)[0], row.reward);
    ASSERT_EQ(test.slab.terminated(0)[0] != 0, row.terminated);
    ASSERT_EQ(test.slab.truncated(0)[0] != 0, row.truncated);
    test.slab.Carry(test.slab);
  }
}

TEST_P(ClassicControlTest, EpisodesThatFollowEachOtherEqualGymnasiumsToTheLastBit) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  const EnvironmentEntry& entry = catalog.Find(GetParam());
  GroupUnderTest test = Started(entry, 100);
  for (const TraceRow& row : ReadTrace(std::string(GetParam()) + ".continued.csv")) {
    SCOPED_TRACE(fmt::format("episode {} step {}", row.episode, row.step));
    const std::size_t size = row.observation.size();
    if (row.step == 0) {
      ASSERT_EQ(test.slab.is_first(0)[0], 1);
      ASSERT_EQ(Floats(test.slab.observation<float>(0, 0), size), row.observation);
      continue;
    }
    WriteAction(test.slab, entry.spec, row);
    test.group->Step(test.slab, 0);
    ASSERT_EQ(ObservationAfter(test.slab, size), row.observation);
    ASSERT_EQ(test.slab.reward(0)[0], row.reward);
    ASSERT_EQ(test.slab.terminated(0)[0] != 0, row.terminated);
    ASSERT_EQ(test.slab.truncated(0)[0] != 0, row.truncated);
    ASSERT_EQ(test.slab.episode_end(0)[0] != 0, row.terminated || row.truncated);
    test.slab.Carry(test.slab);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ClassicControlTest,
                         testing::Values("CartPole-v1", "Acrobot-v1", "MountainCar-v0",
                                         "MountainCarContinuous-v0", "Pendulum-v1"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('-'));
                         });

class LunarLanderTraceTest : public testing::TestWithParam<const char*> {};

// Gymnasium is built on Box2D 2.3 and we on 2.4, which solves joint limits in another way: the
// angular speed shows it when the legs swing onto theirs (steps 24 and 25).
TEST_P(LunarLanderTraceTest, FlightsEqualGymnasiumsUntilTheFirstContact) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  const EnvironmentEntry& entry = catalog.Find(GetParam());
  for (const bool continued : {false, true}) {
    GroupUnderTest test = Started(entry, 100);
    bool flying = true;
    int compared = 0;
    float worst = 0;
    const char* ending = continued ? ".continued.csv" : ".csv";
    for (const TraceRow& row : ReadTrace(GetParam() + std::string(ending))) {
      SCOPED_TRACE(
          fmt::format("continued {} episode {} step {}", continued, row.episode, row.step));
      if (row.step == 0) {
        if (continued && row.episode > 0) break;  // Lengths may differ, and so the streams.
        if (!continued) test = Started(entry, row.episode);
        flying = true;
        for (int i = 0; i < 8; ++i) {  // A reset ends with a step of Box2D.
          ASSERT_NEAR(test.slab.observation<float>(0, 0)[i], row.observation[i], 1e-3);
        }
        continue;
      }
      WriteAction(test.slab, entry.spec, row);
      test.group->Step(test.slab, 0);
      const std::vector<float> observation = ObservationAfter(test.slab, 8);
      const bool ended = row.terminated || test.slab.terminated(0)[0] != 0;
      flying &= row.observation[6] + row.observation[7] + observation[6] + observation[7] == 0;
      test.slab.Carry(test.slab);
      if (!flying || ended) {
        flying = false;
        continue;
      }
      ++compared;
      for (int i = 0; i < 8; ++i) {
        worst = std::max(worst, std::abs(observation[i] - row.observation[i]));
        ASSERT_NEAR(observation[i], row.observation[i], i == 5 ? 6e-3 : 1e-3);
      }
    }
    EXPECT_GE(compared, 60);
    RecordProperty(continued ? "drift_continued" : "drift", std::to_string(worst));
  }
}

INSTANTIATE_TEST_SUITE_P(All, LunarLanderTraceTest,
                         testing::Values("LunarLander-v3", "LunarLanderContinuous-v3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('-'));
                         });

}  // namespace
}  // namespace menger
