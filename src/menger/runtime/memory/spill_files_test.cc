#include "menger/runtime/memory/spill_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Bytes SomeBytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

SpilledValue WriteOne(SpillFiles& files, const Bytes& bytes) {
  const std::span<const std::byte> parts[] = {bytes};
  return files.Write(parts);
}

Bytes ReadOne(const SpillFiles& files, const SpilledValue& value) {
  Bytes bytes(value.bytes);
  files.Read(value, bytes);
  return bytes;
}

class SpillFilesTest : public testing::Test {
 protected:
  SpillFilesTest() {
    std::string name = testing::TempDir() + "spill_files_test.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~SpillFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(SpillFilesTest, ValuesComeBackAsTheyWere) {
  SpillFiles files(folder_ + "/made", 100 * kMiB);
  const Bytes small = SomeBytes(1000, 1), empty, large = SomeBytes(3 * kMiB, 2);
  const std::array<std::span<const std::byte>, 4> parts{small, empty, large, small};
  const SpilledValue joined = files.Write(parts);
  const SpilledValue one = WriteOne(files, small);
  const SpilledValue none = WriteOne(files, empty);
  EXPECT_EQ(files.used_bytes(), 3 * kMiB + 3000);
  EXPECT_EQ(ReadOne(files, one), small);
  EXPECT_EQ(ReadOne(files, none), empty);
  Bytes expected = small;
  expected.insert(expected.end(), large.begin(), large.end());
  expected.insert(expected.end(), small.begin(), small.end());
  EXPECT_EQ(ReadOne(files, joined), expected);
  Bytes wrong(999);
  EXPECT_THROW(files.Read(one, wrong), Error);
}

TEST_F(SpillFilesTest, NothingOfItHasAName) {
  SpillFiles files(folder_, kMiB);
  WriteOne(files, SomeBytes(100, 1));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(SpillFilesTest, AFileGoesWithTheLastOfItsValues) {
  SpillFiles files(folder_, 200 * kMiB);
  const SpilledValue one = WriteOne(files, SomeBytes(1000, 1));
  const SpilledValue two = WriteOne(files, SomeBytes(1000, 2));
  const SpilledValue large = WriteOne(files, Bytes(64 * kMiB));
  EXPECT_EQ(one.file, two.file);
  EXPECT_NE(two.file, large.file);
  files.Free(one);
  EXPECT_EQ(files.used_bytes(), 64 * kMiB + 1000);
  files.Free(large);
  EXPECT_EQ(files.used_bytes(), 1000u);
  EXPECT_EQ(ReadOne(files, two), SomeBytes(1000, 2));
  files.Free(two);
  EXPECT_EQ(files.used_bytes(), 0u);
  EXPECT_THROW(files.Free(two), Error);
  EXPECT_THROW(ReadOne(files, two), Error);
}

TEST_F(SpillFilesTest, AFullBudgetIsNamedAndKeepsNothing) {
  SpillFiles files(folder_, 1500);
  const SpilledValue value = WriteOne(files, Bytes(1000));
  try {
    WriteOne(files, Bytes(501));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    const std::string text = error.what();
    EXPECT_NE(text.find("1000 of a budget of 1500 bytes"), std::string::npos) << text;
  }
  EXPECT_EQ(files.used_bytes(), 1000u);
  WriteOne(files, Bytes(500));
  files.Free(value);
}

// What the files in `folder` take on the disk, though they have no names.
std::uint64_t BytesOnDisk(const std::string& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (!std::filesystem::read_symlink(entry, gone).string().starts_with(folder + "/")) continue;
    struct stat found {};
    if (stat(entry.path().c_str(), &found) == 0) {
      bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
    }
  }
  return bytes;
}

// 16 values are alive at any time, each among many that come and go: 28 MiB through one.
TEST_F(SpillFilesTest, RoomOfFreedValuesIsUsedAgain) {
  SpillFiles files(folder_, kMiB);
  std::vector<std::pair<SpilledValue, unsigned>> live;
  std::mt19937 random(7);
  for (unsigned i = 0; i < 1000; ++i) {
    const std::size_t bytes = 32'000 - random() % 5'000;
    live.emplace_back(WriteOne(files, SomeBytes(bytes, i)), i);
    if (live.size() < 17) continue;
    auto& chosen = live[random() % 17];
    EXPECT_EQ(ReadOne(files, chosen.first), SomeBytes(chosen.first.bytes, chosen.second));
    files.Free(chosen.first);
    std::swap(chosen, live.back());
    live.pop_back();
  }
  for (const auto& [value, seed] : live) {
    EXPECT_EQ(ReadOne(files, value), SomeBytes(value.bytes, seed));
  }
  EXPECT_LE(BytesOnDisk(folder_), 2 * kMiB);
}

// One of a thousand stays: what the others had is the disk's again, as far as it takes pages back.
TEST_F(SpillFilesTest, RoomOfFreedValuesGoesBackToTheDisk) {
  SpillFiles files(folder_, 300 * kMiB);
  std::vector<SpilledValue> values;
  for (unsigned i = 0; i < 1000; ++i) values.push_back(WriteOne(files, SomeBytes(50'000, i)));
  const std::uint64_t full = BytesOnDisk(folder_);
  ASSERT_GE(full, 1000u * 50'000);
  for (unsigned i = 1; i < 1000; ++i) files.Free(values[i]);
  EXPECT_EQ(files.used_bytes(), 50'000u);
  EXPECT_EQ(ReadOne(files, values[0]), SomeBytes(50'000, 0));
  const std::uint64_t left = BytesOnDisk(folder_);
  if (left == full) GTEST_SKIP() << "this file system takes no holes";
  EXPECT_LE(left, 50'000u + 2 * 4096);
}

TEST_F(SpillFilesTest, AFolderThatCannotBeWrittenIsNamedAtOnce) {
  try {
    SpillFiles files("/proc/self", kMiB);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/proc/self"), std::string::npos);
  }
}

ErrorCode ReadCode(const SpillFiles& files, const SpilledValue& value) {
  try {
    ReadOne(files, value);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

// The descriptor of the one file that this process has open in `folder`, though it has no name.
int OpenFileIn(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // The iterator's own descriptor is listed too.
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (target.starts_with(folder + "/")) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

TEST_F(SpillFilesTest, DamagedValuesAreDataLoss) {
  SpillFiles files(folder_, kMiB);
  const SpilledValue first = WriteOne(files, SomeBytes(1000, 1));
  const SpilledValue second = WriteOne(files, SomeBytes(1000, 2));
  const SpilledValue third = WriteOne(files, SomeBytes(1000, 3));
  const int file = OpenFileIn(folder_);
  ASSERT_GE(file, 0);
  const std::byte flipped = SomeBytes(1000, 2)[500] ^ std::byte{1};
  ASSERT_EQ(pwrite(file, &flipped, 1, static_cast<off_t>(second.offset + 500)), 1);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(third.offset + 999)), 0);
  EXPECT_EQ(ReadOne(files, first), SomeBytes(1000, 1));
  EXPECT_EQ(ReadCode(files, second), ErrorCode::kDataLoss);
  EXPECT_EQ(ReadCode(files, third), ErrorCode::kDataLoss);
}

TEST_F(SpillFilesTest, ThreadsSpillAndReadAtTheSameTime) {
  SpillFiles files(folder_, 500 * kMiB);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      std::vector<std::pair<SpilledValue, unsigned>> values;
      for (unsigned i = 0; i < 200; ++i) {
        const unsigned seed = thread * 1000 + i;
        values.emplace_back(WriteOne(files, SomeBytes(random() % 20'000, seed)), seed);
        auto& chosen = values[random() % values.size()];
        EXPECT_EQ(ReadOne(files, chosen.first), SomeBytes(chosen.first.bytes, chosen.second));
        if (random() % 2 == 0) {
          files.Free(chosen.first);
          chosen = values.back();
          values.pop_back();
        }
      }
      for (const auto& [value, seed] : values) files.Free(value);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files.used_bytes(), 0u);
}

}  // namespace
}  // namespace menger
