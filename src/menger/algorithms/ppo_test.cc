// PPO beside an update that autograd made of the paper's loss (tools/record_ppo.py): minibatches
// with a remainder, clipped ratios and values, clipped gradients, and a stop by the divergence in
// the third pass.
#include "menger/algorithms/ppo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "menger/algorithms/ppo_test_values.h"
#include "menger/networks/recorded_input.h"
#include "menger/networks/update_rule.h"

namespace menger {
namespace {

// As tools/record_ppo.py.
constexpr int kSteps = 5;
constexpr int kColumns = 3;
constexpr int kObservation = 3;
constexpr int kActions = 3;

// Notes the gradients that it is given.
class NotingRule final : public UpdateRule {
 public:
  explicit NotingRule(std::unique_ptr<UpdateRule> rule) : rule_(std::move(rule)) {}

  using UpdateRule::Step;
  double Step(int group, const GroupValues& values, double learning_rate) override {
    gradients.emplace_back(values.gradients.begin(), values.gradients.end());
    norms.push_back(rule_->Step(group, values, learning_rate));
    return norms.back();
  }
  void Sum(std::span<double> values) override { rule_->Sum(values); }
  int learners() const override { return 1; }
  int learner() const override { return 0; }
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

  std::vector<std::vector<float>> gradients;
  std::vector<double> norms;

 private:
  const std::unique_ptr<UpdateRule> rule_;
};

LeafSpec Numbers() {
  LeafSpec leaf = LeafSpec::Scalar("observation", DataType::kFloat32);
  leaf.shape = {kObservation};
  return leaf;
}

void FillSlab(Slab& slab) {
  const auto shown = RecordedInput((kSteps + 1) * kColumns * kObservation, 2, 1);
  const auto rewards = RecordedInput(kSteps * kColumns, 3, 1);
  const auto values = RecordedInput(kSteps * kColumns, 4, 0.5F);
  const auto final = RecordedInput(kColumns * kObservation, 5, 1);
  for (int row = 0; row <= kSteps; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      const int index = row * kColumns + column;
      std::copy_n(shown.data() + index * kObservation, kObservation,
                  slab.observation<float>(0, row, column));
      if (row == kSteps) continue;
      *slab.action<std::int64_t>(0, row, column) = (3 * index + index / 4) % kActions;
      *slab.policy<float>(ActorCriticPolicies::kLogProbability, row, column) =
          static_cast<float>(recorded::kPpoOldLogProbabilities[index]);
      *slab.policy<float>(ActorCriticPolicies::kValue, row, column) = values[index];
      slab.reward(row)[column] = rewards[index];
      slab.valid(row)[column] = 1;
      slab.final_index(row)[column] = -1;
    }
  }
  slab.valid(2)[1] = 0;
  slab.terminated(1)[0] = 1;
  slab.terminated(3)[2] = 1;
  slab.truncated(3)[1] = 1;
  const int slot = slab.FinalSlot(3, 1);
  slab.final_index(3)[1] = slot;
  std::copy_n(final.data() + kObservation, kObservation, slab.final_observation<float>(0, slot));
}

// Of all differences, the largest beside the largest number that is expected.
double Difference(std::span<const float> actual, std::span<const double> expected) {
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference = std::max(difference, std::abs(actual[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return difference / largest;
}

TEST(PpoTest, AnUpdateIsThatOfThePaper) {
  AlgorithmContext context{
      .environment = {.name = "Any",
                      .observation = Spec({Numbers()}),
                      .action = Spec({LeafSpec::Discrete("action", kActions)})},
      .environments = kColumns,
      .seed = 11};
  context.network.hidden = {6, 5};
  Ppo ppo({.common = {.discount = 0.9,
                      .gae_lambda = 0.8,
                      .learning_rate = 6e-3,
                      .learning_rate_schedule = "constant",
                      .value_coefficient = 0.7,
                      .entropy_coefficient = 0.02},
           .epochs = 4,
           .minibatch_size = 4,
           .clip = 0.1,
           .value_clip = 0.15,
           .target_kl = recorded::kPpoTargetKl},
          context);
  const auto first = RecordedInput(ppo.network().parameters().size(), 1, 0.5F);
  std::ranges::copy(first, ppo.network().parameters().begin());
  ppo.network().ParametersChanged();

  Slab slab({.observation = context.environment.observation,
             .action = context.environment.action,
             .policy = ppo.policies().spec().columns,
             .horizon = kSteps,
             .columns = ColumnLayout::Single(kColumns)});
  FillSlab(slab);
  NotingRule update(MakeLocalUpdateRule({}, ppo.parameter_count()));
  Slab* const slabs[] = {&slab};
  const Metrics metrics = ppo.Learn(slabs, update, /*progress=*/0.5);

  const std::size_t size = first.size();
  ASSERT_EQ(update.norms.size(), std::size(recorded::kPpoNorms));
  for (std::size_t i = 0; i < update.norms.size(); ++i) {
    EXPECT_NEAR(update.norms[i], recorded::kPpoNorms[i], 1e-5) << i;
    const std::span<const double> expected(recorded::kPpoGradients + i * size, size);
    EXPECT_LT(Difference(update.gradients[i], expected), 1e-5) << i;
  }
  for (std::size_t i = 0; i < size; ++i) {
    EXPECT_NEAR(ppo.network().parameters()[i], recorded::kPpoParameters[i], 2e-6) << i;
  }
  EXPECT_EQ(metrics.back(), (std::pair<std::string, double>("epochs", 3)));
}

}  // namespace
}  // namespace menger
