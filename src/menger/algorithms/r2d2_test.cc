#include "menger/algorithms/r2d2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/file_testing.h"
#include "menger/base/random.h"
#include "menger/networks/update_rule.h"

namespace menger {
namespace {

constexpr int kInputs = 3;
constexpr int kActions = 4;
constexpr SequenceOptions kOptions = {.length = 4, .overlap = 2, .burn_in = 3, .n_step = 2};
constexpr int kSteps = 5;               // Of a whole window.
constexpr int kShown = 3 + kSteps + 1;  // Observations of a whole item.
constexpr double kDiscount = 0.9, kRescaling = 1e-2, kMix = 0.7;

// How much of an item there is: observations before the window, and steps of it.
struct Extent {
  int before = 0;
  int steps = 0;
  bool terminated = false;

  int decisions() const { return std::min<int>(steps, kOptions.length); }
};
const std::vector<Extent> kExtents = {{3, 5, false}, {0, 5, false}, {2, 3, true},
                                      {3, 1, false}, {1, 5, true},  {3, 4, false}};

struct Variant {
  std::string network = "mlp";
  bool duelling = false;
  bool mask = false;
};

AlgorithmContext ContextOf(const Variant& variant) {
  std::vector<LeafSpec> leaves = {
      LeafSpec::Box("observation", DataType::kFloat32, {kInputs}, {-1}, {1})};
  if (variant.mask) leaves.push_back(LeafSpec::Mask(std::string(kActionMask), kActions));
  AlgorithmContext context{
      .environment = {.name = "Any",
                      .observation = Spec(leaves),
                      .action = Spec({LeafSpec::Discrete("action", kActions)})},
      .seed = 5};
  context.network.kind = variant.network;
  context.network.hidden = {4};
  context.network.lstm_size = 4;
  return context;
}

R2d2Config ConfigOf(const Variant& variant) {
  return {.sequences = kOptions,
          .discount = kDiscount,
          .duelling = variant.duelling,
          .value_rescaling = kRescaling,
          .target_every = 1'000'000,
          .priority_mix = kMix,
          .importance_exponent = 0.5};
}

// Items as replay would hand them out, of random numbers, also where an item has no rows: nobody
// may look there.
struct RandomSequences {
  RandomSequences(const R2d2& r2d2, std::uint64_t seed) {
    const std::size_t count = kExtents.size();
    Random random = Random::FromSeed(seed);
    const auto normal = [&](std::vector<float>& values, std::size_t size) {
      values.resize(size);
      for (float& value : values) value = static_cast<float>(random.Normal());
    };
    normal(observations, count * kShown * kInputs);
    normal(rewards, count * kSteps);
    for (float& reward : rewards) reward *= 3;
    normal(states, count * r2d2.network().state_width());
    for (std::size_t i = 0; i < count * kOptions.length; ++i) {
      actions.push_back(random.Integers(0, kActions));
    }
    for (std::size_t i = 0; i < count * (kSteps + 1) * kActions; ++i) {
      masks.push_back(i % kActions == 1 || random.Integers(0, 2) == 0 ? 1 : 0);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Extent& extent = kExtents[i];
      terminated.push_back(extent.terminated ? 1 : 0);
      items.push_back({.probability = 0.01 * static_cast<double>(1 + i % 3)});
      const int rows[] = {extent.before + extent.steps + 1,
                          extent.decisions(),
                          extent.steps,
                          1,
                          1,
                          extent.steps + 1};
      for (int column = 0; column < 6; ++column) counts[column].push_back(rows[column]);
    }
    Add(observations, 0);
    Add(actions, 1);
    Add(rewards, 2);
    Add(terminated, 3);
    if (r2d2.format().has_state()) Add(states, 4);
    if (r2d2.format().has_mask()) Add(masks, 5);
  }

  template <typename T>
  void Add(std::vector<T>& column, int rows) {
    columns.push_back({.data = reinterpret_cast<std::byte*>(column.data()),
                       .item_bytes = column.size() / kExtents.size() * sizeof(T),
                       .rows = counts[rows]});
  }

  ReplayBatch view() const { return {.columns = columns, .items = items}; }

  std::vector<float> observations, rewards, states;
  std::vector<std::int64_t> actions;
  std::vector<std::uint8_t> terminated, masks;
  std::vector<std::int32_t> counts[6];
  std::vector<SampledItem> items;
  std::vector<BatchColumn> columns;
};

// Takes the gradient and leaves the parameters alone.
class SequenceProbe final : public UpdateRule {
 public:
  using UpdateRule::Step;
  double Step(int, const GroupValues& values, double) override {
    gradient.assign(values.gradients.begin(), values.gradients.end());
    return 0;
  }
  void Sum(std::span<double>) override {}
  int learners() const override { return 1; }
  int learner() const override { return 0; }
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

  std::vector<float> gradient;
};

double MetricNamed(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

// h of the paper, and its inverse found by halving.
double Squash(double x) {
  return (x > 0 ? 1 : -1) * (std::sqrt(std::abs(x) + 1) - 1) + kRescaling * x;
}
double Stretch(double y) {
  double low = -1e6;
  double high = 1e6;
  for (int i = 0; i < 200; ++i) (Squash((low + high) / 2) < y ? low : high) = (low + high) / 2;
  return low;
}

using Rows = std::vector<std::vector<double>>;

// One sequence, one observation at a time, its state carried by hand. Values of actions.
class OneByOne {
 public:
  OneByOne(const Network& network, const Variant& variant)
      : network_(network.Clone(1)), duelling_(variant.duelling) {}

  Network& network() { return *network_; }
  std::vector<float>& state() { return state_; }

  std::vector<double> See(const float* observation) {
    const auto outputs = network_->Infer({.observations = observation,
                                          .rows = 1,
                                          .state = state_.empty() ? nullptr : state_.data()});
    const int width = network_->state_width();
    if (width > 0) state_.assign(network_->next_state(), network_->next_state() + width);
    std::vector<double> values(outputs[0].row(0), outputs[0].row(0) + kActions);
    if (!duelling_) return values;
    double mean = 0;
    for (const double advantage : values) mean += advantage / kActions;
    for (double& value : values) value += *outputs[1].row(0) - mean;
    return values;
  }

 private:
  const std::unique_ptr<Network> network_;
  const bool duelling_;
  std::vector<float> state_;
};

// What an update should be, from the definitions in float64.
struct Expected {
  Expected(R2d2& r2d2, const Variant& variant, const RandomSequences& batch)
      : variant_(variant), batch_(batch), online_(r2d2.network(), variant) {
    OneByOne target(r2d2.target().network(), variant);
    double smallest = std::numeric_limits<double>::infinity();
    int all = 0;
    for (std::size_t i = 0; i < kExtents.size(); ++i) {
      smallest = std::min(smallest, batch.items[i].probability);
      all += kExtents[i].decisions();
    }
    for (std::size_t i = 0; i < kExtents.size(); ++i) {
      weights.push_back(std::sqrt(smallest / batch.items[i].probability) / all);
      Begin(target, i);
      const Rows of_target = Window(target, i);
      Begin(online_, i);
      states.push_back(online_.state());
      const Rows of_online = Window(online_, i);
      AddTargets(i, of_online, of_target);
    }
  }

  // The state with which a network comes to the window.
  void Begin(OneByOne& network, std::size_t i) const {
    const auto width = static_cast<std::ptrdiff_t>(network.network().state_width());
    const auto stored = batch_.states.begin() + static_cast<std::ptrdiff_t>(i) * width;
    network.state().assign(stored, stored + width);
    if (kExtents[i].before < kOptions.burn_in) std::ranges::fill(network.state(), 0.0F);
    for (int row = 0; row < kExtents[i].before; ++row) network.See(Observation(i, row));
  }

  Rows Window(OneByOne& network, std::size_t i) const {
    Rows rows;
    for (int step = 0; step <= kExtents[i].steps; ++step) {
      rows.push_back(network.See(Observation(i, kExtents[i].before + step)));
    }
    return rows;
  }

  const float* Observation(std::size_t i, int row) const {
    return batch_.observations.data() + (i * kShown + row) * kInputs;
  }

  void AddTargets(std::size_t i, const Rows& online, const Rows& target) {
    const Extent& extent = kExtents[i];
    std::vector<double> of_item;
    double largest = 0;
    double sum = 0;
    for (int t = 0; t < extent.decisions(); ++t) {
      const int m = std::min<int>(kOptions.n_step, extent.steps - t);
      double value = 0;
      for (int j = 0; j < m; ++j) {
        value += std::pow(kDiscount, j) * batch_.rewards[i * kSteps + t + j];
      }
      if (!extent.terminated || t + m < extent.steps) {
        int best = -1;
        for (int a = 0; a < kActions; ++a) {
          const bool allowed =
              !variant_.mask || batch_.masks[(i * (kSteps + 1) + t + m) * kActions + a] != 0;
          if (allowed && (best < 0 || online[t + m][a] > online[t + m][best])) best = a;
        }
        value += std::pow(kDiscount, m) * Stretch(target[t + m][best]);
      }
      of_item.push_back(Squash(value));
      const double error = of_item.back() - online[t][Action(i, t)];
      largest = std::max(largest, std::abs(error));
      sum += std::abs(error);
    }
    targets.push_back(of_item);
    priorities.push_back(kMix * largest + (1 - kMix) * sum / extent.decisions());
  }

  std::int64_t Action(std::size_t i, int t) const {
    return batch_.actions[i * kOptions.length + t];
  }

  // With targets and states at the window's start held fast.
  double LossOf(OneByOne& network) const {
    double loss = 0;
    for (std::size_t i = 0; i < kExtents.size(); ++i) {
      network.state() = states[i];
      const Rows values = Window(network, i);
      for (int t = 0; t < kExtents[i].decisions(); ++t) {
        loss += weights[i] / 2 * std::pow(targets[i][t] - values[t][Action(i, t)], 2);
      }
    }
    return loss;
  }

  const Variant& variant_;
  const RandomSequences& batch_;
  OneByOne online_;
  std::vector<double> weights, priorities;
  Rows targets;
  std::vector<std::vector<float>> states;
};

class R2d2VariantTest : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (GetParam().network == "mlp") return;
#ifdef MENGER_TORCH_LIBRARY_FILE
    setenv("MENGER_TORCH_LIBRARY", MENGER_TORCH_LIBRARY_FILE, /*overwrite=*/1);
#else
    GTEST_SKIP() << "built without libtorch, which computes this";
#endif
  }
};

TEST_P(R2d2VariantTest, AnUpdateIsThatOfEachSequenceByItselfInFloat64) {
  const Variant& variant = GetParam();
  R2d2 r2d2(ConfigOf(variant), ContextOf(variant));
  const auto adam = MakeLocalUpdateRule({}, r2d2.parameter_groups());
  const RandomSequences earlier(r2d2, 2);
  for (int i = 0; i < 200; ++i) r2d2.Learn(earlier.view(), *adam, 0);  // The two networks differ.

  const RandomSequences batch(r2d2, 1);
  const Expected expected(r2d2, variant, batch);
  SequenceProbe probe;
  const Metrics metrics = r2d2.Learn(batch.view(), probe, 0);
  OneByOne moved(r2d2.network(), variant);
  EXPECT_NEAR(MetricNamed(metrics, "loss"), expected.LossOf(moved), 1e-5);
  ASSERT_EQ(r2d2.priorities().size(), kExtents.size());
  for (std::size_t i = 0; i < kExtents.size(); ++i) {
    EXPECT_NEAR(r2d2.priorities()[i], expected.priorities[i], 2e-5) << "sequence " << i;
  }

  double largest = 0;
  for (std::size_t k = 0; k < probe.gradient.size(); ++k) {
    constexpr float kStep = 1e-2F;
    const std::span<float> parameters = moved.network().parameters();
    const float before = parameters[k];
    double losses[2] = {};
    for (int side = 0; side < 2; ++side) {
      parameters[k] = side == 0 ? before - kStep : before + kStep;
      moved.network().ParametersChanged();
      losses[side] = expected.LossOf(moved);
    }
    parameters[k] = before;
    const double slope = (losses[1] - losses[0]) / (2 * kStep);
    EXPECT_NEAR(probe.gradient[k], slope, 3e-4) << "parameter " << k;
    largest = std::max(largest, std::abs(slope));
  }
  EXPECT_GT(largest, 0.05);
}

TEST_P(R2d2VariantTest, WhatWasSavedGoesOnBitForBit) {
  const Variant& variant = GetParam();
  const testing_files::Folder folder;
  const std::string path = folder / "archive";
  R2d2Config config = ConfigOf(variant);
  config.target_every = 4;
  config.epsilon = {.start = 0.5, .end = 0.1, .fraction = 1};
  R2d2 r2d2(config, ContextOf(variant));
  const RandomSequences batch(r2d2, 1);
  const auto rule = MakeLocalUpdateRule({}, r2d2.parameter_groups());
  for (int i = 0; i < 6; ++i) r2d2.Learn(batch.view(), *rule, 0.5);
  r2d2.SetProgress(0.5);
  r2d2.Publish();
  {
    ArchiveWriter archive(path);
    ArchiveWriter algorithm = archive.Scope("r2d2");
    ArchiveWriter update = archive.Scope("rule");
    r2d2.Save(algorithm);
    rule->Save(update);
    archive.Commit();
  }
  R2d2 again(config, ContextOf(variant));
  const auto rule_again = MakeLocalUpdateRule({}, again.parameter_groups());
  const ArchiveReader archive(path);
  ArchiveReader algorithm = archive.Scope("r2d2");
  ArchiveReader update = archive.Scope("rule");
  again.Load(algorithm);
  rule_again->Load(update);
  EXPECT_TRUE(std::ranges::equal(again.publication().Latest()->values(),
                                 r2d2.publication().Latest()->values()));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(r2d2.Learn(batch.view(), *rule, 0.5), again.Learn(batch.view(), *rule_again, 0.5));
  }
  EXPECT_TRUE(std::ranges::equal(again.network().parameters(), r2d2.network().parameters()));
}

INSTANTIATE_TEST_SUITE_P(Variants, R2d2VariantTest,
                         testing::Values(Variant{"mlp", false, false}, Variant{"mlp", true, true},
                                         Variant{"lstm", false, false},
                                         Variant{"lstm", true, true}),
                         [](const auto& info) {
                           return info.param.network + (info.param.duelling ? "_duelling" : "") +
                                  (info.param.mask ? "_masked" : "");
                         });

// A scale of 1 / sqrt(variance + 1e-8) and a shift of the mean, of the slab's rows in float64.
TEST(R2d2Test, NormalisedObservationsAreThoseOfTheStatisticsNow) {
  AlgorithmContext context = ContextOf({});
  R2d2 plain(ConfigOf({}), context);
  context.transforms.apply = {"normalise_observation"};
  R2d2 normalising(ConfigOf({}), context);
  Slab slab({.observation = context.environment.observation,
             .action = context.environment.action,
             .policy = normalising.policies().spec().columns,
             .horizon = 40,
             .columns = ColumnLayout::Single(2)});
  std::vector<double> sums(kInputs, 0);
  std::vector<double> squares(kInputs, 0);
  for (int row = 0; row < 40; ++row) {
    for (int i = 0; i < 2 * kInputs; ++i) {
      const float value = 3 + 2 * std::sin(static_cast<float>(7 * row + i));
      slab.observation<float>(0, row)[i] = value;
      sums[i % kInputs] += value;
      squares[i % kInputs] += static_cast<double>(value) * value;
    }
    slab.valid(row)[0] = slab.valid(row)[1] = 1;
  }
  SequenceProbe probe;
  normalising.ObserveMoments(normalising.MomentsOf(slab));
  normalising.Publish();

  const RandomSequences raw(plain, 1);
  RandomSequences normalised(plain, 1);
  for (std::size_t i = 0; i < normalised.observations.size(); ++i) {
    const double mean = sums[i % kInputs] / 80;
    const double variance = squares[i % kInputs] / 80 - mean * mean;
    float& value = normalised.observations[i];
    value = static_cast<float>((value - mean) / std::sqrt(variance + 1e-8));
  }
  normalising.Learn(raw.view(), probe, 0);
  plain.Learn(normalised.view(), probe, 0);
  for (std::size_t i = 0; i < kExtents.size(); ++i) {
    EXPECT_NEAR(normalising.priorities()[i], plain.priorities()[i], 1e-5) << "sequence " << i;
  }
}

TEST(R2d2Test, TheTargetNetworkChangesOnScheduleOnly) {
  R2d2Config config = ConfigOf({});
  config.target_every = 3;
  R2d2 r2d2(config, ContextOf({}));
  const RandomSequences batch(r2d2, 1);
  const auto update = MakeLocalUpdateRule({}, r2d2.parameter_groups());
  const auto equal = [&] {
    return std::ranges::equal(r2d2.target().network().Clone(1)->parameters(),
                              r2d2.network().parameters());
  };
  EXPECT_TRUE(equal());
  for (int i = 1; i <= 9; ++i) {
    r2d2.Learn(batch.view(), *update, 0);
    EXPECT_EQ(equal(), i % 3 == 0) << i;
  }
}

TEST(R2d2Test, LearningFromOneBatchLowersItsLoss) {
  R2d2 r2d2(ConfigOf({}), ContextOf({}));
  const RandomSequences batch(r2d2, 1);
  const auto update = MakeLocalUpdateRule({}, r2d2.parameter_groups());
  const double first = MetricNamed(r2d2.Learn(batch.view(), *update, 0), "loss");
  for (int i = 0; i < 3'000; ++i) r2d2.Learn(batch.view(), *update, 0);
  EXPECT_LT(MetricNamed(r2d2.Learn(batch.view(), *update, 0), "loss"), 0.9 * first);
}

TEST(R2d2Test, WhatDoesNotFitIsRefused) {
  AlgorithmContext context = ContextOf({});
  context.environment.action = Spec({LeafSpec::Box("action", DataType::kFloat32, {1}, {-1}, {1})});
  EXPECT_THROW(R2d2({}, context), Error);
  context = ContextOf({});
  context.transforms.apply = {"normalise_reward"};
  EXPECT_THROW(R2d2({}, context), Error);
}

}  // namespace
}  // namespace menger
