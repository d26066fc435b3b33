// A table against a model of a few lines: a list of items, oldest first, that is searched from its
// beginning each time.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <set>
#include <vector>

#include "menger/base/random.h"
#include "menger/replay/table.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using testing_tables::Chunks;
using testing_tables::InsertAll;
using testing_tables::kChunkBytes;
using testing_tables::OneRow;
using testing_tables::SmallTable;
using testing_tables::Soon;

constexpr std::size_t kItemsMax = 60;
constexpr std::size_t kChunksMax = 12;
constexpr int kTimesMax = 3;

struct ModelItem {
  std::uint64_t number = 0;
  ChunkId chunk = 0;
  double priority = 0;
  int times_sampled = 0;
};

struct Model {
  std::list<ModelItem> items;
  TableInfo info;

  std::size_t bytes() const {
    std::set<ChunkId> chunks;
    for (const ModelItem& item : items) chunks.insert(item.chunk);
    return chunks.size() * kChunkBytes;
  }

  void Insert(ChunkId chunk, double priority) {
    items.push_back({.number = static_cast<std::uint64_t>(++info.inserts),
                     .chunk = chunk,
                     .priority = priority});
    while (items.size() > kItemsMax || bytes() > kChunksMax * kChunkBytes) {
      items.pop_front();
      ++info.deletes;
      ++info.evicted;
    }
  }

  // The oldest of the highest priority.
  ModelItem Sample() {
    const auto item = std::ranges::max_element(
        items, [](const ModelItem& a, const ModelItem& b) { return a.priority < b.priority; });
    ++item->times_sampled;
    ++info.samples;
    const ModelItem drawn = *item;
    if (drawn.times_sampled == kTimesMax) {
      items.erase(item);
      ++info.deletes;
    }
    return drawn;
  }

  ModelItem* Find(std::uint64_t number) {
    for (ModelItem& item : items) {
      if (item.number == number) return &item;
    }
    ++info.stale_keys;
    return nullptr;
  }
};

TableOptions SmallOptions() {
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kMaxHeap;
  options.remover.kind = SelectorKind::kFifo;
  options.items_max = kItemsMax;
  options.bytes_max = kChunksMax * kChunkBytes;
  options.times_sampled_max = kTimesMax;
  return options;
}

class TableModelTest : public testing::Test {
 protected:
  void Insert() {
    if (chunk_uses_++ % 6 == 0) {
      if (chunk_uses_ > 1) chunks_.Drop(chunk_);
      chunk_ = chunks_.New();
    }
    const auto priority = static_cast<double>(random_.Integers(0, 10));
    keys_.push_back(InsertAll(table_, {OneRow(chunk_, 0, priority)})[0]);
    model_.Insert(chunk_, priority);
    ASSERT_EQ(keys_.back().number, static_cast<std::uint64_t>(model_.info.inserts));
  }

  void Sample() {
    const auto count = static_cast<int>(std::min<std::int64_t>(5, std::ssize(model_.items)));
    if (count == 0) return;
    table_.SampleInto({.count = count, .deadline = Soon()}, sample_);
    ASSERT_EQ(sample_.size(), count);
    for (int i = 0; i < count; ++i) {
      const ModelItem expected = model_.Sample();
      const SampledItem& item = sample_.items()[i];
      ASSERT_EQ(item.key.number, expected.number);
      ASSERT_EQ(item.priority, expected.priority);
      ASSERT_EQ(item.times_sampled, expected.times_sampled);
      ASSERT_EQ(sample_.slices(i, 0)[0].chunk, expected.chunk);
    }
  }

  // Of the last hundred items, some of which are gone.
  ItemKey SomeKey() { return keys_[keys_.size() - random_.Integers(1, KeysBack())]; }
  std::int64_t KeysBack() const { return std::min<std::int64_t>(100, std::ssize(keys_)) + 1; }

  void Update() {
    const std::vector<PriorityUpdate> updates = {{SomeKey(), random_.Double()},
                                                 {SomeKey(), random_.Double()}};
    table_.UpdatePriorities(updates);
    for (const PriorityUpdate& update : updates) {
      ModelItem* const item = model_.Find(update.key.number);
      if (item != nullptr) item->priority = update.priority;
    }
  }

  void Delete() {
    const ItemKey key = SomeKey();
    table_.Delete({&key, 1});
    if (model_.Find(key.number) == nullptr) return;
    std::erase_if(model_.items, [&](const ModelItem& item) { return item.number == key.number; });
    ++model_.info.deletes;
  }

  void Compare() {
    const TableInfo info = table_.info();
    ASSERT_EQ(info.items, std::ssize(model_.items));
    ASSERT_EQ(info.bytes, model_.bytes());
    ASSERT_EQ(info.inserts, model_.info.inserts);
    ASSERT_EQ(info.samples, model_.info.samples);
    ASSERT_EQ(info.deletes, model_.info.deletes);
    ASSERT_EQ(info.evicted, model_.info.evicted);
    ASSERT_EQ(info.stale_keys, model_.info.stale_keys);
  }

  Chunks chunks_;
  Table table_{SmallOptions(), chunks_.store()};
  Model model_;
  Random random_ = Random::FromSeed(30);
  std::vector<ItemKey> keys_;
  ChunkId chunk_ = 0;
  int chunk_uses_ = 0;
  menger::Sample sample_;
};

TEST_F(TableModelTest, DoesWhatTheModelDoesInRandomOperations) {
  for (int step = 0; step < 100'000; ++step) {
    const double kind = random_.Double();
    if (keys_.empty() || kind < 0.5) {
      Insert();
    } else if (kind < 0.65) {
      Sample();
    } else if (kind < 0.9) {
      Update();
    } else {
      Delete();
    }
    Compare();
    ASSERT_FALSE(HasFatalFailure()) << "after step " << step;
  }
  EXPECT_GT(model_.info.evicted, 1000);
}

}  // namespace
}  // namespace menger
