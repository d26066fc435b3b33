#include "menger/replay/item_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "menger/base/random.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using testing_tables::Chunks;
using testing_tables::kChunkBytes;

struct Draft {
  std::vector<Slice> slices;
  std::vector<std::uint16_t> slice_counts;
};

// The model: every item with its slices, from which bytes are counted anew each time.
TEST(ItemPoolTest, KeepsSlicesBytesAndReferencesAsAModelDoes) {
  Chunks chunks;
  Random random = Random::FromSeed(1);
  std::map<std::uint32_t, Draft> model;  // By slot.
  std::vector<std::uint32_t> free;
  ItemPool pool(/*columns=*/2, /*items_max=*/1000, chunks.store());
  for (std::uint64_t step = 1; step <= 100'000; ++step) {
    if (model.empty() || (random.Double() < 0.5 && model.size() < 100)) {
      // One or two chunks of a few, so that items share them; they live by the pool alone.
      std::vector<ChunkId> some = {chunks.New(), chunks.New()};
      const std::vector<ChunkId> made = some;
      if (!model.empty() && random.Double() < 0.7) {
        some[0] = std::next(model.begin(), random.Integers(0, std::ssize(model)))
                      ->second.slices.front()
                      .chunk;
      }
      Draft draft;
      for (int column = 0; column < 2; ++column) {
        const std::int64_t count = random.Integers(1, 4);
        draft.slice_counts.push_back(static_cast<std::uint16_t>(count));
        for (int i = 0; i < count; ++i) {
          draft.slices.push_back({.chunk = some[random.Integers(0, 2)],
                                  .offset = static_cast<std::uint16_t>(step % 8),
                                  .length = 1});
        }
      }
      const std::uint32_t slot = pool.Insert(step, draft.slices, draft.slice_counts);
      if (!free.empty()) {
        ASSERT_EQ(slot, free.back());
        free.pop_back();
      } else {
        ASSERT_EQ(slot, model.size());
      }
      for (const ChunkId chunk : made) chunks.Drop(chunk);
      ASSERT_TRUE(pool.Has({.number = step, .slot = slot}));
      ASSERT_TRUE(model.emplace(slot, draft).second);
    } else {
      const auto item = std::next(model.begin(), random.Integers(0, std::ssize(model)));
      const std::uint64_t number = pool[item->first].number;
      pool.Erase(item->first);
      ASSERT_FALSE(pool.Has({.number = number, .slot = item->first}));
      free.push_back(item->first);
      model.erase(item);
    }
    if (step % 100 != 0) continue;
    std::set<ChunkId> needed;
    for (const auto& [slot, draft] : model) {
      ASSERT_TRUE(std::ranges::equal(pool.slices(slot), draft.slices));
      ASSERT_TRUE(std::ranges::equal(pool.slice_counts(slot), draft.slice_counts));
      for (const Slice& slice : draft.slices) needed.insert(slice.chunk);
    }
    ASSERT_EQ(pool.size(), std::ssize(model));
    ASSERT_EQ(pool.bytes(), needed.size() * kChunkBytes);
    ASSERT_EQ(chunks.store().chunks(), needed.size());
  }
}

TEST(ItemPoolTest, AKeyOfNothingIsNeverThere) {
  Chunks chunks;
  ItemPool pool(/*columns=*/1, /*items_max=*/10, chunks.store());
  EXPECT_FALSE(pool.Has(ItemKey{}));
  const Slice slice{.chunk = chunks.New(), .offset = 0, .length = 1};
  const std::vector<std::uint16_t> counts = {1};
  const std::uint32_t slot = pool.Insert(1, {&slice, 1}, counts);
  EXPECT_TRUE(pool.Has({.number = 1, .slot = slot}));
  EXPECT_FALSE(pool.Has({.number = 2, .slot = slot}));
  EXPECT_FALSE(pool.Has({.number = 1, .slot = slot + 1}));
  pool.Erase(slot);
  EXPECT_FALSE(pool.Has(ItemKey{.number = 0, .slot = slot}));
}

}  // namespace
}  // namespace menger
