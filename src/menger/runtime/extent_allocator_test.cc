#include "menger/runtime/extent_allocator.h"

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

constexpr std::uint64_t kUnit = ExtentAllocator::kAlignment;
constexpr std::uint64_t kPage = ExtentAllocator::kPage;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(ExtentAllocatorTest, SizesAreRoundedUpAndLargeOnesHaveWholePages) {
  ExtentAllocator allocator(16 * kMiB);
  EXPECT_EQ(allocator.Allocate(1), (Extent{0, 64}));
  EXPECT_EQ(allocator.Allocate(65), (Extent{64, 128}));
  EXPECT_EQ(allocator.Allocate(kMiB + 1), (Extent{kPage, kMiB + kPage}));
  EXPECT_EQ(allocator.free_bytes(), 15 * kMiB - kPage - 192);
  EXPECT_FALSE(allocator.Allocate(16 * kMiB));
  EXPECT_FALSE(allocator.Allocate(~std::uint64_t{0}));
  EXPECT_THROW(allocator.Allocate(0), Error);
  EXPECT_THROW(ExtentAllocator(100), Error);
}

TEST(ExtentAllocatorTest, PiecesOfAnExtentAreFreedOnTheirOwnAndGrowTogetherAgain) {
  ExtentAllocator allocator(2 * kMiB);
  const Extent whole = *allocator.Allocate(2 * kMiB);
  const auto [first, rest] = Split(whole, 100);
  EXPECT_EQ(first, (Extent{0, 128}));
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
  EXPECT_THROW(allocator.Free({kMiB, 64}), Error);
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

// The same by brute force: a flag for each unit that can be allocated, and one for each page.
class Model {
 public:
  explicit Model(std::uint64_t size) : used_(size / kUnit, false), touched_(size / kPage, false) {}

  bool IsFree(Extent extent) const {
    return std::none_of(used_.begin() + extent.offset / kUnit, used_.begin() + extent.end() / kUnit,
                        [](bool used) { return used; });
  }
  bool IsWarm(Extent extent) const {
    for (std::uint64_t at = extent.offset; at < extent.end(); at += kUnit) {
      if (!touched_[at / kPage]) return false;
    }
    return true;
  }
  void Use(Extent extent) {
    for (std::uint64_t at = extent.offset; at < extent.end(); at += kUnit) {
      used_[at / kUnit] = true;
      touched_[at / kPage] = true;
    }
  }
  void Free(Extent extent) {
    std::fill(used_.begin() + extent.offset / kUnit, used_.begin() + extent.end() / kUnit, false);
  }
  void Cool(Extent pages) {
    std::fill(touched_.begin() + pages.offset / kPage, touched_.begin() + pages.end() / kPage,
              false);
  }

  // All longest runs of free units, or of those in touched pages.
  std::vector<Extent> Runs(bool warm) const {
    std::vector<Extent> runs;
    bool inside = false;
    for (std::uint64_t unit = 0; unit < used_.size(); ++unit) {
      const bool counts = !used_[unit] && (!warm || touched_[unit * kUnit / kPage]);
      if (counts && !inside) runs.push_back({unit * kUnit, 0});
      if (counts) runs.back().bytes += kUnit;
      inside = counts;
    }
    return runs;
  }

 private:
  std::vector<bool> used_, touched_;
};

std::uint64_t Sum(const std::vector<Extent>& extents) {
  std::uint64_t sum = 0;
  for (const Extent& extent : extents) sum += extent.bytes;
  return sum;
}

std::optional<Extent> ShortestThenLowest(const std::vector<Extent>& runs, std::uint64_t bytes,
                                         std::uint64_t alignment) {
  std::optional<Extent> best;
  std::uint64_t best_length = 0;
  for (const Extent& run : runs) {
    const std::uint64_t begin = (run.offset + alignment - 1) / alignment * alignment;
    if (begin + bytes > run.end() || (best && run.bytes >= best_length)) continue;
    best = Extent{begin, bytes};
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
    const std::uint64_t limit = kUnit << random_() % 16;  // Up to 2 MiB.
    return 1 + random_() % limit;
  }

  void Allocate() {
    const std::uint64_t bytes = RandomBytes();
    const std::uint64_t alignment = bytes > ExtentAllocator::kPageAlignedAbove ? kPage : kUnit;
    const std::uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
    std::optional<Extent> expected = ShortestThenLowest(model_.Runs(true), rounded, alignment);
    if (!expected) expected = ShortestThenLowest(model_.Runs(false), rounded, alignment);
    const std::optional<Extent> extent = allocator_.Allocate(bytes);
    ASSERT_EQ(extent, expected);
    if (!extent) return;
    ASSERT_TRUE(model_.IsFree(*extent));
    model_.Use(*extent);
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
    model_.Free(extent);
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
      ASSERT_TRUE(model_.IsFree(extent) && model_.IsWarm(extent));
      model_.Cool(extent);
    }
    EXPECT_LT(Sum(trimmed), std::min(wanted, warm) + kPage);
    if (Sum(trimmed) >= wanted) return;
    for (const Extent& left : model_.Runs(true)) EXPECT_LT(left.bytes, 2 * kPage);
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
