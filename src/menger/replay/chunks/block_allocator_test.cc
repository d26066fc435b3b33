#include "menger/replay/chunks/block_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "menger/base/random.h"

namespace menger {
namespace {

TEST(BlockAllocatorTest, ABlockComesFromTheSmallestGapThatHasRoom) {
  BlockAllocator blocks(100);
  EXPECT_EQ(blocks.Take(30), 0U);
  EXPECT_EQ(blocks.Take(10), 30U);
  EXPECT_EQ(blocks.Take(20), 40U);
  EXPECT_EQ(blocks.Take(5), 60U);
  blocks.Give(0, 30);
  blocks.Give(40, 20);
  EXPECT_EQ(blocks.Take(15), 40U);
  EXPECT_EQ(blocks.Take(5), 55U);
  EXPECT_EQ(blocks.largest(), 35U);
  EXPECT_EQ(blocks.Take(36), std::nullopt);
  EXPECT_EQ(blocks.Take(35), 65U);
}

TEST(BlockAllocatorTest, NeighboursAreJoinedInEveryOrder) {
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    BlockAllocator blocks(40);
    for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(blocks.Take(10), 10 * i);
    EXPECT_EQ(blocks.largest(), 0U);
    for (const std::size_t i : order) blocks.Give(10 * i, 10);
    EXPECT_EQ(blocks.Take(40), 0U);
  } while (std::ranges::next_permutation(order).found);
}

// Beside an array that says of every address whether it is taken.
TEST(BlockAllocatorTest, ItAgreesWithAnArrayOfAddresses) {
  constexpr std::size_t kBytes = 400;
  BlockAllocator blocks(kBytes);
  std::vector<bool> taken(kBytes, false);
  std::vector<std::pair<std::size_t, std::size_t>> held;
  Random random = Random::FromSeed(5);
  const auto largest = [&] {
    std::size_t best = 0;
    std::size_t run = 0;
    for (const bool used : taken) best = std::max(best, run = used ? 0 : run + 1);
    return best;
  };
  for (int i = 0; i < 20'000; ++i) {
    const auto bytes = static_cast<std::size_t>(random.Integers(1, 40));
    if (random.Integers(0, 2) == 0 && !held.empty()) {
      const auto which = static_cast<std::size_t>(random.Integers(0, std::ssize(held)));
      const auto [begin, size] = held[which];
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      blocks.Give(begin, size);
      std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(begin), size, false);
    } else if (const auto begin = blocks.Take(bytes)) {
      for (std::size_t k = *begin; k < *begin + bytes; ++k) {
        ASSERT_FALSE(taken[k]);
        taken[k] = true;
      }
      held.emplace_back(*begin, bytes);
    } else {
      ASSERT_LT(largest(), bytes);
    }
    ASSERT_EQ(blocks.largest(), largest());
  }
}

}  // namespace
}  // namespace menger
