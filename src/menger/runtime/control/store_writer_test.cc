#include "menger/runtime/control/store_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/control/store_testing.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing_stores::Contents;

// Passes on what it is given, and counts.
class CountingStore : public ControlStore {
 public:
  void Submit(std::vector<StoreOperation> batch, Deadline deadline,
              Completion completion) override {
    ++batches;
    operations += batch.size();
    store.Submit(std::move(batch), deadline, std::move(completion));
  }
  void Scan(StoreTable table, std::string prefix, std::string after, int limit, Deadline deadline,
            PageCompletion completion) override {
    store.Scan(table, prefix, after, limit, deadline, std::move(completion));
  }
  std::unique_ptr<StoreWatch> Watch(StoreTable table, std::string prefix,
                                    std::function<void()> hint) override {
    return store.Watch(table, prefix, std::move(hint));
  }

  EmbeddedStore store;
  int batches = 0;
  std::size_t operations = 0;
};

TEST(StoreWriterTest, OnlyTheLastWishForAKeyIsWritten) {
  CountingStore store;
  StoreWriter writer(store);
  for (int i = 0; i < 100; ++i) writer.Put(StoreTable::kActors, "a", std::to_string(i));
  writer.Put(StoreTable::kActors, "b", "1");
  writer.Put(StoreTable::kActors, "c", "1");
  writer.Delete(StoreTable::kActors, "b");
  EXPECT_EQ(store.operations, 0u);
  writer.Flush();
  EXPECT_EQ(store.batches, 1);
  EXPECT_EQ(store.operations, 3u);
  EXPECT_EQ(writer.waiting(), 0u);
  EXPECT_THAT(Contents(store, StoreTable::kActors), ElementsAre(Pair("a", "99"), Pair("c", "1")));
}

TEST(StoreWriterTest, ManyWishesAreSeveralBatches) {
  CountingStore store;
  StoreWriter writer(store);
  for (int i = 0; i < 2500; ++i) writer.Put(StoreTable::kObjects, std::to_string(i), "x");
  while (writer.waiting() > 0) writer.Flush();
  EXPECT_EQ(store.batches, 3);
  EXPECT_EQ(Contents(store, StoreTable::kObjects).size(), 2500u);
}

// A store that refuses each batch until it is told otherwise, and answers when it is told.
class SlowStore : public CountingStore {
 public:
  void Submit(std::vector<StoreOperation> batch, Deadline deadline,
              Completion completion) override {
    if (refuses) {
      std::vector<StoreResult> results(batch.size());
      for (StoreResult& result : results) {
        result.outcome = StoreResult::Outcome::kFailed;
        result.error = Unavailable("not now");
      }
      answer = [completion, results] { completion(results); };
      return;
    }
    CountingStore::Submit(std::move(batch), deadline, std::move(completion));
  }

  bool refuses = true;
  std::function<void()> answer;
};

TEST(StoreWriterTest, WhatIsRefusedIsTriedAgainUnlessThereIsALaterWish) {
  SlowStore store;
  StoreWriter writer(store);
  writer.Put(StoreTable::kActors, "a", "old");
  writer.Put(StoreTable::kActors, "b", "old");
  writer.Flush();
  writer.Put(StoreTable::kActors, "a", "new");
  writer.Flush();  // Nothing is sent while an answer is awaited.
  EXPECT_EQ(writer.waiting(), 3u);
  store.refuses = false;
  store.answer();
  writer.Flush();
  EXPECT_THAT(Contents(store, StoreTable::kActors),
              ElementsAre(Pair("a", "new"), Pair("b", "old")));
  EXPECT_EQ(writer.last_error()->code(), ErrorCode::kUnavailable);
  EXPECT_EQ(writer.waiting(), 0u);
}

}  // namespace
}  // namespace menger
