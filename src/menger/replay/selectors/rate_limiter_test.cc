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

TEST(RateLimiterTest, AsManySamplesAreAllowedAsOneAfterTheOtherWouldBe) {
  for (const Case& c : Cases()) {
    const RateLimiter limiter = After(c.options, c.inserts, c.samples, c.deletes);
    RateLimiter one_by_one = limiter;
    std::int64_t allowed = 0;
    for (; allowed < 25 && one_by_one.CanSample(1); ++allowed) one_by_one.Sampled(1);
    EXPECT_EQ(limiter.SamplesAllowed(25), allowed);
  }
}

TEST(RateLimiterTest, WhatIsForgoneLetsOthersIn) {
  RateLimiter limiter = After(RateLimiterOptions::Queue(10), 10, 0, 0);
  EXPECT_FALSE(limiter.CanInsert(1));
  limiter.Deleted(4);
  EXPECT_FALSE(limiter.CanInsert(1));  // As Reverb's.
  limiter.Forgo(4);
  EXPECT_TRUE(limiter.CanInsert(4));
  EXPECT_FALSE(limiter.CanInsert(5));
  EXPECT_EQ(limiter.SamplesAllowed(10), 6);
}

// How many inserts, one after the other, and then how many samples a limiter allows.
std::pair<std::int64_t, std::int64_t> Room(RateLimiter limiter) {
  std::int64_t inserts = 0;
  const std::int64_t samples = limiter.SamplesAllowed(10'000);
  for (; inserts < 10'000 && limiter.CanInsert(1); ++inserts) limiter.Inserted(1);
  return {inserts, samples};
}

TEST(RateLimiterTest, CountsOfAnotherLimiterFitThisOnesWindow) {
  const auto ratio = [](double samples) {
    return RateLimiterOptions::SampleToInsertRatio(samples, 100, 40);
  };
  const auto restored = [](const RateLimiter& there, const RateLimiterOptions& options) {
    RateLimiter limiter(options);
    limiter.Restore(there.counts(), there.options());
    EXPECT_EQ(limiter.counts().inserts, there.counts().inserts);
    EXPECT_EQ(limiter.counts().samples, there.counts().samples);
    return Room(limiter);
  };
  // A run in balance: d is 400 in [360, 440]. By the numbers alone it would be 400,400 in [760,
  // 840] with 8 samples an insert: no insert for 399,560 samples.
  const RateLimiter even = After(ratio(4), 100'000, 399'600, 0);
  EXPECT_EQ(restored(even, ratio(4)), std::pair(std::int64_t{10}, std::int64_t{40}));
  EXPECT_EQ(restored(even, ratio(8)), std::pair(std::int64_t{5}, std::int64_t{40}));
  EXPECT_EQ(restored(even, ratio(2)), std::pair(std::int64_t{20}, std::int64_t{40}));
  // At an end of the window it stays there: a quarter, 380, goes to 780.
  const RateLimiter low = After(ratio(4), 100'000, 399'620, 0);
  EXPECT_EQ(restored(low, ratio(8)), std::pair(std::int64_t{7}, std::int64_t{20}));
  // Of a limiter without a window, the middle; to one without, whatever it was.
  const RateLimiter free = After(RateLimiterOptions::MinSize(100), 5'000, 77'000, 4'000);
  EXPECT_EQ(restored(free, ratio(4)), std::pair(std::int64_t{10}, std::int64_t{40}));
  EXPECT_EQ(restored(even, RateLimiterOptions::MinSize(9)),
            std::pair(std::int64_t{10'000}, std::int64_t{10'000}));
  // What still fills goes on filling: 60 items, 40 free inserts and those up to 440.
  const RateLimiter filling = After(ratio(4), 60, 0, 0);
  EXPECT_EQ(restored(filling, ratio(8)), std::pair(std::int64_t{45}, std::int64_t{0}));
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
