#include "menger/base/sharing/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t ResidentBytes(const WritableSegment& segment) {
  struct stat status {};
  fstat(segment.descriptor(), &status);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST(SegmentTest, ReadersSeeWhatTheWriterWrites) {
  WritableSegment writer("segment_test", kMiB);
  const ReadableSegment reader(writer.OpenReadOnly());
  EXPECT_EQ(reader.size(), kMiB);
  EXPECT_EQ(reader.bytes()[5], std::byte{0});
  writer.bytes()[kMiB - 1] = std::byte{7};
  EXPECT_EQ(reader.bytes()[kMiB - 1], std::byte{7});
}

TEST(SegmentTest, AnotherProcessWritesByTheWritersDescriptor) {
  WritableSegment made("segment_test", kMiB);
  const ReadableSegment reader(made.OpenReadOnly());
  const pid_t child = fork();
  if (child == 0) {
    WritableSegment writer{FileDescriptor(dup(made.descriptor()))};
    writer.bytes()[3] = std::byte{9};
    _exit(0);
  }
  ASSERT_GT(child, 0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(reader.bytes()[3], std::byte{9});
}

TEST(SegmentTest, AnotherProcessFindsItByItsPlace) {
  WritableSegment writer("segment_test", kMiB);
  writer.bytes()[3] = std::byte{9};
  const SegmentPlace place = PlaceOfSegment(writer.descriptor());
  const pid_t child = fork();
  if (child == 0) {
    SegmentPlace other = place;
    ++other.inode;
    int failures = 0;
    for (const SegmentPlace& at : {place, other}) {
      try {
        const FileDescriptor file = OpenSegment(at);
        const bool writable =
            mmap(nullptr, kMiB, PROT_WRITE, MAP_SHARED, file.get(), 0) != MAP_FAILED;
        failures += writable || ReadableSegment(file).bytes()[3] != std::byte{9} ? 10 : 0;
      } catch (const Error& error) {
        failures += error.code() == ErrorCode::kUnavailable ? 1 : 10;
      }
    }
    _exit(failures);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);  // Of the one that is not the file that was meant.
  EXPECT_THROW(OpenSegment({}), Error);
}

TEST(SegmentTest, ItsSizeIsFixedAndItsReadersCannotMapItForWriting) {
  const WritableSegment writer("segment_test", kMiB);
  EXPECT_NE(ftruncate(writer.descriptor(), 0), 0);
  EXPECT_NE(ftruncate(writer.descriptor(), 2 * kMiB), 0);
  const FileDescriptor read_only = writer.OpenReadOnly();
  EXPECT_EQ(mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, read_only.get(), 0),
            MAP_FAILED);
}

TEST(SegmentTest, WhatIsNoSegmentIsRefused) {
  EXPECT_THROW(WritableSegment("segment_test", 0), Error);
  EXPECT_THROW(WritableSegment("segment_test", 4097), Error);
  const FileDescriptor unsealed(memfd_create("segment_test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_THROW(ReadableSegment{unsealed}, Error);
  EXPECT_THROW(ReadableSegment{FileDescriptor()}, Error);
}

TEST(SegmentTest, PagesCostNothingUntilTouchedAndCanBeGivenBack) {
  WritableSegment segment("segment_test", 64 * kMiB);
  EXPECT_EQ(ResidentBytes(segment), 0u);
  std::memset(segment.bytes().data(), 1, kMiB);
  EXPECT_EQ(ResidentBytes(segment), kMiB);
  // The pages at both ends lie only partly within, and stay.
  segment.ReleasePages(100, kMiB - 200);
  EXPECT_EQ(ResidentBytes(segment), 2u * 4096);
  EXPECT_EQ(segment.bytes()[50], std::byte{1});
  EXPECT_EQ(segment.bytes()[8192], std::byte{0});
  segment.ReleasePages(200, 300);  // Less than a page.
  EXPECT_THROW(segment.ReleasePages(64 * kMiB - 1, 2), Error);
  EXPECT_THROW(segment.ReleasePages(SIZE_MAX, 2), Error);
}

TEST(SegmentTest, PreparingNeverChangesWhatIsThere) {
  WritableSegment segment("segment_test", 16 * kMiB);
  std::memset(segment.bytes().data() + 5 * kMiB, 3, kMiB);  // Half of a huge page.
  segment.Prepare(kMiB, 14 * kMiB);
  segment.Prepare(kMiB, 14 * kMiB);
  for (std::size_t at = 0; at < 16 * kMiB; ++at) {
    const int expected = at >= 5 * kMiB && at < 6 * kMiB ? 3 : 0;
    ASSERT_EQ(static_cast<int>(segment.bytes()[at]), expected) << at;
  }
  EXPECT_THROW(segment.Prepare(kMiB, 16 * kMiB), Error);
}

}  // namespace
}  // namespace menger
