#include "menger/replay/selectors/prioritised_selector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

// The sum of the weights to nearly twice the precision of a double (Kahan 1965, Neumaier's form).
double ExactSum(const std::vector<double>& weights) {
  double sum = 0;
  double lost = 0;
  for (const double weight : weights) {
    const double next = sum + weight;
    lost += std::abs(sum) >= weight ? (sum - next) + weight : (weight - next) + sum;
    sum = next;
  }
  return sum + lost;
}

// As the header states it, with what the comparison itself rounds.
double Bound(std::size_t slots, double sum) {
  int levels = 1;
  for (std::size_t reach = 8; reach < slots; reach *= 8) ++levels;
  return sum * (3 * levels + 1) * 0x1p-53 * 1.0001;
}

// One draw's number from a stream that begins with the largest that there is, 1 - 2^-53.
Random WithLargestDraw() { return Random(RandomState{.increment_low = ~std::uint64_t{0}}); }

TEST(PrioritisedSelectorTest, DrawsInProportionToPowersOfPriorities) {
  constexpr std::uint32_t kItems = 1000;
  constexpr int kDraws = 4'000'000;
  PrioritisedSelector selector(/*exponent=*/0.6);
  std::vector<double> weights(kItems);
  for (std::uint32_t slot = 0; slot < kItems; ++slot) {
    selector.Insert(slot, slot + 1, 1.0 + slot % 37);
    weights[slot] = std::pow(1.0 + slot % 37, 0.6);
  }
  const double sum = ExactSum(weights);
  Random random = Random::FromSeed(11);
  std::vector<Selection> selections(kDraws);
  selector.SelectMany(random, selections);
  std::vector<int> counts(kItems);
  for (const Selection& selection : selections) {
    ++counts[selection.slot];
    ASSERT_NEAR(selection.probability, weights[selection.slot] / sum, 1e-15);
  }
  double chi_square = 0;
  for (std::uint32_t slot = 0; slot < kItems; ++slot) {
    const double expected = kDraws * weights[slot] / sum;
    chi_square += (counts[slot] - expected) * (counts[slot] - expected) / expected;
  }
  EXPECT_LT(chi_square, 1105.9169575045823);  // scipy.stats.chi2.ppf(0.99, 999)
}

// The model: the slot at which the running sum of weights, slot after slot, passes draw * total.
TEST(PrioritisedSelectorTest, EachDrawFallsWhereAModelsRunningSumFalls) {
  PrioritisedSelector selector(/*exponent=*/1.0);
  Random random = Random::FromSeed(12);
  std::vector<double> weights;
  for (int i = 0; i < 100'000; ++i) {
    const double priority = random.Double() < 0.3 ? 0 : random.Uniform(0, 100);
    const std::int64_t slot = random.Integers(0, 300);
    if (slot >= std::ssize(weights)) {
      weights.push_back(priority);
      selector.Insert(static_cast<std::uint32_t>(weights.size() - 1), i + 1, priority);
    } else if (random.Double() < 0.2) {
      weights[slot] = 0;
      selector.Erase(static_cast<std::uint32_t>(slot));
    } else {
      weights[slot] = priority;
      selector.Update(static_cast<std::uint32_t>(slot), priority);
    }
    const double sum = ExactSum(weights);
    ASSERT_NEAR(selector.total(), sum, Bound(weights.size(), sum));
    if (sum == 0) continue;
    Random copy = random;
    const double target = copy.Double() * sum;
    const Selection selection = selector.Select(random);
    const std::vector<double> before(weights.begin(), weights.begin() + selection.slot);
    const double begin = ExactSum(before);
    const double weight = weights[selection.slot];
    ASSERT_GT(weight, 0);
    ASSERT_NEAR(selection.probability, weight / sum, 1e-14);
    ASSERT_GE(target, begin - 1e-13 * sum);
    ASSERT_LE(target, begin + weight + 1e-13 * sum);
  }
}

TEST(PrioritisedSelectorTest, TheTotalDoesNotDriftInMillionsOfUpdates) {
  constexpr std::uint32_t kItems = 100'003;
  PrioritisedSelector selector(/*exponent=*/1.0);
  Random random = Random::FromSeed(13);
  // From 1e-12 to 1e12: sums adjusted by differences would be far off after a few of these.
  const auto weight = [&] { return std::pow(10.0, random.Uniform(-12, 12)); };
  std::vector<double> weights(kItems);
  for (std::uint32_t slot = 0; slot < kItems; ++slot) {
    weights[slot] = weight();
    selector.Insert(slot, slot + 1, weights[slot]);
  }
  std::vector<std::uint32_t> slots(256);
  std::vector<double> priorities(256);
  for (int block = 0; block < 10'000; ++block) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i] = static_cast<std::uint32_t>(random.Integers(0, kItems));
      priorities[i] = weights[slots[i]] = weight();
    }
    selector.UpdateMany(slots, priorities);
    if (block % 1000 != 999) continue;
    const double sum = ExactSum(weights);
    ASSERT_NEAR(selector.total(), sum, Bound(kItems, sum));
  }
  // All small again: what the large ones left behind would be seen now.
  for (std::uint32_t slot = 0; slot < kItems; ++slot) {
    weights[slot] = 1e-12 * (slot + 1);
    selector.Update(slot, weights[slot]);
  }
  const double sum = ExactSum(weights);
  EXPECT_NEAR(selector.total(), sum, Bound(kItems, sum));
}

TEST(PrioritisedSelectorTest, ManyAtOnceAreTheSameAsOneByOne) {
  for (const std::uint32_t items : {1U, 7U, 8U, 9U, 64U, 65U, 511U, 513U, 5000U}) {
    PrioritisedSelector many(/*exponent=*/0.7);
    PrioritisedSelector single(/*exponent=*/0.7);
    Random random = Random::FromSeed(14);
    for (std::uint32_t slot = 0; slot < items; ++slot) {
      const double priority = 1.0 + random.Double();
      many.Insert(slot, slot + 1, priority);
      single.Insert(slot, slot + 1, priority);
    }
    Random random_many = Random::FromSeed(15);
    Random random_single = random_many;
    for (const std::size_t count : {1U, 5U, 256U, 700U}) {
      std::vector<std::uint32_t> slots(count);
      std::vector<double> priorities(count);
      for (std::size_t i = 0; i < count; ++i) {
        slots[i] = static_cast<std::uint32_t>(random.Integers(0, items));
        priorities[i] = i % 5 == 0 ? 0 : random.Double();
        single.Update(slots[i], priorities[i]);
      }
      many.UpdateMany(slots, priorities);
      ASSERT_EQ(many.total(), single.total());
      if (!many.CanSelect()) continue;
      std::vector<Selection> selections(count);
      many.SelectMany(random_many, selections);
      for (const Selection& selection : selections) {
        const Selection expected = single.Select(random_single);
        ASSERT_EQ(selection.slot, expected.slot);
        ASSERT_EQ(selection.probability, expected.probability);
      }
    }
  }
}

TEST(PrioritisedSelectorTest, OfSeveralUpdatesOfOneSlotTheLastCounts) {
  PrioritisedSelector selector(/*exponent=*/1.0);
  selector.Insert(0, 1, 1.0);
  selector.Insert(1, 2, 1.0);
  const std::vector<std::uint32_t> slots{0, 1, 0};
  const std::vector<double> priorities{5.0, 3.0, 2.0};
  selector.UpdateMany(slots, priorities);
  EXPECT_EQ(selector.total(), 5.0);
}

// Item i has weight i + 1, so a share of the sum has whole items and parts of two: counts of a call
// differ from their expectation by less than 2, which independent draws do not.
TEST(PrioritisedSelectorTest, StratifiedDrawsAreSpreadAndAsLikelyAsSaid) {
  constexpr std::uint32_t kItems = 50;
  constexpr int kDraws = 600;
  PrioritisedSelector selector(/*exponent=*/1.0, /*stratified=*/true);
  for (std::uint32_t slot = 0; slot < kItems; ++slot) selector.Insert(slot, slot + 1, slot + 1.0);
  Random random = Random::FromSeed(3);
  std::vector<double> counts(kItems, 0.0);
  constexpr int kCalls = 400;
  for (int call = 0; call < kCalls; ++call) {
    std::vector<Selection> selections(kDraws);
    selector.SelectMany(random, selections);
    std::vector<int> of_call(kItems, 0);
    for (const Selection& selection : selections) {
      ++of_call[selection.slot];
      ++counts[selection.slot];
      EXPECT_DOUBLE_EQ(selection.probability, (selection.slot + 1.0) / selector.total());
    }
    for (std::uint32_t slot = 0; slot < kItems; ++slot) {
      const double expected = kDraws * (slot + 1.0) / selector.total();
      ASSERT_LT(std::abs(of_call[slot] - expected), 2) << slot;
    }
  }
  for (std::uint32_t slot = 0; slot < kItems; ++slot) {
    const double expected = kCalls * kDraws * (slot + 1.0) / selector.total();
    EXPECT_NEAR(counts[slot], expected, 5 * std::sqrt(kCalls * 0.5)) << slot;
  }
}

TEST(PrioritisedSelectorTest, AZeroPriorityIsNeverDrawnWhateverTheExponent) {
  for (const double exponent : {0.0, 0.5, 1.0}) {
    PrioritisedSelector selector(exponent);
    for (std::uint32_t slot = 0; slot < 100; ++slot) {
      selector.Insert(slot, slot + 1, slot % 10 == 3 ? 2.0 : 0.0);
    }
    Random random = Random::FromSeed(16);
    std::vector<Selection> selections(10'000);
    selector.SelectMany(random, selections);
    for (const Selection& selection : selections) {
      ASSERT_EQ(selection.slot % 10, 3U);
      ASSERT_NEAR(selection.probability, 0.1, 1e-15);
    }
    for (std::uint32_t slot = 3; slot < 100; slot += 10) selector.Update(slot, 0.0);
    EXPECT_FALSE(selector.CanSelect());
    EXPECT_THROW(selector.Select(random), Error);
  }
}

// Where the largest draw times the total rounds beyond what the parts add up to, the last part that
// is not 0 is taken.
TEST(PrioritisedSelectorTest, RoundingAtTheUpperEndDrawsNoZero) {
  Random largest = WithLargestDraw();
  ASSERT_EQ(largest.Double(), 1 - 0x1p-53);
  Random random = Random::FromSeed(17);
  for (int trial = 0; trial < 20'000; ++trial) {
    const auto items = static_cast<std::uint32_t>(random.Integers(1, 100));
    PrioritisedSelector selector(/*exponent=*/1.0);
    std::uint32_t last = 0;
    bool some = false;
    for (std::uint32_t slot = 0; slot < items; ++slot) {
      const double priority = random.Double() < 0.5 ? 0 : std::pow(10, random.Uniform(-3, 3));
      selector.Insert(slot, slot + 1, priority);
      if (priority == 0) continue;
      last = slot;
      some = true;
    }
    if (!some) continue;
    Random copy = WithLargestDraw();
    const Selection selection = selector.Select(copy);
    ASSERT_GT(selection.probability, 0);
    ASSERT_LE(selection.slot, last);
  }
}

TEST(PrioritisedSelectorTest, PrioritiesAtTheEndsOfTheRangeOfDoublesKeepSumsFinite) {
  PrioritisedSelector selector(/*exponent=*/2.0);
  selector.Insert(0, 1, 1e-300);  // The square is no double.
  EXPECT_TRUE(selector.CanSelect());
  Random random = Random::FromSeed(18);
  EXPECT_EQ(selector.Select(random).probability, 1.0);
  for (std::uint32_t slot = 1; slot < 100; ++slot) selector.Insert(slot, slot + 1, 1e308);
  EXPECT_TRUE(std::isfinite(selector.total()));
  EXPECT_NEAR(selector.Select(random).probability, 1.0 / 99, 1e-15);
}

TEST(PrioritisedSelectorTest, SlotsMayComeInAnyOrder) {
  PrioritisedSelector selector(/*exponent=*/1.0);
  selector.Insert(70'000, 1, 3.0);
  selector.Insert(5, 2, 1.0);
  selector.Insert(600'000, 3, 4.0);
  EXPECT_EQ(selector.total(), 8.0);
  selector.Erase(70'000);
  EXPECT_EQ(selector.total(), 5.0);
  Random random = Random::FromSeed(19);
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t slot = selector.Select(random).slot;
    EXPECT_TRUE(slot == 5 || slot == 600'000) << slot;
  }
}

}  // namespace
}  // namespace menger
