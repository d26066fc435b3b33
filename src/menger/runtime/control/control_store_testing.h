#pragma once

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

// What every control store promises. Instantiated with a World that has one: `store()`, the time by
// which its leases end, `now`, and how much it shall do, kRandomOperations and kAdditions.

namespace menger::testing_stores {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr StoreTable kTable = StoreTable::kActors;
constexpr StoreTable kOther = StoreTable::kNames;

inline std::vector<std::string> Keys(const std::vector<StoreRecord>& records) {
  std::vector<std::string> keys;
  for (const StoreRecord& record : records) keys.push_back(record.key);
  return keys;
}

template <typename World>
class ControlStoreTest : public testing::Test {
 protected:
  World world_;
};
TYPED_TEST_SUITE_P(ControlStoreTest);

TYPED_TEST_P(ControlStoreTest, WhatWasPutIsGotWithTheVersionOfThePut) {
  ControlStore& store = this->world_.store();
  const std::string value("a\0\xff", 3);
  const StoreVersion version = Do(store, StoreOperation::Put(kTable, "k", value)).record.version;
  const StoreRecord record = Do(store, StoreOperation::Get(kTable, "k")).record;
  EXPECT_EQ(record.value, value);
  EXPECT_EQ(record.version, version);
  EXPECT_EQ(Do(store, StoreOperation::Get(kOther, "k")).record.version, 0u);
}

TYPED_TEST_P(ControlStoreTest, AConditionThatDoesNotHoldChangesNothingAndTellsTheVersion) {
  ControlStore& store = this->world_.store();
  const StoreVersion first = Do(store, StoreOperation::PutIf(kTable, "k", 0, "1")).record.version;
  EXPECT_GT(first, 0u);
  const StoreResult again = Do(store, StoreOperation::PutIf(kTable, "k", 0, "2"));
  EXPECT_EQ(again.outcome, StoreResult::Outcome::kConflict);
  EXPECT_EQ(again.record.version, first);
  EXPECT_EQ(Do(store, StoreOperation::DeleteIf(kTable, "k", first + 1)).outcome,
            StoreResult::Outcome::kConflict);
  EXPECT_EQ(Do(store, StoreOperation::Get(kTable, "k")).record.value, "1");
  EXPECT_TRUE(Do(store, StoreOperation::PutIf(kTable, "k", first, "3")).done());
  EXPECT_EQ(Do(store, StoreOperation::Get(kTable, "k")).record.value, "3");
}

TYPED_TEST_P(ControlStoreTest, AKeyMadeAgainHasAnotherVersion) {
  ControlStore& store = this->world_.store();
  const StoreVersion first = Do(store, StoreOperation::Put(kTable, "k", "")).record.version;
  EXPECT_TRUE(Do(store, StoreOperation::DeleteIf(kTable, "k", first)).done());
  EXPECT_GT(Do(store, StoreOperation::PutIf(kTable, "k", 0, "")).record.version, first);
}

TYPED_TEST_P(ControlStoreTest, ABatchIsNotATransaction) {
  ControlStore& store = this->world_.store();
  const auto results = RunBatch(
      store,
      {StoreOperation::Put(kTable, "a", "1"), StoreOperation::PutIf(kTable, "a", 0, "2"),
       StoreOperation::Put(kTable, std::string(3000, 'x'), ""), StoreOperation::Put(kTable, "", ""),
       StoreOperation::Delete(kTable, "none"), StoreOperation::Get(kTable, "a")},
      Soon());
  EXPECT_TRUE(results[0].done());
  EXPECT_EQ(results[1].outcome, StoreResult::Outcome::kConflict);
  EXPECT_THAT(results[2].error->what(), HasSubstr("key of the control store has 3000 bytes"));
  EXPECT_EQ(results[3].error->code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(results[4].done());
  EXPECT_EQ(results[5].record.value, "1");
}

TYPED_TEST_P(ControlStoreTest, WhatComesAfterItsDeadlineIsNotDone) {
  ControlStore& store = this->world_.store();
  std::vector<StoreResult> results;
  store.Submit({StoreOperation::Put(kTable, "a", "1")}, Deadline::After(std::chrono::seconds(0)),
               [&](std::vector<StoreResult> given) { results = std::move(given); });
  EXPECT_EQ(results.at(0).error->code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(Do(store, StoreOperation::Get(kTable, "a")).record.version, 0u);
}

TYPED_TEST_P(ControlStoreTest, PagesAreInTheOrderOfTheBytesOfKeysWithThePrefix) {
  ControlStore& store = this->world_.store();
  for (const char* key : {"b/1", "a", "b/\xff", "b/10", "b/2", "c", "b"}) {
    Do(store, StoreOperation::Put(kTable, key, key));
  }
  Do(store, StoreOperation::Put(kOther, "b/3", ""));
  const StorePage page = RunScan(store, kTable, "b/", "", 2, Soon());
  EXPECT_THAT(Keys(page.records), ElementsAre("b/1", "b/10"));
  EXPECT_EQ(page.next, "b/10");
  const StorePage rest = RunScan(store, kTable, "b/", page.next, 2, Soon());
  EXPECT_THAT(Keys(rest.records), ElementsAre("b/2", "b/\xff"));
  EXPECT_EQ(rest.next, "");
  EXPECT_EQ(ScanAll(store, kTable, "", Soon()).size(), 7u);
}

// Against the obvious store: one map.
TYPED_TEST_P(ControlStoreTest, RandomOperationsDoWhatAMapDoes) {
  Random random = Random::FromSeed(5);
  ControlStore& store = this->world_.store();
  std::map<std::string, std::pair<std::string, StoreVersion>> model;
  StoreVersion last = 0;
  for (int i = 0; i < TypeParam::kRandomOperations; ++i) {
    const std::string key = "k" + std::to_string(random.Integers(0, 300));
    const std::string value = std::to_string(i);
    const bool is_there = model.contains(key);
    const StoreVersion expected = random.Integers(0, 2) == 0 || !is_there ? 0 : model[key].second;
    const bool holds = is_there ? expected == model[key].second : expected == 0;
    switch (random.Integers(0, 4)) {
      case 0: {
        const StoreResult result = Do(store, StoreOperation::PutIf(kTable, key, expected, value));
        ASSERT_EQ(result.done(), holds);
        if (!holds) break;
        ASSERT_GT(result.record.version, last);
        last = result.record.version;
        model[key] = {value, last};
        break;
      }
      case 1:
        ASSERT_EQ(Do(store, StoreOperation::DeleteIf(kTable, key, expected)).done(), holds);
        if (holds) model.erase(key);
        break;
      case 2:
        ASSERT_EQ(Do(store, StoreOperation::Get(kTable, key)).record.value,
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

TYPED_TEST_P(ControlStoreTest, OneOfManyThreadsWinsEachVersion) {
  ControlStore& store = this->world_.store();
  Do(store, StoreOperation::Put(kTable, "sum", "0"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int added = 0; added < TypeParam::kAdditions;) {
        const StoreRecord now = Do(store, StoreOperation::Get(kTable, "sum")).record;
        const std::string next = std::to_string(std::stoi(now.value) + 1);
        added += Do(store, StoreOperation::PutIf(kTable, "sum", now.version, next)).done() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Do(store, StoreOperation::Get(kTable, "sum")).record.value,
            std::to_string(4 * TypeParam::kAdditions));
}

TYPED_TEST_P(ControlStoreTest, KeysOfALeaseThatIsOverAreMarkedAndItPutsNothing) {
  ControlStore& store = this->world_.store();
  std::atomic<std::int64_t>& now = this->world_.now;
  const std::chrono::nanoseconds duration(10);
  const LeaseEpoch first = Do(store, StoreOperation::Acquire("n", duration)).record.version;
  const StoreResult taken = Do(store, StoreOperation::Acquire("n", duration));
  EXPECT_EQ(taken.outcome, StoreResult::Outcome::kConflict);
  EXPECT_EQ(taken.record.version, first);
  const auto put = [&](LeaseEpoch lease) {
    return Do(store, StoreOperation::Put(kTable, "k", "1").BoundTo(lease));
  };
  EXPECT_TRUE(put(first).done());
  EXPECT_FALSE(Do(store, StoreOperation::Get(kTable, "k")).record.expired);

  now += 9;
  EXPECT_TRUE(Do(store, StoreOperation::Renew(first, duration)).done());
  now += 9;
  EXPECT_FALSE(Do(store, StoreOperation::Get(kTable, "k")).record.expired);
  now += 1;
  const StoreRecord record = Do(store, StoreOperation::Get(kTable, "k")).record;
  EXPECT_TRUE(record.expired);
  EXPECT_EQ(record.lease, first);
  EXPECT_EQ(put(first).error->code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(Do(store, StoreOperation::Renew(first, duration)).outcome,
            StoreResult::Outcome::kConflict);

  const LeaseEpoch second = Do(store, StoreOperation::Acquire("n", duration)).record.version;
  EXPECT_GT(second, first);
  EXPECT_EQ(Do(store, StoreOperation::Renew(first, duration)).outcome,
            StoreResult::Outcome::kConflict);
  EXPECT_EQ(put(first).error->code(), ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(put(second).done());
  EXPECT_FALSE(Do(store, StoreOperation::Get(kTable, "k")).record.expired);
  EXPECT_TRUE(Do(store, StoreOperation::Renew(second, std::chrono::nanoseconds(0))).done());
  EXPECT_TRUE(Do(store, StoreOperation::Get(kTable, "k")).record.expired);
}

REGISTER_TYPED_TEST_SUITE_P(ControlStoreTest, WhatWasPutIsGotWithTheVersionOfThePut,
                            AConditionThatDoesNotHoldChangesNothingAndTellsTheVersion,
                            AKeyMadeAgainHasAnotherVersion, ABatchIsNotATransaction,
                            WhatComesAfterItsDeadlineIsNotDone,
                            PagesAreInTheOrderOfTheBytesOfKeysWithThePrefix,
                            RandomOperationsDoWhatAMapDoes, OneOfManyThreadsWinsEachVersion,
                            KeysOfALeaseThatIsOverAreMarkedAndItPutsNothing);

}  // namespace menger::testing_stores
