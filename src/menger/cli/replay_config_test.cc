#include "menger/cli/replay_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "menger/base/file_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_files::ErrorText;

constexpr const char* kGood = R"TOML(
socket = "a.sock"
drain = 1

[durability]
kind = "journal"
folder = "kept"
loss_max = 0.5

[[table]]
name = "frames"
seed = 3
steps = ["observation: uint8 (84, 84)", "reward: float32 ()", "goal: float64 (2,)"]
columns = ["observation: observation x 4, zeros in front", "reward: reward x 3", "goal: goal x 1"]
sampler = "prioritised"
priority_exponent = 0.6
limiter = "sample_to_insert_ratio"
samples_per_insert = 4
min_size = 100
error_buffer = 16

[[table]]
name = "queue"
steps = ["value: int64 ()"]
columns = ["value: value x 1"]
limiter = "queue"
min_size = 50
sampler = "fifo"
times_sampled_max = 1
)TOML";

TEST(ReplayConfigTest, AFileSaysAllThatAServerIs) {
  const ReplayConfig config = ReplayConfig::Read(kGood, "good.toml");
  EXPECT_EQ(config.socket, "a.sock");
  EXPECT_EQ(config.ForDurability().kind, Durability::kJournal);
  EXPECT_EQ(config.ForDurability().loss_max, std::chrono::milliseconds(500));
  const ReplayStoreOptions store = config.ForStore();
  ASSERT_EQ(store.tables.size(), 2U);
  EXPECT_TRUE(store.shared);
  const TableOptions& frames = store.tables[0];
  EXPECT_EQ(frames.items.steps[0].shape, (Shape{84, 84}));
  EXPECT_EQ(frames.items.steps[2].dtype, DataType::kFloat64);
  EXPECT_EQ(frames.items.columns[0].rows, 4);
  EXPECT_EQ(frames.items.columns[0].padding, Padding::kFront);
  EXPECT_EQ(frames.items.columns[1].padding, Padding::kBack);
  EXPECT_EQ(frames.sampler.kind, SelectorKind::kPrioritised);
  EXPECT_EQ(frames.sampler.exponent, 0.6);
  EXPECT_EQ(frames.rate_limiter, RateLimiterOptions::SampleToInsertRatio(4, 100, 16));
  EXPECT_EQ(store.tables[1].rate_limiter, RateLimiterOptions::Queue(50));
  EXPECT_TRUE(store.tables[1].KeepsUnsampled());
}

TEST(ReplayConfigTest, WhatIsWrittenIsReadAgain) {
  const std::string written = ReplayConfig::Read(kGood, "good.toml").ToToml();
  EXPECT_EQ(ReplayConfig::Read(written, "written.toml").ToToml(), written);
}

// The text with one piece replaced, which must be there.
std::string With(const std::string& piece, const std::string& other) {
  std::string text = kGood;
  text.replace(text.find(piece), piece.size(), other);
  return text;
}

TEST(ReplayConfigTest, WhatIsWrongIsNamedWithItsPlace) {
  struct Case {
    std::string toml;
    const char* said;
  };
  const Case cases[] = {
      {"", "has a [[table]] at least"},
      {"socket = ", "bad.toml:1: not valid TOML"},
      {With("drain = 1", "drian = 1"), "did you mean 'drain'"},
      {With("drain = 1", "drain = -1"), "drain"},
      {With("drain = 1", "drain = \"soon\""), "bad.toml:3"},
      {With("[durability]", "[durable]"), "there is no section 'durable'"},
      {With("\"journal\"", "\"journel\""), "did you mean 'journal'"},
      {With("uint8 (84, 84)", "uint9 (84, 84)"), "did you mean 'uint8'"},
      {With("uint8 (84, 84)", "uint8 84"), "'84' is no shape"},
      {With("uint8 (84, 84)", "uint8 (84, x)"), "is no shape"},
      {With("uint8 (84, 84)", "uint8 (0,)"), "is no shape"},
      {With("uint8 (84, 84)", "uint8 (99999999999, 99999999999)"), "has too many numbers"},
      {With("\"reward: float32 ()\"", "\"reward\""), "has no name"},
      {With("reward: reward x 3", "reward: reward"), "is no column"},
      {With("reward: reward x 3", "reward: reward x 0"), "is no column"},
      {With("reward: reward x 3", "reward: rewart x 3"), "did you mean 'reward'"},
      {With("error_buffer = 16", "error_buffer = 1"), "error_buffer"},
      {With("seed = 3", "seed = 3\nitems = 5"), "items"},
      {With("seed = 3", "seed = 3\nbytes_max = 10"), "which one item has"},
      {With("times_sampled_max = 1", "times_sampled_max = 0"), "gives each item once"},
      {With("\"sample_to_insert_ratio\"", "\"sample_ratio\""), "sample_to_insert_ratio"},
  };
  for (const Case& wrong : cases) {
    EXPECT_THAT(
        ErrorText(ErrorCode::kInvalidArgument, [&] { ReplayConfig::Read(wrong.toml, "bad.toml"); }),
        HasSubstr(wrong.said))
        << wrong.toml;
  }
}

}  // namespace
}  // namespace menger
