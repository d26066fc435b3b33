// Expected gates are computed by hand from Reverb's formulae (Cassirer et al. 2021, section 3.4):
//   sample n: inserts - deletes >= min_size and inserts * spi - samples - n >= min_diff
//   insert n: inserts + n - deletes <= min_size or (inserts + n) * spi - samples <= max_diff
#include "menger/replay/selectors/rate_limiter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

RateLimiter After(const RateLimiterOptions& options, std::int64_t inserts, std::int64_t samples,
                  std::int64_t deletes) {
  RateLimiter limiter(options);
  limiter.Inserted(inserts);
  limiter.Sampled(samples);
  limiter.Deleted(deletes);
  return limiter;
}

struct Case {
  RateLimiterOptions options;
  std::int64_t inserts, samples, deletes;
  std::int64_t count;
  bool can_insert, can_sample;
};

const RateLimiterOptions kNarrow{
    .samples_per_insert = 1.5, .min_size = 2, .min_diff = 0, .max_diff = 5};
const RateLimiterOptions kTenth{
    .samples_per_insert = 0.1, .min_size = 1, .min_diff = -1, .max_diff = 1};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      // Inserts are free up to min_size; then 3 * 1.5 = 4.5 <= 5, 4 * 1.5 = 6 > 5.
      {kNarrow, 0, 0, 0, 1, true, false},
      {kNarrow, 0, 0, 0, 2, true, false},
      {kNarrow, 0, 0, 0, 3, true, false},
      {kNarrow, 0, 0, 0, 4, false, false},
      {kNarrow, 3, 0, 0, 1, false, true},  // d = 4.5; 6 is too much; 3.5 is left.
      {kNarrow, 3, 0, 0, 4, false, true},  // 0.5 is left.
      {kNarrow, 3, 0, 0, 5, false, false},
      {kNarrow, 3, 2, 0, 1, true, true},   // d = 2.5; 4 after another insert.
      {kNarrow, 3, 2, 0, 2, false, true},  // 5.5 after two; 0.5 after two samples.
      {kNarrow, 3, 4, 0, 1, true, false},  // d = 0.5.
      // Deletions: below min_size nothing is sampled and inserting is free, whatever d is.
      {kNarrow, 3, 0, 1, 1, false, true},
      {kNarrow, 3, 0, 2, 1, true, false},
      {kNarrow, 3, 0, 2, 2, false, false},
      // A fractional ratio: 1 is free, 10 * 0.1 = 1 <= 1, 11 * 0.1 > 1.
      {kTenth, 0, 0, 0, 10, true, false},
      {kTenth, 0, 0, 0, 11, false, false},
      {kTenth, 10, 1, 0, 1, true, true},   // d = 0 -> -1.
      {kTenth, 9, 1, 0, 1, true, false},   // d = -0.1 -> -1.1.
      {kTenth, 1, 0, 0, 2, true, false},   // d = 0.1 -> -1.9.
      {kTenth, 30, 2, 0, 1, false, true},  // d = 1 -> 1.1 and 0.
      // Presets.
      {RateLimiterOptions::MinSize(3), 2, 0, 0, 1, true, false},
      {RateLimiterOptions::MinSize(3), 3, 0, 0, 1'000'000, true, true},
      {RateLimiterOptions::MinSize(3), 5, 1'000'000, 0, 1, true, true},
      {RateLimiterOptions::MinSize(3), 5, 0, 3, 1, true, false},
      {RateLimiterOptions::Queue(10), 0, 0, 0, 10, true, false},
      {RateLimiterOptions::Queue(10), 0, 0, 0, 11, false, false},
      {RateLimiterOptions::Queue(10), 10, 0, 0, 1, false, true},
      {RateLimiterOptions::Queue(10), 10, 0, 0, 10, false, true},
      {RateLimiterOptions::Queue(10), 10, 4, 4, 6, false, true},
      {RateLimiterOptions::Queue(10), 10, 4, 4, 7, false, false},
      {RateLimiterOptions::Queue(10), 10, 4, 4, 4, true, true},
      {RateLimiterOptions::Stack(10), 10, 10, 10, 1, true, false},
      // 4 samples an insert, from 100 items on, give or take 8: d in [392, 408].
      {RateLimiterOptions::SampleToInsertRatio(4, 100, 8), 100, 0, 0, 8, false, true},
      {RateLimiterOptions::SampleToInsertRatio(4, 100, 8), 100, 0, 0, 9, false, false},
      {RateLimiterOptions::SampleToInsertRatio(4, 100, 8), 100, 0, 0, 2, true, true},
      {RateLimiterOptions::SampleToInsertRatio(4, 100, 8), 99, 0, 0, 1, true, false},
  };
  return cases;
}

TEST(RateLimiterTest, GatesAreReverbs) {
  for (std::size_t i = 0; i < Cases().size(); ++i) {
    const Case& c = Cases()[i];
    const RateLimiter limiter = After(c.options, c.inserts, c.samples, c.deletes);
    EXPECT_EQ(limiter.CanInsert(c.count), c.can_insert) << "case " << i;
    EXPECT_EQ(limiter.CanSample(c.count), c.can_sample) << "case " << i;
  }
}

TEST(RateLimiterTest, MessagesSayTheGateTheCountsAndWhatWouldOpenIt) {
  const RateLimiterOptions options{
      .samples_per_insert = 4, .min_size = 1000, .min_diff = 3000, .max_diff = 5000};
  EXPECT_EQ(After(options, 999, 0, 0).WhyNoSample(32),
            "rate limiter (4 samples an insert, min size 1000, d in [3000, 5000]): 999 of 1000 "
            "items are there, d is 3996 and would be 3964; 1 more insert lets sampling go on");
  EXPECT_EQ(After(options, 1000, 1000, 0).WhyNoSample(32),
            "rate limiter (4 samples an insert, min size 1000, d in [3000, 5000]): d is 3000 and "
            "would be 2968; 8 more inserts let sampling go on");
  EXPECT_EQ(After(options, 1250, 0, 0).WhyNoInsert(1),
            "rate limiter (4 samples an insert, min size 1000, d in [3000, 5000]): d is 5000 and "
            "would be 5004; 4 more samples or 251 more deletions let inserting go on");
  EXPECT_EQ(After(RateLimiterOptions::MinSize(5), 2, 0, 0).WhyNoSample(1),
            "rate limiter (1 sample an insert, min size 5): 2 of 5 items are there, d is 2 and "
            "would be 1; 3 more inserts let sampling go on");
}

// Whatever the ratio, exactly as many as the message says open the gate, and no fewer.
TEST(RateLimiterTest, WhatMessagesPromiseIsExact) {
  for (const double ratio : {0.1, 0.3, 1.0, 1.7, 8.0}) {
    const RateLimiterOptions options{
        .samples_per_insert = ratio, .min_size = 1, .min_diff = -2, .max_diff = 20};
    for (std::int64_t samples = 0; samples < 200; samples += 7) {
      RateLimiter limiter = After(options, 1, samples, 0);
      if (limiter.CanSample(3)) continue;
      const std::string text = limiter.WhyNoSample(3);
      const std::int64_t more = std::stoll(text.substr(text.rfind("; ") + 2));
      limiter.Inserted(more - 1);
      EXPECT_FALSE(limiter.CanSample(3)) << text;
      limiter.Inserted(1);
      EXPECT_TRUE(limiter.CanSample(3)) << text;
    }
  }
}

TEST(RateLimiterTest, TheLargestCallIsAsWideAsTheRangeOfD) {
  EXPECT_EQ(RateLimiterOptions::SampleToInsertRatio(4, 100, 8).SamplesMax(), 16);
  EXPECT_EQ(RateLimiterOptions::Queue(10).SamplesMax(), 10);
  EXPECT_EQ(RateLimiterOptions::MinSize(1).SamplesMax(), kInfinity);
  // While it fills, d reaches 100 although max_diff is 10.
  const RateLimiterOptions filling{
      .samples_per_insert = 1, .min_size = 100, .min_diff = 0, .max_diff = 10};
  EXPECT_EQ(filling.SamplesMax(), 100);
}

TEST(RateLimiterTest, OptionsThatCannotWorkAreRefusedByName) {
  const double nan = std::nan("");
  const std::vector<std::pair<RateLimiterOptions, std::string>> bad = {
      {{.samples_per_insert = 0}, "samples_per_insert"},
      {{.samples_per_insert = -1}, "samples_per_insert"},
      {{.samples_per_insert = nan}, "samples_per_insert"},
      {{.samples_per_insert = kInfinity}, "samples_per_insert"},
      {{.min_size = 0}, "min_size"},
      {{.min_diff = 1, .max_diff = 0}, "min_diff"},
      {{.min_diff = nan}, "min_diff"},
      {{.max_diff = nan}, "max_diff"},
      {{.min_diff = kInfinity}, "min_diff"},
  };
  for (const auto& [options, field] : bad) {
    try {
      RateLimiter limiter(options);
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
  }
}

TEST(RateLimiterTest, AnErrorBufferBelowOneInsertOrSampleIsRefused) {
  EXPECT_THROW(RateLimiterOptions::SampleToInsertRatio(4, 100, 3.9), Error);
  EXPECT_THROW(RateLimiterOptions::SampleToInsertRatio(0.1, 100, 0.9), Error);
  EXPECT_NO_THROW(RateLimiterOptions::SampleToInsertRatio(4, 100, 4));
  EXPECT_NO_THROW(RateLimiterOptions::SampleToInsertRatio(0.1, 100, 1));
}

}  // namespace
}  // namespace menger
