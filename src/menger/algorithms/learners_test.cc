// Two learners with unequal shares of the rows equal one that has them all, for every algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/es.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "menger/networks/joined_rules.h"
#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

constexpr int kEnvironments = 8;
constexpr int kOfTheFirst = 3;  // Of them, or of whatever else is divided.
constexpr int kHorizon = 16;
constexpr int kUpdates = 4;

OptimiserOptions PlainAdam() { return {.epsilon = 1e-3, .max_gradient_norm = 0.5}; }

using OptionTextPairs = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<Algorithm> Make(const AlgorithmEntry& made_like, const AlgorithmContext& context,
                                const OptionTextPairs& texts) {
  for (auto& entry : AllAlgorithms()) {
    if (entry->name() != made_like.name()) continue;
    Options options(entry->name());
    entry->Declare(options);
    for (const auto& [name, text] : texts) options.SetFromText(name, text);
    return entry->Make(context);
  }
  return nullptr;
}

// Those of them that the algorithm has.
OptionTextPairs Declared(const AlgorithmEntry& made_like, OptionTextPairs texts) {
  for (auto& entry : AllAlgorithms()) {
    if (entry->name() != made_like.name()) continue;
    Options options(entry->name());
    entry->Declare(options);
    std::erase_if(texts, [&](const auto& text) { return !options.Contains(text.first); });
  }
  return texts;
}

// One learner that has everything, and two that share it.
struct Learners {
  Learners(const AlgorithmEntry& entry, const AlgorithmContext& context,
           const OptionTextPairs& texts)
      : alone(Make(entry, context, texts)),
        update(MakeLocalUpdateRule(PlainAdam(), alone->parameter_groups())),
        joined(2, PlainAdam(), alone->parameter_groups()) {
    for (int i = 0; i < 2; ++i) {
      AlgorithmContext of_one = context;
      of_one.environments = i == 0 ? kOfTheFirst : kEnvironments - kOfTheFirst;
      sharing.push_back(Make(entry, of_one, texts));
    }
  }

  // Each of the two calls it in a thread of its own, with its number.
  template <typename Function>
  void Share(const Function& learn) {
    auto second = std::async(std::launch::async, [&] { learn(1); });
    try {
      learn(0);
    } catch (const Error&) {
      second.get();  // Where it failed, the first waited for nothing: why is what counts.
      throw;
    }
    second.get();
  }

  void PublishAndCompare(const std::string& where) {
    alone->Publish();
    const auto expected = alone->publication().Latest();
    for (const auto& algorithm : sharing) {
      algorithm->Publish();
      const auto actual = algorithm->publication().Latest();
      for (std::size_t i = 0; i < expected->values().size(); ++i) {
        ASSERT_NEAR(actual->values()[i], expected->values()[i],
                    2e-5F * std::max(1.0F, std::abs(expected->values()[i])))
            << where << ", float " << i;
      }
    }
  }

  std::unique_ptr<Algorithm> alone;
  std::vector<std::unique_ptr<Algorithm>> sharing;
  std::unique_ptr<UpdateRule> update;
  JoinedRules joined;
};

// ---- Slabs.

std::byte* MemoryOf(Slab& slab, const SlabArray& array) {
  for (const SlabArray& other : slab.arrays()) {
    if (other.part != "reward") continue;
    return reinterpret_cast<std::byte*>(slab.reward(0)) - other.offset + array.offset;
  }
  return nullptr;
}

// Columns [first, first + count) of a slab as one of their own.
std::unique_ptr<Slab> PartOf(Slab& slab, int first, int count) {
  SlabSpec spec = slab.spec();
  spec.columns = ColumnLayout::Single(count);
  auto part = std::make_unique<Slab>(spec);
  const std::vector<SlabArray> from = slab.arrays();
  const std::vector<SlabArray> to = part->arrays();
  for (std::size_t array = 0; array < from.size(); ++array) {
    const bool sees_row_t = from[array].part == "observation" || from[array].part == "is_first";
    for (int row = 0; row < slab.horizon() + (sees_row_t ? 1 : 0); ++row) {
      std::memcpy(MemoryOf(*part, to[array]) + row * to[array].row,
                  MemoryOf(slab, from[array]) + row * from[array].row + first * from[array].item,
                  count * from[array].item);
    }
  }
  for (int row = 0; row < slab.horizon(); ++row) {
    for (int position = 0; position < count; ++position) {
      std::int32_t& index = part->final_index(row)[position];
      if (index >= 0) index = part->FinalSlot(row, position);
    }
  }
  return part;
}

// Some rows count for nobody, and in one slab the first learner has none that counts.
void Spoil(Slab& slab, int number) {
  for (int row = 0; row < slab.horizon(); ++row) {
    for (int column = 0; column < kEnvironments; ++column) {
      const bool of_the_first = column < kOfTheFirst;
      if ((row + 3 * column) % 7 == 0 || (number == 2 && of_the_first)) {
        slab.valid(row)[column] = 0;
      }
    }
  }
}

void CompareOnSlabs(const AlgorithmEntry& entry, const EnvironmentEntry& environment,
                    const OptionTextPairs& texts) {
  AlgorithmContext context{
      .environment = environment.spec, .environments = kEnvironments, .seed = 3};
  context.network.hidden = {8};
  context.transforms.apply = {"normalise_observation", "normalise_reward"};
  Learners learners(entry, context, texts);
  const auto collector = MakeCollector(
      {.environments = kEnvironments, .horizon = kHorizon, .pin = false, .seed = 1}, environment,
      [&] { return learners.alone->MakePolicy(PolicyMode::kSample, 2); });
  for (int i = 0; i < kUpdates; ++i) {
    Slab* whole = &collector->Collect();
    Spoil(*whole, i);
    const auto first = PartOf(*whole, 0, kOfTheFirst);
    const auto second = PartOf(*whole, kOfTheFirst, kEnvironments - kOfTheFirst);
    const auto learn = [](Algorithm& algorithm, Slab* slab, UpdateRule& update) {
      dynamic_cast<SlabAlgorithm&>(algorithm).Learn({&slab, 1}, update, /*progress=*/0.25);
    };
    learn(*learners.alone, whole, *learners.update);
    learners.Share([&](int learner) {
      learn(*learners.sharing[learner], learner == 0 ? first.get() : second.get(),
            learners.joined.rule(learner));
    });
    learners.PublishAndCompare(entry.name() + ", slab " + std::to_string(i));
  }
}

TEST(LearnersTest, TwoWithPartsOfASlabEqualOneWithTheWhole) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  int compared = 0;
  for (const auto& entry : AllAlgorithms()) {
    if (entry->data_rule() != DataRule::kSlabs) continue;
    // Minibatches are of each learner's own rows: only whole slabs can be compared.
    const OptionTextPairs texts =
        Declared(*entry, {{"minibatch_size", "1000000"}, {"target_kl", "0.01"}});
    for (const char* const environment : {"CartPole-v1", "Pendulum-v1"}) {
      CompareOnSlabs(*entry, catalog.Find(environment), texts);
      ++compared;
    }
  }
  EXPECT_GE(compared, 4);
}

// ---- Batches of replay.

// Items as replay would hand them out, each with all the rows that it can have.
class RecordedItems {
 public:
  RecordedItems(const ItemSpec& spec, int items, std::uint64_t salt) {
    for (const ItemColumn& column : spec.columns) {
      const LeafSpec& leaf = spec.LeafOf(column);
      Add(leaf, static_cast<std::size_t>(items) * column.rows, salt++);
      counts_.emplace_back(items, column.rows);
    }
    for (int i = 0; i < items; ++i) items_.push_back({.probability = 0.05 + 0.01 * i});
  }

  // Items [first, first + count).
  ReplayBatch Part(int first, int count) {
    const auto begin = static_cast<std::size_t>(first);
    of_part_.emplace_back();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t bytes = columns_[i].size() / items_.size();
      of_part_.back().push_back({.data = columns_[i].data() + begin * bytes,
                                 .item_bytes = bytes,
                                 .rows = std::span(counts_[i]).subspan(begin, count)});
    }
    return {.columns = of_part_.back(), .items = std::span(items_).subspan(begin, count)};
  }

 private:
  void Add(const LeafSpec& leaf, std::size_t rows, std::uint64_t salt) {
    if (leaf.dtype == DataType::kFloat32) {
      const float scale = leaf.name == "action" ? 0.9F : 1.5F;
      return Keep(RecordedInput(rows * leaf.elements(), salt, scale));
    }
    if (leaf.space == Space::kDiscrete) {
      std::vector<std::int64_t> choices;
      for (std::size_t i = 0; i < rows; ++i) {
        choices.push_back(static_cast<std::int64_t>(i * 5 + 1) % leaf.counts[0]);
      }
      return Keep(choices);
    }
    std::vector<std::uint8_t> flags;
    for (std::size_t i = 0; i < rows; ++i) flags.push_back(i % 4 == 0 ? 1 : 0);
    Keep(flags);
  }

  template <typename T>
  void Keep(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    columns_.emplace_back(bytes.begin(), bytes.end());
  }

  std::vector<std::vector<std::byte>> columns_;
  std::vector<std::vector<std::int32_t>> counts_;
  std::vector<SampledItem> items_;
  std::vector<std::vector<BatchColumn>> of_part_ = [] {
    std::vector<std::vector<BatchColumn>> parts;
    parts.reserve(16);  // What was handed out stays where it is.
    return parts;
  }();
};

void CompareOnBatches(const AlgorithmEntry& entry, const EnvironmentSpec& environment,
                      const OptionTextPairs& texts) {
  constexpr int kRows = 12;
  AlgorithmContext context{.environment = environment, .environments = kEnvironments, .seed = 3};
  context.network.hidden = {8};
  Learners learners(entry, context, texts);
  for (int i = 0; i < kUpdates; ++i) {
    RecordedItems rows(dynamic_cast<ReplayAlgorithm&>(*learners.alone).items(), kRows,
                       100 + 10 * i);
    const int of_the_first = i == 2 ? 0 : 5;  // Once it has nothing to draw from.
    const ReplayBatch whole = rows.Part(0, kRows);
    const ReplayBatch parts[] = {rows.Part(0, of_the_first),
                                 rows.Part(of_the_first, kRows - of_the_first)};
    const auto learn = [](Algorithm& algorithm, const ReplayBatch& batch, UpdateRule& update) {
      return dynamic_cast<ReplayAlgorithm&>(algorithm).Learn(batch, update, /*progress=*/0.25);
    };
    const Metrics expected = learn(*learners.alone, whole, *learners.update);
    learners.Share([&](int learner) {
      const Metrics metrics =
          learn(*learners.sharing[learner], parts[learner], learners.joined.rule(learner));
      ASSERT_EQ(metrics.size(), expected.size());
      for (std::size_t k = 0; k < metrics.size(); ++k) {
        EXPECT_EQ(metrics[k].first, expected[k].first);
        EXPECT_NEAR(metrics[k].second, expected[k].second, 1e-4) << metrics[k].first;
      }
    });
    learners.PublishAndCompare(entry.name() + ", batch " + std::to_string(i));
  }
}

TEST(LearnersTest, TwoWithPartsOfABatchEqualOneWithTheWhole) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  int compared = 0;
  for (const auto& entry : AllAlgorithms()) {
    if (entry->data_rule() != DataRule::kBatches) continue;
    const OptionTextPairs texts = Declared(*entry, {{"importance_exponent", "0.5"},
                                                    {"noisy", "true"},
                                                    {"double", "true"},
                                                    {"target_every", "2"},
                                                    {"sequence_length", "6"},
                                                    {"sequence_overlap", "2"},
                                                    {"burn_in", "3"}});
    for (const char* const name : {"CartPole-v1", "Pendulum-v1"}) {
      const EnvironmentSpec environment = catalog.Find(name).spec;
      try {
        entry->Check(environment);
      } catch (const Error&) {
        continue;  // Not for actions of this kind.
      }
      CompareOnBatches(*entry, environment, texts);
      ++compared;
    }
  }
  EXPECT_GE(compared, 4);
}

// ---- Episodes.

TEST(LearnersTest, TwoWithPartsOfAPopulationEqualOneWithTheWhole) {
  constexpr int kPairs = 9;
  const EnvironmentSpec environment = NativeEnvironments().Find("Pendulum-v1").spec;
  AlgorithmContext context{.environment = environment, .seed = 3};
  context.network.hidden = {8};
  context.transforms.apply = {"normalise_observation"};
  const EsConfig config{.pairs = kPairs, .learning_rate = 0.05, .noise_entries = 20'000};
  Es alone(config, context);
  Es first(config, context);
  Es second(config, context);
  const auto update = MakeLocalUpdateRule(PlainAdam(), alone.parameter_groups());
  JoinedRules joined(2, PlainAdam(), alone.parameter_groups());
  const std::vector<float> noise = MakeNoiseTable(config.noise_entries, 7);
  const PairStream stream(7, config.noise_entries, alone.parameter_count(), 0.5);
  for (int i = 0; i < kUpdates; ++i) {
    std::vector<PairOutcome> outcomes(kPairs);
    for (int pair = 0; pair < kPairs; ++pair) {
      const auto numbers = RecordedInput(8, 10 * i + pair, 3);
      outcomes[pair].returns = {numbers[0], numbers[1]};
      if (pair % 3 != 0) continue;
      outcomes[pair].observed = {
          .count = 4, .sum = {numbers[2], numbers[3], numbers[4]}, .squares = {9, 10, 11}};
    }
    const std::span<const PairOutcome> all = outcomes;
    alone.Learn(all, stream, noise, *update, 0);
    auto other = std::async(std::launch::async, [&] {
      second.Learn(all.subspan(kOfTheFirst), stream, noise, joined.rule(1), 0);
    });
    first.Learn(all.first(kOfTheFirst), stream, noise, joined.rule(0), 0);
    other.get();
    for (Es* const es : {&alone, &first, &second}) es->Publish();
    for (std::size_t k = 0; k < alone.published().size(); ++k) {
      ASSERT_NEAR(first.published()[k], alone.published()[k], 1e-5) << i << " " << k;
      ASSERT_NEAR(second.published()[k], alone.published()[k], 1e-5) << i << " " << k;
    }
  }
}

}  // namespace
}  // namespace menger
