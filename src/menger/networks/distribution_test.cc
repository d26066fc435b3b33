#include "menger/networks/distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/network_test_values.h"
#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Outputs of a network that own their numbers; the stride is wider than the row, as a network's is.
struct Outputs {
  Outputs() = default;
  Outputs(const Outputs&) = delete;

  void Add(const std::vector<float>& dense, int rows, int columns) {
    const int stride = columns + 3;
    auto& values = storage.emplace_back(std::make_unique<std::vector<float>>(rows * stride, 99.0f));
    for (int i = 0; i < rows * columns; ++i) {
      (*values)[i / columns * stride + i % columns] = dense[i];
    }
    matrices.push_back({values->data(), rows, columns, stride});
  }
  std::vector<std::unique_ptr<std::vector<float>>> storage;
  std::vector<Matrix> matrices;
};

std::vector<std::uint8_t> RecordedMask() {
  std::vector<std::uint8_t> mask(30);
  const int taken[] = {0, 1, 2, 3, 4, 0};
  for (int i = 0; i < 30; ++i) mask[i] = i * 7 % 3 != 1 || taken[i / 5] == i % 5;
  return mask;
}

void ExpectEvaluates(const Distribution& distribution, const Outputs& outputs,
                     const std::uint8_t* mask, const void* actions,
                     std::span<const float> log_probability, std::span<const float> entropy) {
  std::vector<float> log_p(log_probability.size());
  std::vector<float> h(entropy.size());
  distribution.Evaluate(outputs.matrices, mask, actions, log_p.data(), h.data());
  for (std::size_t i = 0; i < log_p.size(); ++i) {
    EXPECT_NEAR(log_p[i], log_probability[i], 2e-6) << i;
    EXPECT_NEAR(h[i], entropy[i], 2e-6) << i;
  }
}

TEST(DistributionTest, CategoricalEqualsTorchs) {
  const auto distribution = MakeDistribution(LeafSpec::Discrete("action", 5));
  Outputs outputs;
  outputs.Add(RecordedInput(30, 20, 3.0f), 6, 5);
  const std::int64_t actions[] = {0, 1, 2, 3, 4, 0};
  ExpectEvaluates(*distribution, outputs, nullptr, actions, recorded::kCategoricalLogProbability,
                  recorded::kCategoricalEntropy);
  ExpectEvaluates(*distribution, outputs, RecordedMask().data(), actions,
                  recorded::kMaskedLogProbability, recorded::kMaskedEntropy);
}

TEST(DistributionTest, MultiDiscreteEqualsTheSumOfTorchsCategoricals) {
  const auto distribution = MakeDistribution(LeafSpec::MultiDiscrete("action", {2, 3}));
  Outputs outputs;
  outputs.Add(RecordedInput(30, 20, 3.0f), 6, 5);
  std::vector<std::int64_t> actions;
  for (const int a : {0, 1, 2, 3, 4, 0}) actions.insert(actions.end(), {a % 2, a % 3});
  ExpectEvaluates(*distribution, outputs, nullptr, actions.data(), recorded::kPairLogProbability,
                  recorded::kPairEntropy);
}

TEST(DistributionTest, GaussianEqualsTorchs) {
  const auto distribution =
      MakeDistribution(LeafSpec::Box("action", DataType::kFloat32, {3}, {-1}, {1}));
  Outputs outputs;
  outputs.Add(RecordedInput(15, 21, 2.0f), 5, 3);
  std::vector<float> log_std;
  for (int row = 0; row < 5; ++row) {
    for (const float value : RecordedInput(3, 22, 1.0f)) log_std.push_back(value);
  }
  outputs.Add(log_std, 5, 3);
  const auto actions = RecordedInput(15, 23, 3.0f);
  std::vector<float> log_p(5), h(5);
  distribution->Evaluate(outputs.matrices, nullptr, actions.data(), log_p.data(), h.data());
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(log_p[i], recorded::kGaussianLogProbability[i],
                1e-6 * std::abs(recorded::kGaussianLogProbability[i]));
    EXPECT_NEAR(h[i], recorded::kGaussianEntropy[i], 2e-6);
  }
}

// f(row) = a log p(action) + b entropy in double precision, from its definition.
using Reference = std::function<double(const std::vector<double>& outputs)>;

double CategoricalReference(const std::vector<double>& logits, const std::uint8_t* mask,
                            std::span<const std::int64_t> counts, const std::int64_t* actions,
                            double a, double b) {
  double result = 0;
  std::size_t offset = 0;
  for (std::size_t element = 0; element < counts.size(); ++element) {
    double total = 0;
    const auto allowed = [&](std::int64_t i) { return mask == nullptr || mask[offset + i] != 0; };
    for (std::int64_t i = 0; i < counts[element]; ++i) {
      if (allowed(i)) total += std::exp(logits[offset + i]);
    }
    for (std::int64_t i = 0; i < counts[element]; ++i) {
      if (!allowed(i)) continue;
      const double log_p = logits[offset + i] - std::log(total);
      result -= b * std::exp(log_p) * log_p;
      if (i == actions[element]) result += a * log_p;
    }
    offset += static_cast<std::size_t>(counts[element]);
  }
  return result;
}

void ExpectSlopes(const Reference& reference, std::vector<double> at,
                  const std::vector<float>& gradient) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double before = at[i];
    at[i] = before + 1e-5;
    const double above = reference(at);
    at[i] = before - 1e-5;
    const double below = reference(at);
    at[i] = before;
    EXPECT_NEAR(gradient[i], (above - below) / 2e-5, 1e-5) << i;
  }
}

TEST(DistributionTest, CategoricalGradientsEqualFiniteDifferences) {
  for (const bool masked : {false, true}) {
    for (const std::vector<std::int64_t>& counts :
         {std::vector<std::int64_t>{5}, std::vector<std::int64_t>{2, 3}}) {
      const auto spec = counts.size() == 1 ? LeafSpec::Discrete("action", 5)
                                           : LeafSpec::MultiDiscrete("action", counts);
      const auto distribution = MakeDistribution(spec);
      const int rows = 19;  // More than one block of lanes.
      const auto logits = RecordedInput(rows * 5, 20, 3.0f);
      std::vector<std::uint8_t> mask(rows * 5, 1);
      std::vector<std::int64_t> actions;
      for (int row = 0; row < rows; ++row) {
        for (const std::int64_t count : counts) actions.push_back((row + 1) % count);
        mask[row * 5 + (counts.size() == 1 ? (row + 3) % 5 : 2 + row % 3)] = 0;
      }
      const std::uint8_t* const given = masked ? mask.data() : nullptr;
      const auto a = RecordedInput(rows, 30, 1.0f);
      const auto b = RecordedInput(rows, 31, 1.0f);
      Outputs outputs, gradients;
      outputs.Add(logits, rows, 5);
      gradients.Add(logits, rows, 5);
      distribution->Gradient(outputs.matrices, given, actions.data(), a, b, gradients.matrices);
      for (int row = 0; row < rows; ++row) {
        const std::uint8_t* const row_mask = masked ? given + row * 5 : nullptr;
        const float* const from = gradients.matrices[0].row(row);
        ExpectSlopes(
            [&](const std::vector<double>& at) {
              return CategoricalReference(at, row_mask, counts, &actions[row * counts.size()],
                                          a[row], b[row]);
            },
            {logits.begin() + row * 5, logits.begin() + (row + 1) * 5}, {from, from + 5});
        for (int i = 0; masked && i < 5; ++i) {
          EXPECT_TRUE(row_mask[i] != 0 || from[i] == 0.0f);
        }
      }
    }
  }
}

TEST(DistributionTest, GaussianGradientsEqualFiniteDifferences) {
  const auto distribution =
      MakeDistribution(LeafSpec::Box("action", DataType::kFloat32, {2}, {-1}, {1}));
  const float mean[] = {0.3f, -0.7f};
  const float log_std[] = {-0.2f, 0.4f};
  const float action[] = {0.9f, -1.5f};
  const double a = 0.7, b = -0.3;
  Outputs outputs, gradients;
  outputs.Add({mean[0], mean[1]}, 1, 2);
  outputs.Add({log_std[0], log_std[1]}, 1, 2);
  gradients.Add({0, 0}, 1, 2);
  gradients.Add({0, 0}, 1, 2);
  const std::vector<float> of_log_p = {static_cast<float>(a)};
  const std::vector<float> of_entropy = {static_cast<float>(b)};
  distribution->Gradient(outputs.matrices, nullptr, action, of_log_p, of_entropy,
                         gradients.matrices);
  const Reference reference = [&](const std::vector<double>& at) {
    double result = 0;
    for (int i = 0; i < 2; ++i) {
      const double score = (action[i] - at[i]) / std::exp(at[2 + i]);
      result += a * (-0.5 * score * score - at[2 + i]) + b * at[2 + i];
    }
    return result;
  };
  const Matrix* g = gradients.matrices.data();
  ExpectSlopes(reference, {mean[0], mean[1], log_std[0], log_std[1]},
               {g[0].data[0], g[0].data[1], g[1].data[0], g[1].data[1]});
}

TEST(DistributionTest, ActionsWithARangeAreThoseWithoutWhichItMoves) {
  const LeafSpec action = LeafSpec::Box("action", DataType::kFloat32, {2}, {-100}, {100});
  const auto plain = MakeDistribution(action, 0.0);
  const auto ranged = MakeDistribution(action, 0.0, {.middle = {24, -3}, .half = {16, 0.5}});
  Outputs outputs;
  outputs.Add({0.25f, -0.5f}, 1, 2);
  outputs.Add({-1.0f, 0.5f}, 1, 2);
  const CounterRandom random(7, 1);
  const int environments[] = {0};
  float x[2], moved[2], log_p = 0, moved_log_p = 0, seen = 0, entropy = 0, moved_entropy = 0;
  plain->Sample(outputs.matrices, nullptr, random, environments, 5, x, &log_p);
  ranged->Sample(outputs.matrices, nullptr, random, environments, 5, moved, &moved_log_p);
  EXPECT_FLOAT_EQ(moved[0], 24 + 16 * x[0]);
  EXPECT_FLOAT_EQ(moved[1], -3 + 0.5f * x[1]);
  EXPECT_NEAR(moved_log_p, log_p, 1e-5);
  ranged->Evaluate(outputs.matrices, nullptr, moved, &seen, &moved_entropy);
  plain->Evaluate(outputs.matrices, nullptr, x, &log_p, &entropy);
  EXPECT_EQ(seen, moved_log_p);  // Bit for bit: what acting has recorded.
  EXPECT_EQ(moved_entropy, entropy);

  float best[2];
  ranged->Mode(outputs.matrices, nullptr, best);
  EXPECT_FLOAT_EQ(best[0], 24 + 16 * 0.25f);
  EXPECT_FLOAT_EQ(best[1], -3 - 0.5f * 0.5f);

  Outputs gradients, moved_gradients;
  for (Outputs* const each : {&gradients, &moved_gradients}) {
    each->Add({0, 0}, 1, 2);
    each->Add({0, 0}, 1, 2);
  }
  const std::vector<float> of_log_p = {0.7f}, of_entropy = {-0.3f};
  plain->Gradient(outputs.matrices, nullptr, x, of_log_p, of_entropy, gradients.matrices);
  ranged->Gradient(outputs.matrices, nullptr, moved, of_log_p, of_entropy,
                   moved_gradients.matrices);
  for (int head = 0; head < 2; ++head) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(moved_gradients.matrices[head].data[i], gradients.matrices[head].data[i], 1e-5);
    }
  }
}

TEST(DistributionTest, DrawsFollowTheProbabilitiesAndNeverTheMask) {
  const auto distribution = MakeDistribution(LeafSpec::MultiDiscrete("action", {3, 2, 2, 2, 4}));
  constexpr int kRows = 20000;
  std::vector<float> logits;
  std::vector<std::uint8_t> mask;
  std::vector<int> environments;
  for (int row = 0; row < kRows; ++row) {
    for (const double p : {0.2, 0.5, 0.3, 0.9, 0.1, 0.5, 0.5, 0.5, 0.5, 0.1, 0.2, 0.3, 0.4}) {
      logits.push_back(static_cast<float>(std::log(p)));
    }
    mask.insert(mask.end(), {1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    environments.push_back(row);
  }
  Outputs outputs;
  outputs.Add(logits, kRows, 13);
  std::vector<std::int64_t> actions(kRows * 5);
  std::vector<float> log_p(kRows), again(kRows), entropy(kRows);
  distribution->Sample(outputs.matrices, mask.data(), CounterRandom(7, 1), environments, 3,
                       actions.data(), log_p.data());
  std::vector<std::vector<int>> counts = {{0, 0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0, 0, 0}};
  int together = 0;
  for (int row = 0; row < kRows; ++row) {
    for (int element = 0; element < 5; ++element) {
      ++counts[element][actions[row * 5 + element]];
    }
    together += actions[row * 5 + 2] == actions[row * 5 + 3];
  }
  // Four standard deviations of a binomial count are at most 283.
  EXPECT_EQ(counts[0][1], 0);
  EXPECT_NEAR(counts[0][0], kRows * 0.4, 283);
  EXPECT_NEAR(counts[1][0], kRows * 0.9, 283);
  EXPECT_NEAR(counts[4][3], kRows * 0.4, 283);
  EXPECT_NEAR(together, kRows * 0.5, 283);  // Elements are independent.
  distribution->Evaluate(outputs.matrices, mask.data(), actions.data(), again.data(),
                         entropy.data());
  EXPECT_EQ(log_p, again);
}

TEST(DistributionTest, GaussianDrawsHaveTheMeanAndTheDeviation) {
  const auto distribution =
      MakeDistribution(LeafSpec::Box("action", DataType::kFloat32, {3}, {-1}, {1}));
  constexpr int kRows = 20000;
  Outputs outputs;
  std::vector<float> mean, log_std;
  std::vector<int> environments;
  for (int row = 0; row < kRows; ++row) {
    mean.insert(mean.end(), {1.0f, -2.0f, 0.0f});
    log_std.insert(log_std.end(), {std::log(0.5f), 0.0f, std::log(2.0f)});
    environments.push_back(row);
  }
  outputs.Add(mean, kRows, 3);
  outputs.Add(log_std, kRows, 3);
  std::vector<float> actions(kRows * 3), log_p(kRows), again(kRows), entropy(kRows);
  distribution->Sample(outputs.matrices, nullptr, CounterRandom(7, 1), environments, 3,
                       actions.data(), log_p.data());
  double sum[3] = {}, square[3] = {}, product = 0;
  for (int row = 0; row < kRows; ++row) {
    double score[3];
    for (int i = 0; i < 3; ++i) {
      score[i] = (actions[row * 3 + i] - mean[i]) / std::exp(log_std[i]);
      sum[i] += score[i];
      square[i] += score[i] * score[i];
    }
    product += score[0] * score[1];
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(sum[i] / kRows, 0.0, 4 / std::sqrt(kRows));
    EXPECT_NEAR(square[i] / kRows, 1.0, 4 * std::sqrt(2.0 / kRows));
  }
  EXPECT_NEAR(product / kRows, 0.0, 4 / std::sqrt(kRows));
  distribution->Evaluate(outputs.matrices, nullptr, actions.data(), again.data(), entropy.data());
  EXPECT_EQ(log_p, again);
}

TEST(DistributionTest, ADrawDependsOnTheEnvironmentAndTheStepNotOnTheBatch) {
  for (const LeafSpec& spec : {LeafSpec::Discrete("action", 18),
                               LeafSpec::Box("action", DataType::kFloat32, {18}, {-1}, {1})}) {
    const auto distribution = MakeDistribution(spec);
    const bool discrete = spec.space == Space::kDiscrete;
    const int elements = discrete ? 1 : 18;
    const std::size_t bytes = spec.bytes();
    const auto values = RecordedInput(40 * 18, 20, 1.0f);
    std::vector<int> environments;
    for (int i = 0; i < 40; ++i) environments.push_back(i == 20 ? -1 : 3 * i);
    const auto draw = [&](int first, int rows, std::int64_t step) {
      Outputs outputs;
      for (std::size_t head = 0; head < distribution->heads().size(); ++head) {
        outputs.Add({values.begin() + first * 18, values.end()}, rows, 18);
      }
      std::vector<std::byte> actions(rows * bytes);
      std::vector<float> log_p(rows);
      distribution->Sample(outputs.matrices, nullptr, CounterRandom(7, 1),
                           std::span(environments).subspan(first, rows), step, actions.data(),
                           log_p.data());
      for (const float value : log_p) {
        const auto* raw = reinterpret_cast<const std::byte*>(&value);
        actions.insert(actions.end(), raw, raw + sizeof(float));
      }
      return actions;
    };
    const auto whole = draw(0, 40, 5);
    for (const int first : {0, 3, 17, 39}) {
      const auto one = draw(first, 1, 5);
      EXPECT_TRUE(std::equal(one.begin(), one.begin() + bytes, whole.begin() + first * bytes));
      EXPECT_TRUE(std::equal(one.begin() + bytes, one.end(),
                             whole.begin() + 40 * bytes + first * sizeof(float)))
          << elements;
    }
    EXPECT_NE(draw(0, 40, 6), whole);
  }
}

TEST(DistributionTest, TheModeIsTheLargestAllowedLogitOrTheMean) {
  Outputs outputs;
  outputs.Add({1, 3, 2, 5, 5, 4}, 2, 3);
  std::int64_t actions[2];
  const auto categorical = MakeDistribution(LeafSpec::Discrete("action", 3));
  categorical->Mode(outputs.matrices, nullptr, actions);
  EXPECT_THAT(actions, testing::ElementsAre(1, 0));
  const std::uint8_t mask[] = {1, 0, 1, 0, 0, 0};
  categorical->Mode(outputs.matrices, mask, actions);
  EXPECT_THAT(actions, testing::ElementsAre(2, 0));
  float real[6];
  MakeDistribution(LeafSpec::Box("action", DataType::kFloat32, {3}, {-1}, {1}))
      ->Mode(outputs.matrices, nullptr, real);
  EXPECT_THAT(real, testing::ElementsAre(1, 3, 2, 5, 5, 4));
}

TEST(DistributionTest, ExtremeLogitsStayFinite) {
  const auto distribution = MakeDistribution(LeafSpec::Discrete("action", 3));
  Outputs outputs, gradients;
  outputs.Add({1e4f, -1e4f, 0, -1e30f, 0, 0}, 2, 3);
  gradients.Add({0, 0, 0, 0, 0, 0}, 2, 3);
  const std::int64_t actions[] = {0, 1};
  float log_p[2], entropy[2];
  distribution->Evaluate(outputs.matrices, nullptr, actions, log_p, entropy);
  EXPECT_EQ(log_p[0], 0.0f);
  EXPECT_NEAR(entropy[0], 0.0f, 1e-6f);
  EXPECT_NEAR(entropy[1], std::log(2.0f), 1e-6f);
  const std::vector<float> ones = {1.0f, 1.0f};
  distribution->Gradient(outputs.matrices, nullptr, actions, ones, ones, gradients.matrices);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(std::isfinite(gradients.matrices[0].row(i / 3)[i % 3])) << i;
  }
}

TEST(DistributionTest, ManyChoicesWorkAsFewDo) {
  const auto distribution = MakeDistribution(LeafSpec::Discrete("action", 1000));
  Outputs outputs;
  outputs.Add(std::vector<float>(3000, 0.5f), 3, 1000);
  const std::int64_t actions[] = {0, 500, 999};
  const std::vector<float> expected(3, std::log(1000.0f));
  ExpectEvaluates(*distribution, outputs, nullptr, actions,
                  std::vector<float>(3, -std::log(1000.0f)), expected);
}

std::string TextOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(DistributionTest, ImpossibleRequestsAreNamed) {
  const auto distribution = MakeDistribution(LeafSpec::Discrete("action", 2));
  Outputs outputs;
  outputs.Add({0, 0, 0, 0}, 2, 2);
  const std::uint8_t nothing_in_row_1[] = {1, 1, 0, 0};
  std::int64_t actions[] = {0, 2};
  float log_p[2], entropy[2];
  const auto sample = [&](std::vector<int> environments) {
    distribution->Sample(outputs.matrices, nothing_in_row_1, CounterRandom(1, 1), environments, 0,
                         actions, log_p);
  };
  EXPECT_THAT(TextOf([&] { sample({0, 1}); }), AllOf(HasSubstr("row 1"), HasSubstr("forbids")));
  EXPECT_EQ(TextOf([&] { sample({0, -1}); }), "nothing was thrown");  // Padding may be anything.
  actions[1] = 2;
  EXPECT_THAT(
      TextOf([&] { distribution->Evaluate(outputs.matrices, nullptr, actions, log_p, entropy); }),
      AllOf(HasSubstr("action 2"), HasSubstr("row 1"), HasSubstr("[0, 2)")));
  EXPECT_THAT(TextOf([] { MakeDistribution(LeafSpec::Mask("legal", 3)); }), HasSubstr("'legal'"));
  EXPECT_THAT(
      TextOf([] { MakeDistribution(LeafSpec::Box("action", DataType::kFloat64, {1}, {-1}, {1})); }),
      HasSubstr("float64"));
}

TEST(DistributionTest, HeadsAreSmallAtTheStartAndTheDeviationIsAsAskedFor) {
  const auto discrete = MakeDistribution(LeafSpec::MultiDiscrete("action", {2, 3}))->heads();
  ASSERT_EQ(discrete.size(), 1u);
  EXPECT_EQ(discrete[0].width, 5);
  EXPECT_EQ(discrete[0].gain, 0.01);
  const auto real =
      MakeDistribution(LeafSpec::Box("action", DataType::kFloat32, {4}, {-1}, {1}), -0.5)->heads();
  ASSERT_EQ(real.size(), 2u);
  EXPECT_TRUE(real[1].constant);
  EXPECT_EQ(real[1].bias, -0.5);
}

}  // namespace
}  // namespace menger
