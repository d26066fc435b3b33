#include "menger/runtime/faulty_store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "menger/runtime/embedded_store.h"
#include "menger/runtime/store_testing.h"

namespace menger {
namespace {

using Operation = StoreOperation;
using testing_stores::Soon;
using testing_stores::ValueOf;

constexpr StoreTable kTable = StoreTable::kObjects;

TEST(FaultyStoreTest, NothingHappensBeforeAdvanceAndAllOfItInTheEnd) {
  EmbeddedStore inner;
  FaultyStore store(inner, {.seed = 1});
  int answers = 0;
  store.Submit({Operation::Put(kTable, "a", "1"), Operation::Put(kTable, "b", "2")}, Soon(),
               [&](const std::vector<StoreResult>& results) {
                 ++answers;
                 EXPECT_TRUE(results.at(0).done() && results.at(1).done());
               });
  EXPECT_EQ(ValueOf(inner, kTable, "a"), "");
  int steps = 0;
  while (store.Advance()) ++steps;
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(ValueOf(inner, kTable, "b"), "2");
}

TEST(FaultyStoreTest, OperationsOnOneKeyKeepTheirOrderAndOthersDoNot) {
  bool reordered = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EmbeddedStore inner;
    FaultyStore store(inner, {.seed = seed});
    StoreVersion a = 0;
    StoreVersion b = 0;
    store.Submit({Operation::Put(kTable, "a", "1"), Operation::Put(kTable, "k", "1")}, Soon(),
                 [&](const std::vector<StoreResult>& results) { a = results[0].record.version; });
    store.Submit({Operation::Put(kTable, "b", "2"), Operation::Put(kTable, "k", "2")}, Soon(),
                 [&](const std::vector<StoreResult>& results) { b = results[0].record.version; });
    while (store.Advance()) continue;
    EXPECT_EQ(ValueOf(inner, kTable, "k"), "2") << seed;
    reordered |= b < a;
  }
  EXPECT_TRUE(reordered);
}

TEST(FaultyStoreTest, SomeFailSomeAreDoubtfulAndTheSeedSaysWhich) {
  const auto run = [](std::uint64_t seed) {
    EmbeddedStore inner;
    FaultyStore store(inner, {.seed = seed, .fails = 0.3, .is_doubtful = 0.3});
    std::vector<std::pair<bool, bool>> outcomes(50);  // Said to be done, and is done.
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      store.Submit({Operation::Put(kTable, std::to_string(i), "v")}, Soon(),
                   [&outcomes, i](const std::vector<StoreResult>& results) {
                     outcomes[i].first = results[0].done();
                     if (results[0].error) {
                       EXPECT_EQ(results[0].error->code(), ErrorCode::kUnavailable);
                     }
                   });
    }
    while (store.Advance()) continue;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      outcomes[i].second = ValueOf(inner, kTable, std::to_string(i)) == "v";
    }
    return outcomes;
  };
  int kinds[2][2] = {};
  for (const auto& [said, is] : run(3)) ++kinds[said ? 1 : 0][is ? 1 : 0];
  EXPECT_GT(kinds[0][0], 0);
  EXPECT_GT(kinds[0][1], 0);
  EXPECT_EQ(kinds[1][0], 0);
  EXPECT_GT(kinds[1][1], 0);
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST(FaultyStoreTest, HintsComeLateAreJoinedAndMayBeLost) {
  EmbeddedStore inner;
  FaultyStore store(inner, {.seed = 1});
  FaultyStore lossy(inner, {.seed = 1, .loses_a_hint = 1});
  int hints = 0;
  int lossy_hints = 0;
  const auto watch = store.Watch(kTable, "", [&] { ++hints; });
  const auto lossy_watch = lossy.Watch(kTable, "", [&] { ++lossy_hints; });
  for (int i = 0; i < 3; ++i) RunBatch(inner, {Operation::Put(kTable, "a", "")}, Soon());
  EXPECT_EQ(hints, 0);
  while (store.Advance() || lossy.Advance()) continue;
  EXPECT_EQ(hints, 1);
  EXPECT_EQ(lossy_hints, 0);
}

TEST(FaultyStoreTest, PagesComeOrAreUnavailable) {
  EmbeddedStore inner;
  RunBatch(inner, {Operation::Put(kTable, "a", "1")}, Soon());
  FaultyStore store(inner, {.seed = 2, .fails = 0.5});
  int pages = 0;
  int errors = 0;
  for (int i = 0; i < 40; ++i) {
    store.Scan(kTable, "", "", 10, Soon(), [&](const StorePage& page) {
      page.error ? ++errors : ++pages;
      EXPECT_EQ(page.records.size(), page.error ? 0u : 1u);
    });
  }
  while (store.Advance()) continue;
  EXPECT_EQ(pages + errors, 40);
  EXPECT_GT(pages, 0);
  EXPECT_GT(errors, 0);
}

}  // namespace
}  // namespace menger
