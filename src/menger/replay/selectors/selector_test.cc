// Each selector against a model that keeps the items in a plain map and looks at all of them.
#include "menger/replay/selectors/selector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

struct Entry {
  std::uint32_t slot = 0;
  double priority = 0;
};

// Applies random operations to a selector, and keeps what they come to.
class Operations {
 public:
  Operations(Selector& selector, std::uint64_t seed)
      : selector_(selector), random_(Random::FromSeed(seed)) {}

  // By number.
  const std::map<std::uint64_t, Entry>& items() const { return items_; }

  void Step() {
    const double kind = random_.Double();
    if (items_.empty() || (kind < 0.35 && items_.size() < 200)) {
      Insert();
    } else if (kind < 0.6) {
      Erase();
    } else {
      Update();
    }
  }

  void Insert() {
    const std::uint32_t slot = free_.empty() ? slots_++ : free_.back();
    if (!free_.empty()) free_.pop_back();
    const double priority = Priority();
    items_[++numbers_] = {slot, priority};
    selector_.Insert(slot, numbers_, priority);
  }

  void Erase() {
    const auto item = Any();
    selector_.Erase(item->second.slot);
    free_.push_back(item->second.slot);
    items_.erase(item);
  }

  void Update() {
    const auto item = Any();
    item->second.priority = Priority();
    selector_.Update(item->second.slot, item->second.priority);
  }

 private:
  // Few different values, so that there are ties, and zeros among them.
  double Priority() { return static_cast<double>(random_.Integers(0, 20)); }
  std::map<std::uint64_t, Entry>::iterator Any() {
    return std::next(items_.begin(), random_.Integers(0, std::ssize(items_)));
  }

  Selector& selector_;
  Random random_;
  std::map<std::uint64_t, Entry> items_;
  std::vector<std::uint32_t> free_;
  std::uint32_t slots_ = 0;
  std::uint64_t numbers_ = 0;
};

// The slot that the model would choose, where the choice is not random.
std::uint32_t ExpectedSlot(SelectorKind kind, const std::map<std::uint64_t, Entry>& items) {
  if (kind == SelectorKind::kFifo) return items.begin()->second.slot;
  if (kind == SelectorKind::kLifo) return items.rbegin()->second.slot;
  Entry best = items.begin()->second;
  for (const auto& [number, entry] : items) {
    const bool better = kind == SelectorKind::kMinHeap ? entry.priority < best.priority
                                                       : entry.priority > best.priority;
    if (better) best = entry;
  }
  return best.slot;
}

class DeterministicSelectorTest : public testing::TestWithParam<SelectorKind> {};

TEST_P(DeterministicSelectorTest, ChoosesWhatAModelChoosesAfterRandomOperations) {
  const std::unique_ptr<Selector> selector = MakeSelector({.kind = GetParam()});
  Operations operations(*selector, /*seed=*/1);
  Random random = Random::FromSeed(2);
  const RandomState before = random.Save();
  for (int i = 0; i < 100'000; ++i) {
    operations.Step();
    ASSERT_EQ(selector->CanSelect(), !operations.items().empty());
    if (operations.items().empty()) continue;
    const Selection selection = selector->Select(random);
    ASSERT_EQ(selection.slot, ExpectedSlot(GetParam(), operations.items())) << "after step " << i;
    ASSERT_EQ(selection.probability, 1.0);
  }
  EXPECT_EQ(random.Save(), before);
}

INSTANTIATE_TEST_SUITE_P(All, DeterministicSelectorTest,
                         testing::Values(SelectorKind::kFifo, SelectorKind::kLifo,
                                         SelectorKind::kMinHeap, SelectorKind::kMaxHeap),
                         [](const auto& info) { return ToString({.kind = info.param}); });

TEST(SelectorTest, UniformKnowsExactlyTheItemsThatThereAre) {
  const std::unique_ptr<Selector> selector = MakeSelector({});
  Operations operations(*selector, /*seed=*/3);
  Random random = Random::FromSeed(4);
  for (int i = 0; i < 100'000; ++i) {
    operations.Step();
    if (operations.items().empty()) continue;
    const Selection selection = selector->Select(random);
    ASSERT_EQ(selection.probability, 1.0 / static_cast<double>(operations.items().size()));
    bool there = false;
    for (const auto& [number, entry] : operations.items()) there |= entry.slot == selection.slot;
    ASSERT_TRUE(there) << "after step " << i;
  }
}

TEST(SelectorTest, UniformDrawsAllItemsEquallyOften) {
  constexpr int kItems = 100;
  constexpr int kDraws = 1'000'000;
  const std::unique_ptr<Selector> selector = MakeSelector({});
  for (std::uint32_t slot = 0; slot < kItems + 50; ++slot) selector->Insert(slot, slot + 1, 1.0);
  for (std::uint32_t slot = 0; slot < 100; slot += 2) selector->Erase(slot);
  Random random = Random::FromSeed(5);
  std::map<std::uint32_t, int> counts;
  std::vector<Selection> selections(kDraws);
  selector->SelectMany(random, selections);
  for (const Selection& selection : selections) ++counts[selection.slot];
  ASSERT_EQ(counts.size(), std::size_t{kItems});
  double chi_square = 0;
  for (const auto& [slot, count] : counts) {
    const double expected = static_cast<double>(kDraws) / kItems;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_square, 134.64161685578915);  // scipy.stats.chi2.ppf(0.99, 99)
}

TEST(SelectorTest, TheSameSeedAndOperationsGiveTheSameDraws) {
  for (const SelectorKind kind : {SelectorKind::kUniform, SelectorKind::kPrioritised}) {
    std::vector<std::vector<std::uint32_t>> draws(2);
    for (std::vector<std::uint32_t>& drawn : draws) {
      const std::unique_ptr<Selector> selector = MakeSelector({.kind = kind});
      Operations operations(*selector, /*seed=*/6);
      Random random = Random::FromSeed(7);
      for (int i = 0; i < 2000; ++i) {
        operations.Step();
        if (selector->CanSelect()) drawn.push_back(selector->Select(random).slot);
      }
    }
    EXPECT_EQ(draws[0], draws[1]);
  }
}

// All that a checkpoint knows of a selector, besides its order, is the items it had.
TEST(SelectorTest, DrawsGoOnBitForBitAfterTheOrderIsRestored) {
  for (int kind = 0; kind <= static_cast<int>(SelectorKind::kPrioritised); ++kind) {
    const SelectorOptions options{.kind = static_cast<SelectorKind>(kind), .exponent = 0.6};
    SCOPED_TRACE(ToString(options));
    const std::unique_ptr<Selector> selector = MakeSelector(options);
    Operations operations(*selector, /*seed=*/8);
    for (int i = 0; i < 5000 || !selector->CanSelect(); ++i) operations.Step();
    const std::unique_ptr<Selector> loaded = MakeSelector(options);
    for (const auto& [number, entry] : operations.items()) {
      loaded->Insert(entry.slot, number, entry.priority);
    }
    loaded->RestoreOrder(selector->order());
    Random random = Random::FromSeed(9);
    Random loaded_random = random;
    for (int i = 0; i < 1000; ++i) {
      const Selection expected = selector->Select(random);
      const Selection found = loaded->Select(loaded_random);
      ASSERT_EQ(found.slot, expected.slot);
      ASSERT_EQ(found.probability, expected.probability);
    }
  }
}

TEST(SelectorTest, UniformRefusesAnOrderOfOtherItems) {
  const std::unique_ptr<Selector> other = MakeSelector({});
  other->Insert(0, 1, 1.0);
  other->Insert(2, 2, 1.0);
  EXPECT_THROW(other->RestoreOrder(std::vector<std::uint32_t>{0, 1}), Error);
}

TEST(SelectorTest, AnEmptySelectorSaysSo) {
  Random random = Random::FromSeed(10);
  for (int kind = 0; kind <= static_cast<int>(SelectorKind::kPrioritised); ++kind) {
    const std::unique_ptr<Selector> selector =
        MakeSelector({.kind = static_cast<SelectorKind>(kind)});
    EXPECT_FALSE(selector->CanSelect());
    try {
      selector->Select(random);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    }
  }
}

TEST(SelectorTest, ExponentsThatMeanNothingAreRefused) {
  for (const double exponent : {-0.1, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THROW(MakeSelector({.kind = SelectorKind::kPrioritised, .exponent = exponent}), Error);
  }
}

TEST(SelectorTest, OptionsHaveNamesForMessages) {
  EXPECT_EQ(ToString({.kind = SelectorKind::kMinHeap}), "min_heap");
  EXPECT_EQ(ToString({.kind = SelectorKind::kPrioritised, .exponent = 0.6}), "prioritised(0.6)");
}

}  // namespace
}  // namespace menger
