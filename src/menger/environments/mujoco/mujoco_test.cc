// MuJoCo's environments, opened as the program opens them, against trajectories recorded from
// Gymnasium: tests/data/traces/mujoco, written by tools/record_mujoco.py.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/error.h"
#include "menger/base/options.h"
#include "menger/base/random.h"
#include "menger/environments/environment_testing.h"
#include "menger/environments/mujoco_environments.h"

namespace menger {
namespace {

EnvironmentEntry Open(const std::string& name) {
  setenv("MENGER_MUJOCO_LIBRARY", MUJOCO_LIBRARY_FILE, /*overwrite=*/1);
  return MujocoEnvironments().Open(name, EnvironmentUse::kTraining);
}

using Row = std::map<std::string, std::string>;

std::vector<Row> ReadCsv(const std::string& file) {
  std::ifstream stream(MENGER_SOURCE_FOLDER "/tests/data/traces/mujoco/" + file);
  EXPECT_TRUE(stream) << file;
  std::string line, cell;
  std::getline(stream, line);
  std::vector<std::string> header;
  for (std::istringstream cells(line); std::getline(cells, cell, ',');) header.push_back(cell);
  std::vector<Row> rows;
  while (std::getline(stream, line)) {
    std::istringstream cells(line);
    Row& row = rows.emplace_back();
    for (const std::string& name : header) std::getline(cells, row[name], ',');
  }
  return rows;
}

double Number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

// The 64-bit FNV-1a of everything added.
class Hash {
 public:
  void Add(const double* numbers, std::size_t count) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(numbers);
    for (std::size_t i = 0; i < count * sizeof(double); ++i) {
      value_ = (value_ ^ bytes[i]) * 0x100000001B3;
    }
  }
  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
};

// Uniform-random actions as tools/record_mujoco.py draws them.
class RandomActions {
 public:
  RandomActions(const LeafSpec& leaf, double amplitude, std::uint64_t seed)
      : leaf_(leaf), amplitude_(amplitude), random_(Random::FromSeed(seed)) {}

  void WriteTo(float* action) {
    for (int k = 0; k < leaf_.elements(); ++k) {
      action[k] = static_cast<float>(amplitude_ * random_.Uniform(leaf_.low[k], leaf_.high[k]));
    }
  }

 private:
  const LeafSpec leaf_;
  const double amplitude_;
  Random random_;
};

// One environment that goes through a recorded run.
class Replay {
 public:
  Replay(const EnvironmentEntry& entry, std::uint64_t seed, double amplitude)
      : size_(entry.spec.observation[0].elements()),
        actions_(entry.spec.action[0], amplitude, 1000 + seed),
        test_(entry, /*columns=*/1, /*horizon=*/1, {.seed = seed}) {
    test_.group->Reset(test_.slab, 0);
    StartEpisode(test_.slab.observation<double>(0, 0));
  }

  void Step() {
    Slab& slab = test_.slab;
    actions_.WriteTo(slab.action<float>(0, 0));
    test_.group->Step(slab, 0);
    ++step;
    reward = slab.reward(0)[0];
    terminated = slab.terminated(0)[0] != 0;
    truncated = slab.truncated(0)[0] != 0;
    const std::int32_t slot = slab.final_index(0)[0];
    Show(slot < 0 ? slab.observation<double>(0, 1) : slab.final_observation<double>(0, slot));
  }

  void GoOn() {
    if (terminated || truncated) StartEpisode(test_.slab.observation<double>(0, 1));
    test_.slab.Carry(test_.slab);
  }

  int episode = -1;
  int step = 0;
  double reward = 0;
  bool terminated = false;
  bool truncated = false;
  std::vector<double> observation;
  Hash hash;

 private:
  void StartEpisode(const double* first) {
    ++episode;
    step = 0;
    reward = 0;
    terminated = truncated = false;
    observation.assign(first, first + size_);
    hash.Add(first, size_);
  }

  void Show(const double* numbers) {
    observation.assign(numbers, numbers + size_);
    hash.Add(&reward, 1);
    hash.Add(numbers, size_);
  }

  const std::size_t size_;
  RandomActions actions_;
  GroupUnderTest test_;
};

class MujocoTest : public testing::TestWithParam<std::string> {};

TEST_P(MujocoTest, EpisodesEqualGymnasiumsToTheLastBit) {
  const EnvironmentEntry entry = Open(GetParam());
  std::unique_ptr<Replay> run;
  std::string seed;
  for (const Row& row : ReadCsv(GetParam() + ".csv")) {
    SCOPED_TRACE(fmt::format("seed {} episode {} step {}", row.at("seed"), row.at("episode"),
                             row.at("step")));
    const int episode = std::stoi(row.at("episode")), step = std::stoi(row.at("step"));
    if (row.at("seed") != seed) {
      seed = row.at("seed");
      run = std::make_unique<Replay>(entry, std::stoull(seed), Number(row.at("amplitude")));
    } else if (step == 0) {
      run->GoOn();
    }
    while (run->step < step) {
      if (run->step > 0) run->GoOn();
      ASSERT_EQ(run->episode, episode);
      run->Step();
    }
    ASSERT_EQ(run->episode, episode);
    ASSERT_EQ(run->step, step);
    for (std::size_t i = 0; i < run->observation.size(); ++i) {
      ASSERT_EQ(run->observation[i], Number(row.at(fmt::format("observation_{}", i)))) << i;
    }
    ASSERT_EQ(run->reward, Number(row.at("reward")));
    ASSERT_EQ(run->terminated, row.at("terminated") == "1");
    ASSERT_EQ(run->truncated, row.at("truncated") == "1");
    ASSERT_EQ(run->hash.text(), row.at("hash")) << "a step that is not written down differs";
  }
}

TEST_P(MujocoTest, TheSpecEqualsGymnasiums) {
  const EnvironmentSpec spec = Open(GetParam()).spec;
  EXPECT_EQ(spec.name, GetParam());
  int found = 0;
  for (const Row& row : ReadCsv("specs.csv")) {
    if (row.at("environment") != GetParam()) continue;
    ++found;
    EXPECT_EQ(spec.observation[0].dtype, DataType::kFloat64);
    EXPECT_EQ(spec.observation[0].shape, Shape{std::stoi(row.at("observation_size"))});
    EXPECT_EQ(spec.action[0].dtype, DataType::kFloat32);
    EXPECT_EQ(spec.action[0].shape, Shape{std::stoi(row.at("action_size"))});
    EXPECT_THAT(spec.action[0].low, testing::Each(Number(row.at("action_low"))));
    EXPECT_THAT(spec.action[0].high, testing::Each(Number(row.at("action_high"))));
    EXPECT_EQ(spec.max_episode_steps, std::stoi(row.at("max_episode_steps")));
    const std::string& threshold = row.at("reward_threshold");
    EXPECT_TRUE(threshold.empty() ? std::isnan(spec.reward_threshold)
                                  : spec.reward_threshold == Number(threshold));
  }
  EXPECT_EQ(found, 1);
}

TEST_P(MujocoTest, AGroupThatIsLoadedGoesOnBitForBit) {
  constexpr int kColumns = 3, kHorizon = 64;
  const EnvironmentEntry entry = Open(GetParam());
  const auto fill = [&](GroupUnderTest& test, std::uint64_t seed) {
    RandomActions actions(entry.spec.action[0], 0.7, seed);
    for (int row = 0; row < kHorizon; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        actions.WriteTo(test.slab.action<float>(0, row, column));
      }
      test.group->Step(test.slab, row);
    }
    return Fingerprint(test.slab);
  };
  GroupUnderTest first(entry, kColumns, kHorizon, {.seed = 5});
  first.group->Reset(first.slab, 0);
  fill(first, 1);
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("menger_mujoco_test_{}_{}", GetParam(), getpid());
  ArchiveWriter writer(path);
  first.group->Save(writer);
  writer.Commit();

  GroupUnderTest second(entry, kColumns, kHorizon, {.seed = 77});
  second.group->Reset(second.slab, 0);
  fill(second, 3);  // Leaves traces of its own, which must not matter.
  ArchiveReader reader(path);
  second.group->Load(reader);
  std::filesystem::remove_all(path);
  first.slab.Carry(second.slab);
  first.slab.Carry(first.slab);
  EXPECT_TRUE(fill(first, 2) == fill(second, 2));
}

TEST_P(MujocoTest, ActionsThatAreNoNumbersAreRefusedBeforeAnythingMoves) {
  const EnvironmentEntry entry = Open(GetParam());
  GroupUnderTest test(entry, /*columns=*/2, /*horizon=*/1, {.seed = 5});
  test.group->Reset(test.slab, 0);
  const std::string before = Fingerprint(test.slab);
  RandomActions(entry.spec.action[0], 1, 1).WriteTo(test.slab.action<float>(0, 0, 0));
  RandomActions(entry.spec.action[0], 1, 2).WriteTo(test.slab.action<float>(0, 0, 1));
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    test.slab.action<float>(0, 0, 1)[0] = bad;
    try {
      test.group->Step(test.slab, 0);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), testing::HasSubstr(GetParam() + " environment 1, step 0"));
    }
    EXPECT_TRUE(Fingerprint(test.slab) == before);
  }
}

TEST_P(MujocoTest, TheLargestActionsCostMuchButLeaveTheSimulationWhole) {
  const EnvironmentEntry entry = Open(GetParam());
  GroupUnderTest test(entry, /*columns=*/1, /*horizon=*/20, {.seed = 5});
  test.group->Reset(test.slab, 0);
  for (int row = 0; row < test.slab.horizon(); ++row) {
    for (int k = 0; k < entry.spec.action[0].elements(); ++k) {
      test.slab.action<float>(0, row)[k] = row % 2 == 0 ? 1e18F : -1e18F;
    }
    test.group->Step(test.slab, row);
    for (int i = 0; i < entry.spec.observation[0].elements(); ++i) {
      ASSERT_TRUE(std::isfinite(test.slab.observation<double>(0, row + 1)[i]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MujocoTest, testing::ValuesIn(MujocoEnvironments().examples()),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('-'));
                         });

TEST(MujocoLibraryTest, AFolderWithoutModelsIsNamed) {
  setenv("MENGER_MUJOCO_LIBRARY", MUJOCO_LIBRARY_FILE, /*overwrite=*/1);
  MujocoEnvironments family;
  Options options("mujoco");
  family.Declare(options);
  options.Set("models", std::string("/nowhere"));
  try {
    family.Open("Hopper-v5", EnvironmentUse::kTraining);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("/nowhere/hopper.xml"),
                                             testing::HasSubstr("mujoco.models")));
  }
}

TEST(MujocoLibraryTest, AnotherNameIsNotFound) {
  try {
    Open("Reacher-v5");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

}  // namespace
}  // namespace menger
