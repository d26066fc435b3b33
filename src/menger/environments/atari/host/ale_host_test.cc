// menger-atari-host, run as the program runs it, beside recordings of gymnasium's own pipeline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "menger/base/archive.h"
#include "menger/base/error.h"
#include "menger/environments/atari/atari_environments.h"
#include "menger/environments/environment_testing.h"

namespace menger {
namespace {

using nlohmann::json;

// The settings under which ours must show what gymnasium shows, and `set` besides.
EnvironmentEntry OpenGame(const std::string& game,
                          const std::vector<std::pair<std::string, std::string>>& set = {},
                          EnvironmentUse use = EnvironmentUse::kTraining) {
  AtariEnvironments family(MENGER_ATARI_HOST);
  Options options("atari");
  family.Declare(options);
  for (const auto& [name, text] : set) options.SetFromText(name, text);
  return family.Open("ALE/" + game + "-v5", use);
}

// Knuth's generator, as in tools/record_atari.py.
class Actions {
 public:
  std::int64_t Draw(std::int64_t count) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(count));
  }

 private:
  std::uint64_t state_ = 1;
};

json Recorded() {
  const char* other = std::getenv("MENGER_ATARI_TRACES");
  std::ifstream file(other != nullptr ? other
                                      : MENGER_SOURCE_FOLDER "/tests/data/traces/atari.json");
  return json::parse(file);
}

// Plays a recorded game; what differs first is the message of an error.
std::string Replay(const json& trace, int size) {
  const int steps = trace.at("steps");
  const EnvironmentEntry entry =
      OpenGame(trace.at("game"), {{"sticky_percent", trace.at("sticky_percent").dump()}});
  GroupUnderTest test(entry, /*columns=*/1, /*horizon=*/1, {.seed = trace.at("seed")});
  const std::int64_t count = trace.at("actions");
  if (entry.spec.action[0].counts[0] != count) return "another number of actions";

  const auto bytes = static_cast<uInt>(size) * size;
  uLong checksum = 0;
  json rewards = json::array(), ends = json::array(), checksums = json::array();
  const auto add = [&](int row) {
    checksum = crc32(checksum, test.slab.observation<std::uint8_t>(0, row), bytes);
  };
  Actions actions;
  test.group->Reset(test.slab, 0);
  add(0);
  for (int step = 0; step < steps; ++step) {
    *test.slab.action<std::int64_t>(0, 0, 0) = actions.Draw(count);
    test.group->Step(test.slab, 0);
    if (const double reward = *test.slab.reward(0); reward != 0) rewards.push_back({step, reward});
    if (*test.slab.terminated(0) != 0) ends.push_back(step);
    if (*test.slab.truncated(0) != 0) return "truncated at step " + std::to_string(step);
    test.slab.Carry(test.slab);
    if (trace.at("sticky_percent") != 0 && !ends.empty()) break;
    add(0);
    if ((step + 1) % 100 != 0) continue;
    checksums.push_back(checksum);
    if (trace.at("checksums").at(checksums.size() - 1) != checksum) {
      return "frames differ before step " + std::to_string(step + 1);
    }
  }
  if (rewards != trace.at("rewards")) return "rewards differ: " + rewards.dump();
  if (ends != trace.at("ends")) return "ends differ: " + ends.dump();
  if (checksums != trace.at("checksums")) return "fewer checksums";
  return {};
}

// Of six games 2000 steps without sticky actions and an episode with them.
TEST(AtariHostSlowTest, FramesRewardsAndEndsAreThoseOfGymnasiumBitForBit) {
  const json recorded = Recorded();
  for (const json& trace : recorded.at("traces")) {
    EXPECT_EQ(Replay(trace, recorded.at("size")), "")
        << trace.at("game") << ", sticky actions " << trace.at("sticky_percent") << "%";
  }
}

class AtariHostTest : public testing::Test {
 protected:
  ~AtariHostTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = testing::TempDir() + "menger_atari_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(AtariHostTest, ASavedGroupGoesOnBitForBit) {
  for (const char* game : {"Pong", "Breakout", "Seaquest", "SpaceInvaders"}) {
    const EnvironmentEntry entry = OpenGame(game, {{"preset", "sb3"}, {"sticky_percent", "25"}});
    GroupUnderTest one(entry, /*columns=*/3, /*horizon=*/60, {.seed = 3});
    one.group->Reset(one.slab, 0);
    one.Fill(/*salt=*/1, /*go_on=*/false);
    std::filesystem::remove_all(folder_);
    ArchiveWriter writer(folder_);
    one.group->Save(writer);
    writer.Commit();

    GroupUnderTest other(entry, 3, 60, {.seed = 4});
    other.group->Reset(other.slab, 0);
    other.Fill(/*salt=*/9, /*go_on=*/false);
    ArchiveReader reader(folder_);
    other.group->Load(reader);
    for (std::uint64_t salt : {2, 3}) {
      for (GroupUnderTest* test : {&one, &other}) {
        test->slab.set_first_step(0);
        test->Fill(salt, /*go_on=*/false);
      }
      // Row 0 is what was carried there before; the group writes from row 1 on.
      for (int row = 1; row <= 60; ++row) {
        ASSERT_EQ(std::memcmp(one.slab.observation(0, row), other.slab.observation(0, row),
                              3 * one.slab.observation_bytes(0)),
                  0)
            << game << " row " << row;
      }
      for (int row = 0; row < 60; ++row) {
        for (int i = 0; i < 3; ++i) {
          ASSERT_EQ(one.slab.reward(row)[i], other.slab.reward(row)[i]) << game;
          ASSERT_EQ(one.slab.terminated(row)[i], other.slab.terminated(row)[i]) << game;
        }
      }
    }
  }
}

TEST_F(AtariHostTest, GamesAreFoundByNameAndWrongNamesAreCorrected) {
  EXPECT_EQ(OpenGame("Pong").spec.action[0].counts[0], 6);
  EXPECT_EQ(OpenGame("Breakout").spec.action[0].counts[0], 4);
  EXPECT_EQ(OpenGame("Breakout", {{"actions", "all"}}).spec.action[0].counts[0], 18);
  EXPECT_EQ(OpenGame("TicTacToe3D").spec.name, "ALE/TicTacToe3D-v5");
  try {
    OpenGame("Brekout");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), testing::HasSubstr("ALE/Breakout-v5"));
  }
  EXPECT_THROW(OpenGame("Pong", {{"rom_folder", "nowhere"}}), Error);
}

TEST_F(AtariHostTest, LostLivesEndTrainingEpisodesAndNoEvaluation) {
  for (const auto use : {EnvironmentUse::kTraining, EnvironmentUse::kEvaluation}) {
    GroupUnderTest test(OpenGame("Breakout", {{"preset", "sb3"}}, use), 2, 300, {.seed = 1});
    test.group->Reset(test.slab, 0);
    test.Fill(1, /*go_on=*/false);
    int lives = 0;
    int games = 0;
    for (int row = 0; row < 300; ++row) {
      for (int i = 0; i < 2; ++i) {
        games += test.slab.episode_end(row)[i];
        lives += test.slab.terminated(row)[i] - test.slab.episode_end(row)[i];
      }
    }
    EXPECT_GE(games, 1);
    if (use == EnvironmentUse::kTraining) {
      EXPECT_GE(lives, 4 * games);
    } else {
      EXPECT_EQ(lives, 0);
    }
  }
}

}  // namespace
}  // namespace menger
