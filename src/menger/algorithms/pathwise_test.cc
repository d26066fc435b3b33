// SAC and TD3 beside updates that autograd made of the papers' losses (tools/record_pathwise.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/pathwise_test_values.h"
#include "menger/algorithms/sac.h"
#include "menger/algorithms/td3.h"
#include "menger/base/error.h"
#include "menger/networks/recorded_input.h"
#include "menger/networks/update_rule.h"

namespace menger {
namespace {

using ::testing::HasSubstr;

// As tools/record_pathwise.py.
constexpr int kRows = 6;
constexpr int kObservation = 3;
constexpr int kElements = 2;
constexpr int kUpdates = 3;
constexpr double kRate = 1e-2;

// Bounds of actions that are not those of tanh: the recording knows nothing of them.
constexpr double kLow = -1;
constexpr double kHigh = 3;

AlgorithmContext Context() {
  AlgorithmContext context{
      .environment = {.name = "Any",
                      .observation = Spec({LeafSpec::Box("observation", DataType::kFloat32,
                                                         {kObservation}, {-1}, {1})}),
                      .action = Spec({LeafSpec::Box("action", DataType::kFloat32, {kElements},
                                                    {kLow}, {kHigh})})},
      .seed = 5};
  context.network.hidden = {5, 4};
  context.network.activation = "relu";
  return context;
}

OptimiserOptions PlainAdam() { return {.epsilon = 1e-8, .max_gradient_norm = 0}; }

// The batch of one update, as replay would hand it out.
struct RecordedBatch {
  explicit RecordedBatch(int update) {
    const std::uint64_t salt = 10 + 10 * update;
    observations = RecordedInput(kRows * kObservation, salt, 1);
    next_observations = RecordedInput(kRows * kObservation, salt + 1, 1);
    actions = RecordedInput(kRows * kElements, salt + 2, 0.9F);
    for (float& action : actions) action = (kLow + kHigh) / 2 + (kHigh - kLow) / 2 * action;
    rewards = RecordedInput(kRows, salt + 3, 2);
    for (int row = 0; row < kRows; ++row) terminated.push_back(row % 3 == 0 ? 1 : 0);
    const auto add = [&](auto& column) {
      columns.push_back({.data = reinterpret_cast<std::byte*>(column.data()),
                         .item_bytes = column.size() / kRows * sizeof(column[0]),
                         .rows = ones});
    };
    add(observations);
    add(actions);
    add(rewards);
    add(terminated);
    add(next_observations);
  }
  ReplayBatch view() const { return {.columns = columns, .items = items}; }

  const std::vector<std::int32_t> ones = std::vector<std::int32_t>(kRows, 1);
  std::vector<float> observations, actions, rewards, next_observations;
  std::vector<std::uint8_t> terminated;
  std::vector<SampledItem> items = std::vector<SampledItem>(kRows, {.probability = 0.1});
  std::vector<BatchColumn> columns;
};

void SetParameters(Network& network, std::uint64_t salt) {
  const auto values = RecordedInput(network.parameters().size(), salt, 0.5F);
  std::copy(values.begin(), values.end(), network.parameters().begin());
  network.ParametersChanged();
}

template <typename Implementation>
void SetRecorded(Implementation& algorithm) {
  SetParameters(algorithm.actor(), 1);
  SetParameters(algorithm.critics(), 2);
  algorithm.target().Copy(algorithm.critics());
}

void ExpectNear(std::span<const float> actual, std::span<const float> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-5) << i;
}

TEST(PathwiseTest, UpdatesOfSacAreThoseOfThePaper) {
  Sac sac({.common = {.discount = 0.9, .learning_rate = kRate, .target_rate = 0.25},
           .temperature = 0.2},
          Context());
  SetRecorded(sac);
  const auto update = MakeLocalUpdateRule(PlainAdam(), sac.parameter_groups());
  for (int i = 0; i < kUpdates; ++i) {
    const RecordedBatch batch(i);
    const Metrics metrics = sac.Learn(batch.view(), *update, 0);
    EXPECT_NEAR(metrics[0].second, recorded::kSacLosses[i], 1e-5) << i;
  }
  ExpectNear(sac.actor().parameters(), recorded::kSacActor);
  ExpectNear(sac.critics().parameters(), recorded::kSacCritics);
  ExpectNear(sac.target().network().parameters(), recorded::kSacTarget);
  EXPECT_NEAR(std::log(sac.temperature()), recorded::kSacTemperature[0], 1e-5);
}

TEST(PathwiseTest, UpdatesOfTd3AreThoseOfThePaper) {
  Td3 td3({.common = {.discount = 0.9, .learning_rate = kRate, .target_rate = 0.25},
           .target_noise_clip = 0.25},
          Context());
  SetRecorded(td3);
  td3.target_actor().Copy(td3.actor());
  const auto update = MakeLocalUpdateRule(PlainAdam(), td3.parameter_groups());
  for (int i = 0; i < kUpdates; ++i) {
    const RecordedBatch batch(i);
    const Metrics metrics = td3.Learn(batch.view(), *update, 0);
    EXPECT_NEAR(metrics[0].second, recorded::kTd3Losses[i], 1e-5) << i;
  }
  ExpectNear(td3.actor().parameters(), recorded::kTd3Actor);
  ExpectNear(td3.critics().parameters(), recorded::kTd3Critics);
  ExpectNear(td3.target().network().parameters(), recorded::kTd3Target);
  ExpectNear(td3.target_actor().network().parameters(), recorded::kTd3TargetActor);
}

TEST(PathwiseTest, OneCriticWithoutDelayAndSmoothingIsDdpg) {
  Td3 ddpg({.common = {.discount = 0.9, .critics = 1}, .policy_delay = 1, .target_noise = 0},
           Context());
  SetRecorded(ddpg);
  const auto update = MakeLocalUpdateRule(PlainAdam(), ddpg.parameter_groups());
  const std::vector<float> before(ddpg.actor().parameters().begin(),
                                  ddpg.actor().parameters().end());
  const RecordedBatch batch(0);
  ddpg.Learn(batch.view(), *update, 0);
  EXPECT_FALSE(std::ranges::equal(ddpg.actor().parameters(), before));
}

TEST(PathwiseTest, ImportanceWeightsOfPrioritisedDrawsCount) {
  const auto critics_after = [](double probability) {
    Sac sac({.common = {.importance_exponent = 1}}, Context());
    SetRecorded(sac);
    RecordedBatch batch(0);
    batch.items[1].probability = probability;
    const auto update =
        MakeLocalUpdateRule({.kind = "rmsprop", .max_gradient_norm = 0}, sac.parameter_groups());
    sac.Learn(batch.view(), *update, 0);
    return std::vector<float>(sac.critics().parameters().begin(), sac.critics().parameters().end());
  };
  EXPECT_EQ(critics_after(0.1), critics_after(0.1));
  EXPECT_NE(critics_after(0.1), critics_after(0.3));
}

TEST(PathwiseTest, ActionsNeedTwoFiniteBounds) {
  const auto text_of = [](const EnvironmentSpec& environment) -> std::string {
    try {
      ActionScaling{environment};
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
  };
  EnvironmentSpec environment = Context().environment;
  EXPECT_EQ(text_of(environment), "");
  environment.action =
      Spec({LeafSpec::Box("action", DataType::kFloat32, {2}, {-1, -1}, {1, INFINITY})});
  EXPECT_THAT(text_of(environment), HasSubstr("element 1 of the actions of Any lies in [-1, inf]"));
  environment.action = Spec({LeafSpec::Discrete("action", 3)});
  EXPECT_THAT(text_of(environment), HasSubstr("are not real numbers"));
}

TEST(PathwiseTest, ActionsAreScaledToTheirBoundsAndBack) {
  const ActionScaling scaling(Context().environment);
  const std::vector<float> inside = {-1, 1, 0, 0.5};
  std::vector<float> outside(4);
  scaling.ToEnvironment(inside.data(), 2, outside.data());
  EXPECT_EQ(outside, (std::vector<float>{-1, 3, 1, 2}));
  std::vector<float> back(4);
  scaling.FromEnvironment(outside.data(), 2, back.data());
  EXPECT_EQ(back, inside);
}

}  // namespace
}  // namespace menger
