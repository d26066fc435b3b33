#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/calls/runtime.h"
#include "menger/runtime/driver/local_node.h"

// Values that do not fit in memory, with real workers.
namespace menger {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::uint32_t>;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::chrono::seconds kPatience{60};

// What a value must be follows from its number.
Words Value(std::uint32_t seed, std::size_t bytes) {
  std::minstd_rand random(seed + 1);
  Words words(bytes / sizeof(std::uint32_t));
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

Words Make(std::uint32_t seed, std::size_t bytes) { return Value(seed, bytes); }
bool IsValue(const Words& words, std::uint32_t seed, std::size_t bytes) {
  return words == Value(seed, bytes);
}
Words JoinTwo(const Words& a, const Words& b) {
  Words joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  return joined;
}
bool IsValueInside(Runtime& runtime, const ObjectRef<Words>& words, std::uint32_t seed,
                   std::size_t bytes) {
  return runtime.Get(words) == Value(seed, bytes);
}

class SpillingTest : public testing::Test {
 protected:
  SpillingTest() {
    std::string name = testing::TempDir() + "spilling_test.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~SpillingTest() override { std::filesystem::remove_all(folder_); }

  RuntimeOptions Options(std::uint64_t store_bytes) const {
    return {.workers = 2, .store_bytes_max = store_bytes, .spill_folder = folder_};
  }
  static LocalNode::StoreUse Store(Runtime& runtime) {
    return static_cast<LocalNode&>(runtime.client()).Store();
  }
  // What is told without a wait arrives soon.
  // By values: workers keep some room for those to come.
  static std::uint64_t BytesUsedInTheEnd(Runtime& runtime) {
    const Deadline deadline = Deadline::After(kPatience);
    const auto used = [&] {
      const LocalNode::StoreUse use = Store(runtime);
      return use.used_bytes - use.granted_bytes;
    };
    while (used() > 0 && !deadline.expired()) usleep(1000);
    return used();
  }

  std::string folder_;
};

TEST_F(SpillingTest, TenTimesTheStoreComesBackAsItWas) {
  constexpr std::size_t kBytes = kMiB / 2;
  Runtime runtime(Options(8 * kMiB));
  std::vector<ObjectRef<Words>> values;
  for (std::uint32_t i = 0; i < 160; ++i) {
    values.push_back(i % 2 == 0 ? runtime.Put(Value(i, kBytes)) : runtime.Call<Make>(i, kBytes));
  }
  std::vector<ObjectRef<bool>> right;
  for (std::uint32_t i = 0; i < 160; ++i) {
    right.push_back(runtime.Call<IsValue>(values[i], i, kBytes));
    right.push_back(runtime.Call<IsValueInside>(values[159 - i], 159 - i, kBytes));
  }
  for (std::uint32_t i = 0; i < 160; ++i) ASSERT_EQ(runtime.Get(values[i]), Value(i, kBytes)) << i;
  for (const bool one : runtime.Get(right)) EXPECT_TRUE(one);
  const LocalNode::StoreUse use = Store(runtime);
  EXPECT_GT(use.spiller.spilled_bytes, 70 * kMiB);
  EXPECT_GT(use.spiller.restored_bytes, 70 * kMiB);
  EXPECT_LE(use.used_bytes, 8 * kMiB);
  EXPECT_LE(use.resident_bytes, 8 * kMiB);
  values.clear();
  EXPECT_EQ(BytesUsedInTheEnd(runtime), 0);
}

// Of this process's segments: what the system has given for them.
std::uint64_t ValueBytesOfThisProcess() {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    const std::string target = std::filesystem::read_symlink(entry.path(), none);
    struct stat status = {};
    if (!target.starts_with("/memfd:menger-values")) continue;
    if (stat(entry.path().c_str(), &status) == 0) bytes += status.st_blocks * 512ULL;
  }
  return bytes;
}

TEST_F(SpillingTest, AReferenceThatOutlivesTheRuntimeKeepsNoMemory) {
  ObjectRef<Words> outlives;
  Fetched pinned;
  {
    Runtime runtime(Options(64 * kMiB));
    outlives = runtime.Put(Value(1, 16 * kMiB));
    const auto read = runtime.Put(Value(2, kMiB));
    pinned = runtime.client().Get({&read.handle(), 1}, Deadline::After(kPatience));
    EXPECT_GT(ValueBytesOfThisProcess(), 17 * kMiB);
  }
  EXPECT_LT(ValueBytesOfThisProcess(), 2 * kMiB);
  EXPECT_GT(ValueBytesOfThisProcess(), kMiB - 1);
}

// Two arguments need the whole store but one value: neither may push the other out.
TEST_F(SpillingTest, ArgumentsOfACallAreThereTogether) {
  constexpr std::size_t kBytes = 2 * kMiB;
  Runtime runtime(Options(9 * kMiB));
  std::vector<ObjectRef<Words>> values;
  for (std::uint32_t i = 0; i < 8; ++i) values.push_back(runtime.Put(Value(i, kBytes)));
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::uint32_t other = 7 - i;
    const Words joined = runtime.Get(runtime.Call<JoinTwo>(values[i], values[other]));
    ASSERT_EQ(joined, JoinTwo(Value(i, kBytes), Value(other, kBytes)));
  }
}

TEST_F(SpillingTest, AStoreFullOfPinnedValuesNamesWhoHasThem) {
  Runtime runtime(Options(4 * kMiB));
  const ObjectRef<Words> first = runtime.Put(Value(1, 3 * kMiB));
  auto pinned = std::make_unique<Pinned<Words>>(runtime.Pin(first));
  try {
    runtime.Put(Value(2, 2 * kMiB));
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), FailureKind::kOutOfMemory);
    EXPECT_THAT(error.what(), HasSubstr(ToString(first.handle().id())));
    EXPECT_THAT(error.what(), HasSubstr("by the driver"));
  }
  // A worker's result, and a value that comes back.
  EXPECT_THROW(runtime.Get(runtime.Call<Make>(3, 2 * kMiB)), TaskError);
  pinned.reset();
  const ObjectRef<Words> second = runtime.Put(Value(2, 2 * kMiB));
  const Pinned<Words> again = runtime.Pin(second);
  EXPECT_THROW(runtime.Get(first), TaskError);
  EXPECT_THROW(runtime.Get(runtime.Call<IsValue>(first, 1, 3 * kMiB)), TaskError);
}

TEST_F(SpillingTest, ADiskThatIsFullIsNamed) {
  RuntimeOptions options = Options(4 * kMiB);
  options.spill_bytes_max = 5 * kMiB;
  Runtime runtime(options);
  std::vector<ObjectRef<Words>> values;
  try {
    for (std::uint32_t i = 0; i < 20; ++i) values.push_back(runtime.Put(Value(i, kMiB)));
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), FailureKind::kOutOfMemory);
    EXPECT_THAT(error.what(), HasSubstr("of a budget of 5242880 bytes"));
  }
  // Three in memory and four on the disk, each a little more than 1 MiB.
  ASSERT_EQ(values.size(), 7u);
  for (const std::uint32_t i : {6, 5, 4}) EXPECT_EQ(runtime.Get(values[i]), Value(i, kMiB));
  // The others find a place as soon as one of these goes.
  values.pop_back();
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(runtime.Get(values[i]), Value(i, kMiB));
}

// Overwrites whatever lies in files of the folder, which have no names.
void DamageFiles(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (error || !target.starts_with(folder)) continue;
    const int file = std::stoi(entry.path().filename().string());
    const off_t end = lseek(file, 0, SEEK_END);
    for (off_t at = 1000; at < end; at += 4096) ASSERT_EQ(pwrite(file, "damage", 6, at), 6);
  }
}

TEST_F(SpillingTest, WhatIsDamagedOnTheDiskIsMadeAgainOrLost) {
  Runtime runtime(Options(4 * kMiB));
  const ObjectRef<Words> put = runtime.Put(Value(1, kMiB));
  const ObjectRef<Words> made = runtime.Call<Make>(2, kMiB);
  const ObjectRef<Words> joined = runtime.Call<JoinTwo>(made, made);
  ASSERT_EQ(runtime.Get(joined).size(), 2 * kMiB / sizeof(std::uint32_t));
  std::vector<ObjectRef<Words>> others;
  for (std::uint32_t i = 0; i < 8; ++i) others.push_back(runtime.Put(Value(i, kMiB)));
  DamageFiles(folder_);
  EXPECT_EQ(runtime.Get(joined), JoinTwo(Value(2, kMiB), Value(2, kMiB)));
  EXPECT_TRUE(runtime.Get(runtime.Call<IsValue>(made, 2, kMiB)));
  try {
    runtime.Get(runtime.Call<IsValue>(put, 1, kMiB));
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is lost"));
  }
  EXPECT_GE(Store(runtime).spiller.lost, 2u);
}

// ---- Workers that die.

Words DieOrMake(Runtime& runtime, const ObjectRef<Words>& other, std::uint32_t seed,
                std::size_t bytes) {
  // It has a value pinned, has put one, and perhaps room for a result.
  const Pinned<Words> pinned = runtime.Pin(other);
  const ObjectRef<Words> put = runtime.Put(*pinned);
  std::random_device random;
  if (random() % 3 == 0) raise(SIGKILL);
  return Value(seed, bytes);
}

TEST_F(SpillingTest, WorkersThatDieLeakNothingSlow) {
  Runtime runtime(Options(16 * kMiB));
  for (std::uint32_t round = 0; round < 10; ++round) {
    const ObjectRef<Words> other = runtime.Put(Value(0, kMiB));
    std::vector<ObjectRef<Words>> values;
    for (std::uint32_t i = 0; i < 6; ++i) {
      const std::size_t bytes = i % 2 == 0 ? 100'000 : kMiB;
      values.push_back(runtime.CallWith<DieOrMake>({.retries = 1000}, other, i, bytes));
    }
    for (std::uint32_t i = 0; i < 6; ++i) {
      ASSERT_EQ(runtime.Get(values[i]), Value(i, i % 2 == 0 ? 100'000 : kMiB));
    }
  }
  // What living workers have ahead is theirs.
  const Deadline deadline = Deadline::After(kPatience);
  LocalNode::StoreUse use = Store(runtime);
  for (; use.used_bytes != use.granted_bytes && !deadline.expired(); use = Store(runtime)) {
    usleep(1000);
  }
  EXPECT_EQ(use.used_bytes, use.granted_bytes);
  EXPECT_LE(use.granted_bytes, 4 * kMiB);
}

// ---- A driver that is killed.

// Never returns. Where it fails it ends, and so does the pipe.
[[noreturn]] void SpillAndSaySo(const RuntimeOptions& options, int pipe) {
  Runtime runtime(options);
  std::vector<ObjectRef<Words>> values;
  for (std::uint32_t i = 0; i < 16; ++i) values.push_back(runtime.Put(Value(i, kMiB)));
  if (write(pipe, "r", 1) == 1) sleep(1000);
  _exit(1);
}

TEST_F(SpillingTest, NothingStaysOnTheDiskWhereTheDriverIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t driver = fork();
  if (driver == 0) SpillAndSaySo(Options(4 * kMiB), ends[1]);
  close(ends[1]);
  char said = 0;
  EXPECT_EQ(read(ends[0], &said, 1), 1);
  close(ends[0]);
  kill(driver, SIGKILL);
  EXPECT_EQ(waitpid(driver, nullptr, 0), driver);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace menger
