#include "menger/runtime/memory/extent_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kPage = ExtentAllocator::kPage;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(ExtentAllocatorTest, SizesAreWholePages) {
  ExtentAllocator allocator(16 * kMiB);
  EXPECT_EQ(allocator.Allocate(1), (Extent{0, kPage}));
  EXPECT_EQ(allocator.Allocate(kPage), (Extent{kPage, kPage}));
  EXPECT_EQ(allocator.Allocate(kPage + 1), (Extent{2 * kPage, 2 * kPage}));
  EXPECT_EQ(allocator.free_bytes(), 16 * kMiB - 4 * kPage);
  EXPECT_FALSE(allocator.Allocate(16 * kMiB));
  EXPECT_FALSE(allocator.Allocate(~std::uint64_t{0}));
  EXPECT_THROW(allocator.Allocate(0), Error);
  EXPECT_THROW(ExtentAllocator(100), Error);
}

TEST(ExtentAllocatorTest, PiecesOfAnExtentAreFreedOnTheirOwnAndGrowTogetherAgain) {
  ExtentAllocator allocator(2 * kMiB);
  const Extent whole = *allocator.Allocate(2 * kMiB);
  const auto [first, rest] = Split(whole, 100);
  EXPECT_EQ(first, (Extent{0, kPage}));
  const auto [second, third] = Split(rest, kMiB);
  allocator.Free(first);
  allocator.Free(third);
  EXPECT_FALSE(allocator.Allocate(2 * kMiB));
  allocator.Free(second);
  EXPECT_EQ(allocator.Allocate(2 * kMiB), whole);
  EXPECT_EQ(Split(whole, 2 * kMiB).second.bytes, 0u);
  EXPECT_THROW(Split(whole, 2 * kMiB + 1), Error);
}

TEST(ExtentAllocatorTest, WhatIsFreeAlreadyIsNotFreedAgain) {
  ExtentAllocator allocator(kMiB);
  const Extent extent = *allocator.Allocate(1000);
  allocator.Free(extent);
  EXPECT_THROW(allocator.Free(extent), Error);
  EXPECT_THROW(allocator.Free({kMiB, kPage}), Error);
  EXPECT_THROW(allocator.Free({64, kPage}), Error);
  EXPECT_EQ(allocator.free_bytes(), kMiB);
}

TEST(ExtentAllocatorTest, WarmMemoryIsUsedAgainBeforeColdUntilItIsTrimmed) {
  ExtentAllocator allocator(64 * kMiB);
  const Extent low = *allocator.Allocate(4 * kMiB);
  const Extent high = *allocator.Allocate(4 * kMiB);
  allocator.Free(high);
  EXPECT_EQ(allocator.warm_free_bytes(), 4 * kMiB);
  EXPECT_EQ(allocator.Allocate(4 * kMiB), high);
  allocator.Free(low);
  EXPECT_EQ(allocator.Trim(~std::uint64_t{0}), std::vector<Extent>{low});
  EXPECT_EQ(allocator.warm_free_bytes(), 0u);
  EXPECT_TRUE(allocator.Trim(1).empty());
  // Cold and warm memory alike may be part of one extent.
  allocator.Free(high);
  EXPECT_EQ(allocator.Allocate(64 * kMiB), (Extent{0, 64 * kMiB}));
}

// The same by brute force: what each page is.
class Model {
 public:
  enum class Page : std::uint8_t { kCold, kWarm, kUsed };

  explicit Model(std::uint64_t size) : pages_(size / kPage, Page::kCold) {}

  bool Are(Extent extent, Page what) const {
    return std::all_of(pages_.begin() + extent.offset / kPage,
                       pages_.begin() + extent.end() / kPage,
                       [what](Page page) { return page == what; });
  }
  void Set(Extent extent, Page what) {
    std::fill(pages_.begin() + extent.offset / kPage, pages_.begin() + extent.end() / kPage, what);
  }
  // All longest runs of free pages, or of those that are warm, too.
  std::vector<Extent> Runs(bool warm) const {
    std::vector<Extent> runs;
    bool inside = false;
    for (std::uint64_t i = 0; i < pages_.size(); ++i) {
      const bool counts = pages_[i] == Page::kWarm || (!warm && pages_[i] == Page::kCold);
      if (counts && !inside) runs.push_back({i * kPage, 0});
      if (counts) runs.back().bytes += kPage;
      inside = counts;
    }
    return runs;
  }

 private:
  std::vector<Page> pages_;
};

std::uint64_t Sum(const std::vector<Extent>& extents) {
  std::uint64_t sum = 0;
  for (const Extent& extent : extents) sum += extent.bytes;
  return sum;
}

std::optional<Extent> ShortestThenLowest(const std::vector<Extent>& runs, std::uint64_t bytes) {
  std::optional<Extent> best;
  std::uint64_t best_length = 0;
  for (const Extent& run : runs) {
    if (bytes > run.bytes || (best && run.bytes >= best_length)) continue;
    best = Extent{run.offset, bytes};
    best_length = run.bytes;
  }
  return best;
}

class ModelTest {
 public:
  explicit ModelTest(unsigned seed) : random_(seed) {}

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      switch (random_() % 8) {
        case 0:
        case 1:
        case 2:
          Allocate();
          break;
        case 3:
        case 4:
        case 5:
          FreeOne();
          break;
        case 6:
          SplitOne();
          break;
        case 7:
          if (step % 10 == 0) Trim();
          break;
      }
      if (step % 16 != 0) continue;
      ASSERT_EQ(allocator_.free_bytes(), Sum(model_.Runs(false)));
      ASSERT_EQ(allocator_.warm_free_bytes(), Sum(model_.Runs(true)));
    }
  }

 private:
  static constexpr std::uint64_t kSize = 6 * kMiB;

  std::uint64_t RandomBytes() {
    const std::uint64_t limit = kPage << random_() % 10;  // Up to 2 MiB.
    return 1 + random_() % limit;
  }

  void Allocate() {
    const std::uint64_t bytes = RandomBytes();
    const std::uint64_t rounded = (bytes + kPage - 1) / kPage * kPage;
    std::optional<Extent> expected = ShortestThenLowest(model_.Runs(true), rounded);
    if (!expected) expected = ShortestThenLowest(model_.Runs(false), rounded);
    const std::optional<Extent> extent = allocator_.Allocate(bytes);
    ASSERT_EQ(extent, expected);
    if (!extent) return;
    ASSERT_FALSE(model_.Are(*extent, Model::Page::kUsed));
    model_.Set(*extent, Model::Page::kUsed);
    extents_.push_back(*extent);
  }

  Extent TakeOne() {
    std::swap(extents_[random_() % extents_.size()], extents_.back());
    const Extent extent = extents_.back();
    extents_.pop_back();
    return extent;
  }

  void FreeOne() {
    if (extents_.empty()) return;
    const Extent extent = TakeOne();
    allocator_.Free(extent);
    model_.Set(extent, Model::Page::kWarm);
    if (extent.bytes > 0) {
      EXPECT_THROW(allocator_.Free(extent), Error);
    }
  }

  void SplitOne() {
    if (extents_.empty()) return;
    const Extent extent = TakeOne();
    const auto [first, rest] = Split(extent, random_() % (extent.bytes + 1));
    extents_.push_back(first);
    extents_.push_back(rest);
  }

  void Trim() {
    const std::uint64_t warm = allocator_.warm_free_bytes();
    const std::uint64_t wanted = RandomBytes();
    const std::vector<Extent> trimmed = allocator_.Trim(wanted);
    for (const Extent& extent : trimmed) {
      ASSERT_EQ(extent.offset % kPage, 0u);
      ASSERT_EQ(extent.bytes % kPage, 0u);
      ASSERT_TRUE(model_.Are(extent, Model::Page::kWarm));
      model_.Set(extent, Model::Page::kCold);
    }
    EXPECT_EQ(Sum(trimmed), std::min((wanted + kPage - 1) / kPage * kPage, warm));
  }

  std::mt19937 random_;
  ExtentAllocator allocator_{kSize};
  Model model_{kSize};
  std::vector<Extent> extents_;
};

TEST(ExtentAllocatorTest, DoesWhatBruteForceDoes) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    ModelTest(seed).Run(400);
  }
}

}  // namespace
}  // namespace menger
