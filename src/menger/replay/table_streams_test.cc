// Items that a writer sends again are taken once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/random.h"
#include "menger/replay/insert_streams.h"
#include "menger/replay/sample.h"
#include "menger/replay/table.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_tables::Chunks;
using testing_tables::ErrorText;
using testing_tables::Now;
using testing_tables::OneRow;
using testing_tables::SmallTable;
using testing_tables::Soon;

using Sequence = std::vector<std::uint64_t>;

constexpr std::uint64_t kStream = 0x9e3779b97f4a7c15;

TableOptions QueueOf(int size) {
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kFifo;
  options.rate_limiter = RateLimiterOptions::Queue(size);
  options.times_sampled_max = 1;
  return options;
}

// Items that tell their sequence numbers by their priorities.
std::vector<ItemDraft> Drafts(ChunkId chunk, const std::vector<std::uint64_t>& sequences) {
  std::vector<ItemDraft> drafts;
  for (const std::uint64_t sequence : sequences) {
    drafts.push_back(OneRow(chunk, 0, static_cast<double>(sequence)));
    drafts.back().sequence = sequence;
  }
  return drafts;
}

std::vector<std::uint64_t> Numbers(const std::vector<ItemKey>& keys) {
  std::vector<std::uint64_t> numbers;
  for (const ItemKey& key : keys) numbers.push_back(key.number);
  return numbers;
}

// The priorities of `count` items of a queue, oldest first.
std::vector<double> Take(Table& table, int count) {
  Sample sample;
  table.SampleInto({.count = count, .deadline = Soon()}, sample);
  std::vector<double> priorities;
  for (const SampledItem& item : sample.items()) priorities.push_back(item.priority);
  return priorities;
}

class TableStreamsTest : public testing::Test {
 protected:
  // The numbers of the keys that it got.
  std::vector<std::uint64_t> Insert(Table& table, const std::vector<std::uint64_t>& sequences,
                                    std::uint64_t stream = kStream) {
    std::vector<ItemKey> keys;
    table.Insert(Drafts(chunk_, sequences), Soon(), &keys, stream);
    return Numbers(keys);
  }

  Chunks chunks_;
  const ChunkId chunk_ = chunks_.New();
};

TEST_F(TableStreamsTest, WhatWasTakenIsPassedOver) {
  Table table(SmallTable(), chunks_.store());
  EXPECT_EQ(table.LastOf(kStream), 0U);
  EXPECT_EQ(Insert(table, {1, 2, 3}), (Sequence{1, 2, 3}));
  EXPECT_EQ(Insert(table, {2, 3, 4, 5}), (Sequence{0, 0, 4, 5}));
  EXPECT_EQ(Insert(table, {1, 5}), (Sequence{0, 0}));
  EXPECT_EQ(table.LastOf(kStream), 5U);
  const TableInfo info = table.info();
  EXPECT_EQ(info.items, 5);
  EXPECT_EQ(info.inserts, 5);
  EXPECT_EQ(info.repeated, 4);
  EXPECT_EQ(info.evicted + info.deletes, 0);
}

TEST_F(TableStreamsTest, NumbersMayHaveGaps) {
  Table table(SmallTable(), chunks_.store());
  EXPECT_EQ(Insert(table, {7, 20}), (Sequence{1, 2}));
  EXPECT_EQ(Insert(table, {8, 20, 1'000}), (Sequence{0, 0, 3}));
  EXPECT_EQ(table.LastOf(kStream), 1'000U);
}

TEST_F(TableStreamsTest, ItemsWithoutAStreamAreTakenEachTime) {
  Table table(SmallTable(), chunks_.store());
  for (int i = 0; i < 3; ++i) Insert(table, {1, 1, 0}, /*stream=*/0);
  EXPECT_EQ(table.info().items, 9);
  EXPECT_EQ(table.info().repeated, 0);
  EXPECT_EQ(table.LastOf(0), 0U);
  const std::size_t before = table.info().metadata_bytes;
  Insert(table, {1});
  EXPECT_GE(table.info().metadata_bytes, before + InsertStreams::kStreamBytes);
}

TEST_F(TableStreamsTest, OneCounterMayServeSeveralTablesAndStreamsAreApart) {
  Table first(SmallTable(), chunks_.store());
  Table second(SmallTable(), chunks_.store());
  for (int i = 0; i < 2; ++i) {
    Insert(first, {1, 3, 4});
    Insert(second, {2, 4});
    Insert(second, {1, 2, 3}, kStream + 1);
  }
  EXPECT_EQ(first.info().items, 3);
  EXPECT_EQ(second.info().items, 5);
  EXPECT_EQ(first.LastOf(kStream + 1), 0U);
  EXPECT_EQ(second.LastOf(kStream), 4U);
  EXPECT_EQ(second.LastOf(kStream + 1), 3U);
}

TEST_F(TableStreamsTest, WhatADeadlineLeftIsTakenByTheNextCall) {
  Table table(QueueOf(2), chunks_.store());
  const std::vector<ItemDraft> drafts = Drafts(chunk_, {1, 2, 3, 4});
  std::vector<ItemKey> keys;
  EXPECT_THAT(
      ErrorText(ErrorCode::kDeadlineExceeded, [&] { table.Insert(drafts, Now(), &keys, kStream); }),
      HasSubstr("item 3 of 4"));
  EXPECT_EQ(Numbers(keys), (Sequence{1, 2}));
  EXPECT_EQ(table.LastOf(kStream), 2U);
  EXPECT_EQ(Take(table, 1), std::vector<double>{1});
  keys.clear();
  EXPECT_THAT(
      ErrorText(ErrorCode::kDeadlineExceeded, [&] { table.Insert(drafts, Now(), &keys, kStream); }),
      HasSubstr("item 4 of 4"));
  EXPECT_EQ(Numbers(keys), (Sequence{0, 0, 3}));
  EXPECT_EQ(Take(table, 1), std::vector<double>{2});
  keys.clear();
  EXPECT_EQ(table.TryInsert(drafts, &keys, kStream), 4);
  EXPECT_EQ(Numbers(keys), (Sequence{0, 0, 0, 4}));
  EXPECT_EQ(Take(table, 2), (std::vector<double>{3, 4}));
}

// Neither for the limiter nor for a call that came before.
TEST_F(TableStreamsTest, WhatIsPassedOverWaitsForNobody) {
  Table table(QueueOf(2), chunks_.store());
  Insert(table, {1, 2});
  std::thread other([&] { Insert(table, {1}, kStream + 1); });
  while (table.info().inserts_waiting == 0) std::this_thread::yield();
  const std::vector<ItemDraft> drafts = Drafts(chunk_, {1, 2, 3});
  std::vector<ItemKey> keys;
  table.Insert(std::span(drafts).first(2), Now(), &keys, kStream);
  EXPECT_EQ(Numbers(keys), (Sequence{0, 0}));
  EXPECT_EQ(table.TryInsert(drafts, &keys, kStream), 2);
  EXPECT_EQ(table.info().inserts, 2);
  EXPECT_EQ(Take(table, 2), (std::vector<double>{1, 2}));
  other.join();
  EXPECT_EQ(Take(table, 1), std::vector<double>{1});
}

// A writer that came back while its old connection still waits.
TEST_F(TableStreamsTest, TheSameItemsByTwoCallsAtOnceAreTakenOnce) {
  constexpr int kItems = 200;
  Table table(QueueOf(2), chunks_.store());
  std::vector<std::uint64_t> sequences;
  for (std::uint64_t i = 1; i <= kItems; ++i) sequences.push_back(i);
  const auto insert = [&] { EXPECT_EQ(Insert(table, sequences).size(), sequences.size()); };
  std::thread first(insert);
  std::thread second(insert);
  while (table.info().inserts_waiting < 2) std::this_thread::yield();
  for (int i = 1; i <= kItems; ++i) ASSERT_EQ(Take(table, 1), std::vector<double>{1.0 * i});
  first.join();
  second.join();
  EXPECT_EQ(table.info().inserts, kItems);
  EXPECT_EQ(table.info().repeated, kItems);
}

TEST_F(TableStreamsTest, AStreamThatIsForgottenBeginsAnew) {
  Table table(SmallTable(), chunks_.store());
  Insert(table, {1, 2});
  table.Forget(kStream + 1);
  EXPECT_EQ(table.LastOf(kStream), 2U);
  table.Forget(kStream);
  EXPECT_EQ(table.LastOf(kStream), 0U);
  EXPECT_EQ(Insert(table, {2}), Sequence{3});
  EXPECT_EQ(table.LastOf(kStream), 2U);
}

TEST_F(TableStreamsTest, AsManyStreamsAsAreSaidAreRemembered) {
  Table table(SmallTable(), chunks_.store());
  const auto of = [&](std::uint64_t stream) { return table.LastOf(stream); };
  for (std::uint64_t i = 1; i <= kInsertStreamsMax; ++i) Insert(table, {5}, i);
  const std::size_t bytes = table.info().metadata_bytes;
  EXPECT_GE(bytes, kInsertStreamsMax * InsertStreams::kStreamBytes);
  EXPECT_EQ(of(1), 5U);
  Insert(table, {5, 6}, 1);
  Insert(table, {1}, kInsertStreamsMax + 1);
  EXPECT_EQ(of(1), 6U);
  EXPECT_EQ(of(2), 0U);
  EXPECT_EQ(of(3), 5U);
  EXPECT_EQ(of(kInsertStreamsMax + 1), 1U);
  EXPECT_EQ(table.info().metadata_bytes, bytes);
}

TEST_F(TableStreamsTest, NumbersThatDoNotRiseAreRefused) {
  Table table(SmallTable(), chunks_.store());
  const auto why = [&](const std::vector<std::uint64_t>& sequences) {
    return ErrorText(ErrorCode::kInvalidArgument, [&] { Insert(table, sequences); });
  };
  EXPECT_EQ(why({1, 0}),
            "table 'small': item 2 of 2: its sequence number is 0; in a stream it must be at least "
            "2");
  EXPECT_THAT(why({0}), HasSubstr("item 1 of 1: its sequence number is 0"));
  EXPECT_THAT(why({4, 5, 5}), HasSubstr("item 3 of 3: its sequence number is 5"));
  EXPECT_EQ(table.info().inserts, 0);
  EXPECT_EQ(table.LastOf(kStream), 0U);
}

// ---- Against a model

// Writers with a counter for two queues send batches again and again, from some number on that may
// be long past; the queues let in only some of them.
class TableStreamsModelTest : public TableStreamsTest {
 protected:
  static constexpr int kStreams = 4;
  static constexpr std::size_t kQueue = 20;

  // An item as its priority tells it.
  static double Name(std::uint64_t stream, std::uint64_t sequence) {
    return static_cast<double>(1'000'000 * stream + sequence);
  }

  struct Model {
    std::map<std::uint64_t, std::uint64_t> last;
    std::deque<double> queue;
    std::int64_t repeated = 0;
  };

  // What a batch does, item by item; how many were taken or passed over.
  static std::int64_t Insert(Model& model, std::uint64_t stream,
                             const std::vector<ItemDraft>& drafts) {
    std::int64_t count = 0;
    for (const ItemDraft& draft : drafts) {
      if (draft.sequence <= model.last[stream]) {
        ++model.repeated;
      } else if (model.queue.size() < kQueue) {
        model.queue.push_back(Name(stream, draft.sequence));
        model.last[stream] = draft.sequence;
      } else {
        break;
      }
      ++count;
    }
    return count;
  }

  void Send(int index) {
    const auto stream = static_cast<std::uint64_t>(random_.Integers(1, kStreams + 1));
    // Now and then from far back; those for the other table are left out.
    std::uint64_t sequence = models_[index].last[stream];
    sequence -= std::min(sequence, static_cast<std::uint64_t>(random_.Integers(0, 12)));
    std::vector<std::uint64_t> sequences;
    for (std::int64_t left = random_.Integers(1, 20); left > 0; --left) {
      sequence += static_cast<std::uint64_t>(random_.Integers(1, 4));
      sequences.push_back(sequence);
    }
    std::vector<ItemDraft> drafts = Drafts(chunk_, sequences);
    for (ItemDraft& draft : drafts) draft.priority = Name(stream, draft.sequence);
    const std::int64_t expected = Insert(models_[index], stream, drafts);
    std::vector<ItemKey> keys;
    ASSERT_EQ(tables_[index].TryInsert(drafts, &keys, stream), expected);
    ASSERT_EQ(std::ssize(keys), expected);
    partial_ += expected < std::ssize(drafts) ? 1 : 0;
  }

  void Draw(int index) {
    std::deque<double>& queue = models_[index].queue;
    const auto count =
        static_cast<int>(std::min<std::int64_t>(random_.Integers(1, 20), std::ssize(queue)));
    if (count == 0) return;
    const std::vector<double> taken = Take(tables_[index], count);
    ASSERT_EQ(taken, std::vector<double>(queue.begin(), queue.begin() + count));
    queue.erase(queue.begin(), queue.begin() + count);
  }

  Table tables_[2] = {Table(QueueOf(kQueue), chunks_.store()),
                      Table(QueueOf(kQueue), chunks_.store())};
  Model models_[2];
  Random random_ = Random::FromSeed(77);
  int partial_ = 0;
};

TEST_F(TableStreamsModelTest, TakesEachItemOnceWhateverIsSentAgain) {
  for (int step = 0; step < 30'000; ++step) {
    const auto index = static_cast<int>(random_.Integers(0, 2));
    const double kind = random_.Double();
    if (kind < 0.6) {
      Send(index);
    } else if (kind < 0.99) {
      Draw(index);
    } else {
      const auto stream = static_cast<std::uint64_t>(random_.Integers(1, kStreams + 1));
      tables_[index].Forget(stream);
      models_[index].last.erase(stream);
    }
    ASSERT_FALSE(HasFatalFailure()) << "after step " << step;
    ASSERT_EQ(tables_[index].info().repeated, models_[index].repeated);
    for (const auto& [stream, last] : models_[index].last) {
      ASSERT_EQ(tables_[index].LastOf(stream), last) << step;
    }
  }
  EXPECT_GT(partial_, 1000);
  EXPECT_GT(models_[0].repeated, 1000);
}

}  // namespace
}  // namespace menger
