#include "menger/runtime/control/embedded_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/control/store_testing.h"

namespace menger {
namespace {

using Operation = StoreOperation;
using Outcome = StoreResult::Outcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_stores::Do;
using testing_stores::Soon;

constexpr StoreTable kTable = StoreTable::kActors;
constexpr StoreTable kOther = StoreTable::kNames;

std::vector<std::string> Keys(const std::vector<StoreRecord>& records) {
  std::vector<std::string> keys;
  for (const StoreRecord& record : records) keys.push_back(record.key);
  return keys;
}

TEST(EmbeddedStoreTest, WhatWasPutIsGotWithTheVersionOfThePut) {
  EmbeddedStore store;
  const std::string value("a\0\xff", 3);
  const StoreVersion version = Do(store, Operation::Put(kTable, "k", value)).record.version;
  const StoreRecord record = Do(store, Operation::Get(kTable, "k")).record;
  EXPECT_EQ(record.value, value);
  EXPECT_EQ(record.version, version);
  EXPECT_EQ(Do(store, Operation::Get(kOther, "k")).record.version, 0u);
}

TEST(EmbeddedStoreTest, AConditionThatDoesNotHoldChangesNothingAndTellsTheVersion) {
  EmbeddedStore store;
  const StoreVersion first = Do(store, Operation::PutIf(kTable, "k", 0, "1")).record.version;
  EXPECT_GT(first, 0u);
  const StoreResult again = Do(store, Operation::PutIf(kTable, "k", 0, "2"));
  EXPECT_EQ(again.outcome, Outcome::kConflict);
  EXPECT_EQ(again.record.version, first);
  EXPECT_EQ(Do(store, Operation::DeleteIf(kTable, "k", first + 1)).outcome, Outcome::kConflict);
  EXPECT_EQ(Do(store, Operation::Get(kTable, "k")).record.value, "1");
  EXPECT_TRUE(Do(store, Operation::PutIf(kTable, "k", first, "3")).done());
  EXPECT_EQ(Do(store, Operation::Get(kTable, "k")).record.value, "3");
}

TEST(EmbeddedStoreTest, AKeyMadeAgainHasAnotherVersion) {
  EmbeddedStore store;
  const StoreVersion first = Do(store, Operation::Put(kTable, "k", "")).record.version;
  EXPECT_TRUE(Do(store, Operation::DeleteIf(kTable, "k", first)).done());
  EXPECT_GT(Do(store, Operation::PutIf(kTable, "k", 0, "")).record.version, first);
}

TEST(EmbeddedStoreTest, ABatchIsNotATransaction) {
  EmbeddedStore store;
  const auto results =
      RunBatch(store,
               {Operation::Put(kTable, "a", "1"), Operation::PutIf(kTable, "a", 0, "2"),
                Operation::Put(kTable, std::string(3000, 'x'), ""), Operation::Put(kTable, "", ""),
                Operation::Delete(kTable, "none"), Operation::Get(kTable, "a")},
               Soon());
  EXPECT_TRUE(results[0].done());
  EXPECT_EQ(results[1].outcome, Outcome::kConflict);
  EXPECT_THAT(results[2].error->what(), HasSubstr("key of the control store has 3000 bytes"));
  EXPECT_EQ(results[3].error->code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(results[4].done());
  EXPECT_EQ(results[5].record.value, "1");
}

TEST(EmbeddedStoreTest, WhatComesAfterItsDeadlineIsNotDone) {
  EmbeddedStore store;
  std::vector<StoreResult> results;
  store.Submit({Operation::Put(kTable, "a", "1")}, Deadline::After(std::chrono::seconds(0)),
               [&](std::vector<StoreResult> given) { results = std::move(given); });
  EXPECT_EQ(results.at(0).error->code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(Do(store, Operation::Get(kTable, "a")).record.version, 0u);
}

TEST(EmbeddedStoreTest, PagesAreInTheOrderOfTheBytesOfKeysWithThePrefix) {
  EmbeddedStore store;
  for (const char* key : {"b/1", "a", "b/\xff", "b/10", "b/2", "c", "b"}) {
    Do(store, Operation::Put(kTable, key, key));
  }
  Do(store, Operation::Put(kOther, "b/3", ""));
  const StorePage page = RunScan(store, kTable, "b/", "", 2, Soon());
  EXPECT_THAT(Keys(page.records), ElementsAre("b/1", "b/10"));
  EXPECT_EQ(page.next, "b/10");
  const StorePage rest = RunScan(store, kTable, "b/", page.next, 2, Soon());
  EXPECT_THAT(Keys(rest.records), ElementsAre("b/2", "b/\xff"));
  EXPECT_EQ(rest.next, "");
  EXPECT_EQ(ScanAll(store, kTable, "", Soon()).size(), 7u);
}

// Against the obvious store: one map.
TEST(EmbeddedStoreTest, RandomOperationsDoWhatAMapDoes) {
  Random random = Random::FromSeed(5);
  EmbeddedStore store;
  std::map<std::string, std::pair<std::string, StoreVersion>> model;
  StoreVersion last = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "k" + std::to_string(random.Integers(0, 300));
    const std::string value = std::to_string(i);
    const bool is_there = model.contains(key);
    const StoreVersion expected = random.Integers(0, 2) == 0 || !is_there ? 0 : model[key].second;
    const bool holds = is_there ? expected == model[key].second : expected == 0;
    switch (random.Integers(0, 4)) {
      case 0: {
        const StoreResult result = Do(store, Operation::PutIf(kTable, key, expected, value));
        ASSERT_EQ(result.done(), holds);
        if (!holds) break;
        ASSERT_GT(result.record.version, last);
        last = result.record.version;
        model[key] = {value, last};
        break;
      }
      case 1:
        ASSERT_EQ(Do(store, Operation::DeleteIf(kTable, key, expected)).done(), holds);
        if (holds) model.erase(key);
        break;
      case 2:
        ASSERT_EQ(Do(store, Operation::Get(kTable, key)).record.value,
                  is_there ? model[key].first : "");
        break;
      default: {
        const StorePage page = RunScan(store, kTable, "k1", key, 7, Soon());
        std::vector<std::string> keys;
        auto next = model.upper_bound(std::max(key, std::string("k1")));
        if (key < "k1") next = model.lower_bound("k1");
        for (; next != model.end() && next->first.starts_with("k1") && keys.size() < 7; ++next) {
          keys.push_back(next->first);
        }
        ASSERT_EQ(Keys(page.records), keys);
      }
    }
  }
}

TEST(EmbeddedStoreTest, OneOfManyThreadsWinsEachVersion) {
  EmbeddedStore store;
  Do(store, Operation::Put(kTable, "sum", "0"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int added = 0; added < 500;) {
        const StoreRecord now = Do(store, Operation::Get(kTable, "sum")).record;
        const std::string next = std::to_string(std::stoi(now.value) + 1);
        added += Do(store, Operation::PutIf(kTable, "sum", now.version, next)).done() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Do(store, Operation::Get(kTable, "sum")).record.value, "2000");
}

TEST(EmbeddedStoreTest, KeysOfALeaseThatIsOverAreMarkedAndItPutsNothing) {
  std::int64_t now = 1000;
  EmbeddedStore store({.now = [&] { return now; }});
  const std::chrono::nanoseconds duration(10);
  const LeaseEpoch first = Do(store, Operation::Acquire("n", duration)).record.version;
  const StoreResult taken = Do(store, Operation::Acquire("n", duration));
  EXPECT_EQ(taken.outcome, Outcome::kConflict);
  EXPECT_EQ(taken.record.version, first);
  const auto put = [&](LeaseEpoch lease) {
    return Do(store, Operation::Put(kTable, "k", "1").BoundTo(lease));
  };
  EXPECT_TRUE(put(first).done());
  EXPECT_FALSE(Do(store, Operation::Get(kTable, "k")).record.expired);

  now += 9;
  EXPECT_TRUE(Do(store, Operation::Renew(first, duration)).done());
  now += 9;
  EXPECT_FALSE(Do(store, Operation::Get(kTable, "k")).record.expired);
  now += 1;
  const StoreRecord record = Do(store, Operation::Get(kTable, "k")).record;
  EXPECT_TRUE(record.expired);
  EXPECT_EQ(record.lease, first);
  EXPECT_EQ(put(first).error->code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(Do(store, Operation::Renew(first, duration)).outcome, Outcome::kConflict);

  const LeaseEpoch second = Do(store, Operation::Acquire("n", duration)).record.version;
  EXPECT_GT(second, first);
  EXPECT_EQ(Do(store, Operation::Renew(first, duration)).outcome, Outcome::kConflict);
  EXPECT_EQ(put(first).error->code(), ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(put(second).done());
  EXPECT_FALSE(Do(store, Operation::Get(kTable, "k")).record.expired);
  EXPECT_TRUE(Do(store, Operation::Renew(second, std::chrono::nanoseconds(0))).done());
  EXPECT_TRUE(Do(store, Operation::Get(kTable, "k")).record.expired);
}

TEST(EmbeddedStoreTest, AWatchHintsAtChangesOfItsKeysUntilItGoes) {
  EmbeddedStore store;
  int hints = 0;
  auto watch = store.Watch(kTable, "a/", [&] { ++hints; });
  Do(store, Operation::Put(kTable, "a/1", ""));
  EXPECT_EQ(hints, 1);
  Do(store, Operation::Put(kTable, "b", ""));
  Do(store, Operation::Put(kOther, "a/1", ""));
  Do(store, Operation::PutIf(kTable, "a/1", 0, ""));
  EXPECT_EQ(hints, 1);
  Do(store, Operation::Delete(kTable, "a/1"));
  EXPECT_EQ(hints, 2);
  watch.reset();
  Do(store, Operation::Put(kTable, "a/1", ""));
  EXPECT_EQ(hints, 2);
}

}  // namespace
}  // namespace menger
