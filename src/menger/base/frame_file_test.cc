#include "menger/base/frame_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/file_testing.h"
#include "menger/base/files.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_files::ErrorText;
using testing_files::FlipBit;
using testing_files::Folder;

constexpr FrameKind kKind = 3;
constexpr std::size_t kHeaderBytes = 56;

std::vector<std::byte> Payload(int frame) {
  return std::vector<std::byte>(static_cast<std::size_t>(3 + frame), static_cast<std::byte>(frame));
}

void Add(FrameFileWriter& writer, int frame) { writer.Add(kKind, Payload(frame)); }

// How many frames of Payload there are, from 0 on.
int Frames(const std::string& path) {
  FrameFileReader reader(path, /*number=*/7);
  int frames = 0;
  while (const auto frame = reader.Next()) {
    if (frame->kind != kKind) continue;
    const std::vector<std::byte> expected = Payload(frames++);
    EXPECT_TRUE(
        std::equal(frame->payload.begin(), frame->payload.end(), expected.begin(), expected.end()));
  }
  return frames;
}

TEST(FrameFileTest, FramesAreReadAsTheyWereWritten) {
  const Folder folder;
  const std::string path = folder / "segment";
  FrameFileWriter writer(path, 7);
  for (int i = 0; i < 10; ++i) {
    Add(writer, i);
    if (i % 3 == 0) writer.Sync();
  }
  EXPECT_EQ(Frames(path), 10);
  EXPECT_EQ(fs::file_size(path), writer.bytes());
  writer.End();
  EXPECT_EQ(Frames(path), 10);
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { FrameFileWriter again(path, 7); }),
              HasSubstr("segment"));
}

TEST(FrameFileTest, ATailThatWasNeverSyncedIsCutAtTheLastWholeFrame) {
  const Folder folder;
  const std::string path = folder / "segment";
  FrameFileWriter writer(path, 7);
  std::vector<std::uint64_t> ends;
  for (int i = 0; i < 4; ++i) {
    Add(writer, i);
    ends.push_back(writer.bytes());
  }
  for (std::uint64_t size = writer.bytes(); size-- > 0;) {
    fs::resize_file(path, size);
    const auto whole = std::ranges::count_if(ends, [&](std::uint64_t end) { return end <= size; });
    ASSERT_EQ(Frames(path), whole) << size;
  }
}

TEST(FrameFileTest, AHoleInWhatWasNotSyncedIsATailThoughWholeFramesFollow) {
  const Folder folder;
  const std::string path = folder / "segment";
  FrameFileWriter writer(path, 7);
  Add(writer, 0);
  writer.Sync();
  Add(writer, 1);
  const std::uint64_t hole = writer.bytes();
  for (int i = 2; i < 5; ++i) Add(writer, i);
  FlipBit(path, hole + 2, 1);
  EXPECT_EQ(Frames(path), 2);
  EndFrameFile(path, 7);
  EXPECT_EQ(fs::file_size(path), hole + 2 * kHeaderBytes);  // A mark and the end.
  EXPECT_EQ(Frames(path), 2);
  EndFrameFile(path, 7);
  EXPECT_EQ(Frames(path), 2);
}

TEST(FrameFileTest, EveryFlippedBitOfWhatWasSyncedIsFound) {
  const Folder folder;
  const std::string path = folder / "segment";
  FrameFileWriter writer(path, 7);
  Add(writer, 0);
  Add(writer, 1);
  writer.Sync();
  Add(writer, 2);
  const std::uint64_t synced = writer.bytes();
  writer.Sync();
  for (std::uint64_t byte = 0; byte < synced; ++byte) {
    FlipBit(path, byte, static_cast<int>(byte % 8));
    ASSERT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { Frames(path); }),
                HasSubstr(path + "' is damaged at byte"))
        << byte;
    FlipBit(path, byte, static_cast<int>(byte % 8));
  }
  EXPECT_EQ(Frames(path), 3);
}

TEST(FrameFileTest, FramesOfAnotherFileOrPlaceAreNotTaken) {
  const Folder folder;
  const std::string path = folder / "segment";
  FrameFileWriter writer(path, 8);
  Add(writer, 0);
  EXPECT_EQ(Frames(path), 0);
  fs::remove(path);
  FrameFileWriter right(path, 7);
  Add(right, 0);
  {
    const std::string bytes = ReadFile(path);
    std::ofstream(path, std::ios::app | std::ios::binary) << bytes;
  }
  EXPECT_EQ(Frames(path), 1);
}

}  // namespace
}  // namespace menger
