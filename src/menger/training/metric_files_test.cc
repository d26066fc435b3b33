// progress.csv and the event file: append_file.h, progress_table.h, event_file.h. That TensorBoard
// reads the events is tested from end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/training/event_file.h"
#include "menger/training/progress_table.h"

namespace menger {
namespace {

class MetricFilesTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(path_); }
  void TearDown() override { std::filesystem::remove_all(path_); }

  const std::string path_ = testing::TempDir() + "metric_file_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(MetricFilesTest, RowsHaveTheColumnsOfTheFirstLine) {
  ProgressTable table(path_);
  table.Append({{"steps", 256}, {"loss", 0.1}});
  table.Append({{"steps", 1e6}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(ReadFile(path_), "steps,loss\n256,0.1\n1000000,\n");
  EXPECT_THROW(table.Append({{"steps", 1}, {"kl", 2}}), Error);
}

TEST_F(MetricFilesTest, AResumedTableDropsRowsAfterTheCheckpointAndGoesOn) {
  ProgressTable first(path_);
  first.Append({{"steps", 1}});
  const std::uint64_t at_checkpoint = first.size();
  first.Append({{"steps", 2}});
  ProgressTable resumed(path_);
  resumed.TruncateTo(at_checkpoint);
  resumed.Append({{"steps", 3}});
  EXPECT_EQ(ReadFile(path_), "steps\n1\n3\n");
}

TEST_F(MetricFilesTest, AFileShorterThanItsCheckpointIsReportedAsLoss) {
  ProgressTable table(path_);
  table.Append({{"steps", 1}});
  try {
    table.TruncateTo(1000);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.what(), testing::HasSubstr(path_));
  }
}

// The check value of CRC-32C in the catalogue of parametrised CRC algorithms, and RFC 3720 B.4.
TEST_F(MetricFilesTest, TheChecksumIsCrc32c) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

TEST_F(MetricFilesTest, AnEventFileStartsWithItsVersionOnce) {
  std::uint64_t version_bytes = 0;
  {
    EventFile events(path_);
    version_bytes = events.size();
    events.Append(1, 0.5, {{"tag", 2.0}});
  }
  EventFile again(path_);
  EXPECT_GT(again.size(), version_bytes);
  again.TruncateTo(version_bytes);
  EXPECT_THAT(ReadFile(path_), testing::HasSubstr("brain.Event:2"));
  EXPECT_EQ(again.size(), 8 + 4 + 9 + 2 + 13 + 4 - 9u);  // No wall time: zero is left out.
}

TEST_F(MetricFilesTest, AFullDiskIsNamed) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const FileDescriptor full = CreateFile("/dev/full");
  const std::string text = "text";
  try {
    WriteAll(full, std::as_bytes(std::span<const char>(text)), "progress.csv");
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), testing::HasSubstr("progress.csv"));
  }
}

}  // namespace
}  // namespace menger
