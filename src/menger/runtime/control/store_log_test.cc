#include "menger/runtime/control/store_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/file_testing.h"
#include "menger/base/random.h"
#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/control/store_testing.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using Operation = StoreOperation;
using testing::HasSubstr;
using testing_files::ErrorText;
using testing_files::FlipBit;
using testing_files::Folder;
using testing_stores::Contents;
using testing_stores::Do;
using testing_stores::Soon;
using testing_stores::ValueOf;

constexpr StoreTable kTable = StoreTable::kActors;

StoreLogOptions LogIn(const Folder& folder, std::chrono::nanoseconds sync_every = {}) {
  return {.folder = folder / "store", .sync_every = sync_every};
}
EmbeddedStoreOptions Kept(const Folder& folder, std::chrono::nanoseconds sync_every = {}) {
  return {.journal = KeepInLog(LogIn(folder, sync_every))};
}

// The one file of a store that nobody has open.
std::string FileOf(const Folder& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder / "store")) {
    if (entry.path().extension() == ".log") files.push_back(entry.path().string());
  }
  EXPECT_EQ(files.size(), 1u);
  return files.front();
}

// Arguments of calls lie in it.
TEST(StoreLogTest, OnlyItsUserMayReadIt) {
  const Folder folder;
  {
    EmbeddedStore store(Kept(folder));
    Do(store, Operation::Put(kTable, "a", "1"));
  }
  constexpr auto kOthers = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(FileOf(folder)).permissions() & kOthers, fs::perms::none);
  EXPECT_EQ(fs::status(folder / "store").permissions() & kOthers, fs::perms::none);
}

TEST(StoreLogTest, AStoreOpenedAgainHoldsTheSameAndVersionsGoOn) {
  const Folder folder;
  StoreVersion version = 0;
  LeaseEpoch lease = 0;
  {
    EmbeddedStore store(Kept(folder));
    Do(store, Operation::Put(kTable, "a", "1"));
    Do(store, Operation::Put(StoreTable::kEvents, "a", std::string("\0\n", 2)));
    Do(store, Operation::Put(kTable, "gone", "1"));
    Do(store, Operation::Delete(kTable, "gone"));
    version = Do(store, Operation::Put(kTable, "a", "2")).record.version;
    lease = Do(store, Operation::Acquire("n", std::chrono::hours(1))).record.version;
    Do(store, Operation::Put(kTable, "bound", "").BoundTo(lease));
  }
  EmbeddedStore store(Kept(folder));
  const StoreRecord record = Do(store, Operation::Get(kTable, "a")).record;
  EXPECT_EQ(record.value, "2");
  EXPECT_EQ(record.version, version);
  EXPECT_EQ(ValueOf(store, StoreTable::kEvents, "a"), std::string("\0\n", 2));
  EXPECT_EQ(Contents(store, kTable).size(), 2u);
  EXPECT_TRUE(Do(store, Operation::Get(kTable, "bound")).record.expired);
  EXPECT_EQ(Do(store, Operation::Renew(lease, std::chrono::hours(1))).outcome,
            StoreResult::Outcome::kConflict);
  EXPECT_GT(Do(store, Operation::Acquire("n", std::chrono::hours(1))).record.version, lease);
}

TEST(StoreLogTest, AVersionThatWasLostWithThePowerIsNotGivenAgain) {
  const Folder folder;
  StoreVersion lost = 0;
  {
    EmbeddedStore store(Kept(folder, std::chrono::hours(1)));
    fs::copy(folder / "store", folder / "synced");
    lost = Do(store, Operation::Put(kTable, "a", "1")).record.version;
  }
  fs::remove_all(folder / "store");
  fs::rename(folder / "synced", folder / "store");
  EmbeddedStore store(Kept(folder));
  EXPECT_GT(Do(store, Operation::Put(kTable, "a", "1")).record.version, lost);
}

TEST(StoreLogTest, AFolderIsOneStoresAlone) {
  const Folder folder;
  EmbeddedStore store(Kept(folder));
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { EmbeddedStore again(Kept(folder)); }),
              HasSubstr("another process keeps control state in"));
}

// Wherever a file that was never synced is cut, the store is as after one of its changes, and no
// longer cut gives an older one.
TEST(StoreLogTest, ATornTailLosesOnlyTheLastChanges) {
  const Folder folder;
  std::vector<std::map<std::string, std::string>> states;
  {
    EmbeddedStore store(Kept(folder, std::chrono::hours(1)));
    states.push_back({});
    for (int i = 0; i < 12; ++i) {
      const std::string key = std::to_string(i % 5);
      Do(store, i % 4 == 3 ? Operation::Delete(kTable, key)
                           : Operation::Put(kTable, key, std::to_string(i)));
      states.push_back(Contents(store, kTable));
    }
    fs::copy(folder / "store", folder / "copy");  // As a killed process leaves it.
  }
  const std::string name = "/control-1.log";
  const auto size = static_cast<std::int64_t>(fs::file_size(folder / "copy" + name));
  std::size_t last = states.size();
  for (std::int64_t cut = 0; cut < size; cut += 7) {
    fs::remove_all(folder / "store");
    fs::copy(folder / "copy", folder / "store");
    fs::resize_file(folder / "store" + name, static_cast<std::uintmax_t>(size - cut));
    EmbeddedStore store(Kept(folder));
    const auto found = std::find(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(last),
                                 Contents(store, kTable));
    ASSERT_LT(found - states.begin(), last) << cut;
    last = static_cast<std::size_t>(found - states.begin()) + 1;
  }
  EXPECT_EQ(last, 1u);
}

TEST(StoreLogTest, DamageToWhatWasSyncedIsRefused) {
  const Folder folder;
  {
    EmbeddedStore store(Kept(folder));
    for (int i = 0; i < 5; ++i) Do(store, Operation::Put(kTable, std::to_string(i), "value"));
  }
  const std::string file = FileOf(folder);
  const std::uint64_t size = fs::file_size(file);
  const std::uint64_t mark_bytes = 56;  // The last frame, which says that all before is synced.
  for (std::uint64_t byte = 0; byte < size - mark_bytes; byte += 5) {
    FlipBit(file, byte, static_cast<int>(byte % 8));
    ASSERT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { EmbeddedStore store(Kept(folder)); }),
                HasSubstr(file))
        << byte;
    FlipBit(file, byte, static_cast<int>(byte % 8));
  }
  EmbeddedStore store(Kept(folder));
  EXPECT_EQ(Contents(store, kTable).size(), 5u);
}

TEST(StoreLogTest, AFileWhoseBeginWasCutShortLeavesTheOneBefore) {
  const Folder folder;
  {
    EmbeddedStore store(Kept(folder));
    Do(store, Operation::Put(kTable, "a", "1"));
  }
  fs::copy_file(FileOf(folder), folder / "store/control-2.log");
  {
    EmbeddedStore store(Kept(folder));
    EXPECT_EQ(ValueOf(store, kTable, "a"), "1");
  }
  EXPECT_THAT(FileOf(folder), HasSubstr("control-3.log"));
  fs::resize_file(FileOf(folder), 10);
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { EmbeddedStore store(Kept(folder)); }),
              HasSubstr("control-3.log' lacks what was alive when it was begun"));
}

// Puts and deletes keys, ten of which are alive at a time; the most bytes that its folder had.
std::uint64_t ChurnBytes(EmbeddedStore& store, const std::string& folder, int keys) {
  std::uint64_t most = 0;
  std::vector<Operation> batch;
  for (int i = 0; i < keys; ++i) {
    batch.push_back(Operation::Put(kTable, std::to_string(i), std::string(100, 'v')));
    if (i >= 10) batch.push_back(Operation::Delete(kTable, std::to_string(i - 10)));
    if (batch.size() < 100) continue;
    RunBatch(store, std::move(batch), Soon());
    batch.clear();
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::error_code removed;
      bytes += entry.path().extension() == ".log" ? entry.file_size(removed) : 0;
    }
    most = std::max(most, bytes);
  }
  return most;
}

TEST(StoreLogTest, ShortLivedKeysDoNotMakeTheFileGrow) {
  const Folder folder;
  StoreLogOptions options = LogIn(folder, std::chrono::seconds(1));
  options.file_bytes_min = 100'000;
  std::map<std::string, std::string> contents;
  {
    EmbeddedStore store({.journal = KeepInLog(options)});
    EXPECT_LT(ChurnBytes(store, folder / "store", 20'000), 150'000u);
    contents = Contents(store, kTable);
  }
  EXPECT_EQ(contents.size(), 10u);
  EmbeddedStore store({.journal = KeepInLog(options)});
  EXPECT_EQ(Contents(store, kTable), contents);
}

TEST(StoreLogTest, ChangesGoOnWhileTheFileIsBegunAnew) {
  const Folder folder;
  StoreLogOptions options = LogIn(folder, std::chrono::seconds(1));
  options.file_bytes_min = 10'000;
  std::map<std::string, std::string> contents;
  {
    EmbeddedStore store({.journal = KeepInLog(options)});
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        Random random = Random::FromSeed(static_cast<std::uint64_t>(t));
        for (int i = 0; i < 2000; ++i) {
          const std::string key = fmt::format("{}/{}", t, random.Integers(0, 50));
          Do(store, random.Integers(0, 3) == 0 ? Operation::Delete(kTable, key)
                                               : Operation::Put(kTable, key, std::to_string(i)));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    contents = Contents(store, kTable);
  }
  EmbeddedStore store({.journal = KeepInLog(options)});
  EXPECT_EQ(Contents(store, kTable), contents);
}

TEST(StoreLogTest, AFullDiskMakesChangesDoubtfulAndReadsGoOn) {
  const Folder folder;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  EmbeddedStore store(Kept(folder, std::chrono::hours(1)));
  Do(store, Operation::Put(kTable, "a", "1"));
  const rlimit small{.rlim_cur = 2000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const StoreResult full = Do(store, Operation::Put(kTable, "b", std::string(3000, 'x')));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  ASSERT_TRUE(full.error);
  EXPECT_EQ(full.error->code(), ErrorCode::kUnavailable);
  EXPECT_THAT(full.error->what(), HasSubstr("control-1.log"));
  EXPECT_EQ(Do(store, Operation::Put(kTable, "c", "1")).error->code(), ErrorCode::kUnavailable);
  EXPECT_EQ(ValueOf(store, kTable, "a"), "1");
}

TEST(StoreLogTest, TooMuchThatWaitsIsRefused) {
  const Folder folder;
  StoreLogOptions options = LogIn(folder);
  options.waiting_bytes_max = 1000;
  EmbeddedStore store({.journal = KeepInLog(options)});
  // Many changes of one batch are taken, since it was not full before.
  std::atomic<int> refused = 0;
  std::atomic<int> answers = 0;
  for (int i = 0; i < 1000; ++i) {
    store.Submit({Operation::Put(kTable, "a", std::string(2000, 'x'))}, Soon(),
                 [&](const std::vector<StoreResult>& results) {
                   if (!results[0].done()) ++refused;
                   ++answers;
                 });
  }
  while (answers < 1000) std::this_thread::yield();
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 1000);
}

// What a process that is killed has told before: of each key the last value that was acknowledged.
struct Acknowledged {
  static constexpr int kKeys = 8;
  std::atomic<int> values[kKeys];
};

// Values of a key count from 1; with each is put a key of its own, and that of the value before is
// deleted.
std::string OwnKey(int key, int value) { return fmt::format("own/{}/{:09}", key, value); }

void WriteUntilKilled(const Folder& folder, std::chrono::nanoseconds sync_every,
                      Acknowledged& acknowledged) {
  StoreLogOptions options = LogIn(folder, sync_every);
  options.file_bytes_min = 5000;
  EmbeddedStore store({.journal = KeepInLog(options)});
  std::atomic<int> waiting = 0;
  for (int i = 0;; ++i) {
    const int key = i % Acknowledged::kKeys;
    const int value = i / Acknowledged::kKeys + 1;
    while (waiting > 20) std::this_thread::yield();
    ++waiting;
    store.Submit({Operation::Put(kTable, std::to_string(key), std::to_string(value)),
                  Operation::Put(kTable, OwnKey(key, value), ""),
                  Operation::Delete(kTable, OwnKey(key, value - 1))},
                 Soon(), [&, key, value](const std::vector<StoreResult>& results) {
                   if (std::ranges::all_of(results, &StoreResult::done)) {
                     acknowledged.values[key] = value;
                   }
                   --waiting;
                 });
  }
}

TEST(StoreLogTest, WhatWasAcknowledgedSurvivesKill9) {
  void* const shared = mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Random random = Random::FromSeed(1);
  int told = 0;
  for (int round = 0; round < 20; ++round) {
    const Folder folder;
    auto& acknowledged = *new (shared) Acknowledged{};
    const pid_t child = fork();
    if (child == 0) {
      WriteUntilKilled(folder, std::chrono::milliseconds(round % 2 == 0 ? 0 : 5), acknowledged);
    }
    usleep(static_cast<useconds_t>(random.Integers(2'000, 60'000)));
    if (round == 19) {  // On however busy a machine, some round comes so far.
      const Deadline deadline = Soon();
      while (acknowledged.values[0] <= 10 && !deadline.expired()) usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EmbeddedStore store(Kept(folder));
    for (int key = 0; key < Acknowledged::kKeys; ++key) {
      const int value = acknowledged.values[key];
      told = std::max(told, value);
      if (value == 0) continue;
      // Later ones may be there, too: they were not acknowledged yet.
      const std::string text = ValueOf(store, kTable, std::to_string(key));
      ASSERT_GE(text.empty() ? 0 : std::stoi(text), value) << key;
      const auto own = ScanAll(store, kTable, fmt::format("own/{}/", key), Soon());
      ASSERT_FALSE(own.empty());
      EXPECT_GE(own.front().key, OwnKey(key, value));
    }
  }
  EXPECT_GT(told, 10);
  munmap(shared, sizeof(Acknowledged));
}

}  // namespace
}  // namespace menger
