#include "menger/networks/update_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/network_test_values.h"
#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

using ::testing::HasSubstr;

// Parameters and gradients, and nothing that computes.
class FakeNetwork : public Network {
 public:
  explicit FakeNetwork(int size) : parameters_(RecordedInput(size, 5, 1.0f)), gradients_(size) {
    manifest_.Add("first/weight", {size - 1});
    manifest_.Add("second/bias", {1});
  }
  const ParameterManifest& manifest() const override { return manifest_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return gradients_; }
  void ParametersChanged() override { ++changes; }
  std::span<const Matrix> Forward(const NetworkInput&) override { return {}; }
  std::span<const Matrix> Infer(const NetworkInput&) override { return {}; }
  void Backward(std::span<const Matrix>, const GradientRequest&) override {}
  bool batch_invariant() const override { return true; }
  std::unique_ptr<Network> Clone(SharedWorkerPool) const override { return nullptr; }

  void SetGradients(std::uint64_t salt) {
    gradients_ = RecordedInput(gradients_.size(), salt, 0.5f);
  }
  std::vector<float> values() const { return parameters_; }

  int changes = 0;

 private:
  ParameterManifest manifest_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
};

void ExpectAdamEqualsTorch(double max_norm, std::span<const float> parameters,
                           std::span<const float> norms) {
  FakeNetwork network(11);
  const auto rule = MakeLocalUpdateRule({.kind = "adam", .max_gradient_norm = max_norm}, 11);
  for (int step = 0; step < 4; ++step) {
    network.SetGradients(6 + step);
    EXPECT_NEAR(rule->Step(network, 0.01 / (step + 1)), norms[step], 1e-6);
  }
  for (int i = 0; i < 11; ++i) EXPECT_NEAR(network.values()[i], parameters[i], 1e-6) << i;
  EXPECT_EQ(network.changes, 4);
}

TEST(LocalUpdateRuleTest, ThreadsChangeNothing) {
  constexpr int kParameters = 100'001;
  for (const char* const kind : {"adam", "rmsprop"}) {
    FakeNetwork alone(kParameters);
    FakeNetwork shared(kParameters);
    const OptimiserOptions options{.kind = kind, .max_gradient_norm = 0.5};
    const auto rule = MakeLocalUpdateRule(options, kParameters, 1);
    const auto threaded = MakeLocalUpdateRule(options, kParameters, 3);
    for (int step = 0; step < 3; ++step) {
      alone.SetGradients(step);
      shared.SetGradients(step);
      double square = 0;
      for (const float gradient : alone.gradients()) square += double{gradient} * gradient;
      const double norm = rule->Step(alone, 0.01);
      EXPECT_NEAR(norm, std::sqrt(square), 1e-9 * norm);
      EXPECT_EQ(threaded->Step(shared, 0.01), norm);
    }
    EXPECT_EQ(shared.values(), alone.values()) << kind;
    EXPECT_NE(shared.values(), FakeNetwork(kParameters).values());
  }
}

TEST(UpdateRuleTest, AdamEqualsTorchs) {
  ExpectAdamEqualsTorch(0.0, recorded::kAdam, recorded::kAdamNorms);
}

TEST(UpdateRuleTest, AdamWithAClippedNormEqualsTorchs) {
  ExpectAdamEqualsTorch(0.5, recorded::kClippedAdam, recorded::kClippedAdamNorms);
}

TEST(UpdateRuleTest, RmsPropEqualsTheFormulaOfTensorFlow) {
  FakeNetwork network(11);
  std::vector<double> expected(network.parameters().begin(), network.parameters().end());
  std::vector<double> square(11, 1.0);
  const auto rule = MakeLocalUpdateRule(
      {.kind = "rmsprop", .epsilon = 1e-2, .decay = 0.9, .max_gradient_norm = 0.0}, 11);
  for (int step = 0; step < 5; ++step) {
    network.SetGradients(6 + step);
    for (int i = 0; i < 11; ++i) {
      const double g = network.gradients()[i];
      square[i] += (g * g - square[i]) * (1.0 - 0.9);
      expected[i] -= 0.05 * g / std::sqrt(square[i] + 1e-2);
    }
    rule->Step(network, 0.05);
  }
  for (int i = 0; i < 11; ++i) EXPECT_NEAR(network.values()[i], expected[i], 1e-6) << i;
}

// The expected values are those of torch 2's RMSprop with centered=True, in double precision.
TEST(UpdateRuleTest, CentredRmsPropEqualsTorchs) {
  std::vector<float> parameters = {1, -2, 0.5F};
  ParameterManifest manifest;
  manifest.Add("some", {3});
  const auto rule = MakeLocalUpdateRule({.kind = "torch_rmsprop",
                                         .epsilon = 1e-3,
                                         .decay = 0.9,
                                         .centred = true,
                                         .max_gradient_norm = 0},
                                        3);
  const std::map<int, std::vector<double>> expected = {
      {1, {1.33175355, -1.66887417, 0.167221298}},
      {5, {1.28296626, -1.71585987, -0.26734229}},
      {11, {-0.174316475, -1.72987311, -0.588242773}}};
  for (int step = 1; step <= 11; ++step) {
    const std::vector<float> gradients = {0.3F * static_cast<float>(step) - 1,
                                          step % 2 == 0 ? 0.5F : -0.5F,
                                          2.0F / static_cast<float>(step)};
    rule->Step(0, {.manifest = manifest, .parameters = parameters, .gradients = gradients}, 0.1);
    if (!expected.contains(step)) continue;
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(parameters[i], expected.at(step)[i], 2e-5) << step << " " << i;
    }
  }
}

TEST(UpdateRuleTest, AGradientThatIsNotFiniteIsNamedAndChangesNothing) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    FakeNetwork network(11);
    const auto before = network.values();
    const auto rule = MakeLocalUpdateRule({}, 11);
    network.SetGradients(6);
    network.gradients()[10] = bad;
    try {
      rule->Step(network, 0.01);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_THAT(error.what(), HasSubstr("'second/bias'; lower the learning rate"));
    }
    EXPECT_EQ(network.values(), before);
    EXPECT_EQ(network.changes, 0);
  }
}

TEST(UpdateRuleTest, GroupsMoveAsIfEachWereAlone) {
  const std::vector<ParameterGroup> groups = {{.name = "first", .count = 11},
                                              {.name = "second", .count = 40'000}};
  const OptimiserOptions options{.max_gradient_norm = 0.5};
  const auto rule = MakeLocalUpdateRule(options, groups, /*threads=*/2);
  FakeNetwork together[] = {FakeNetwork(11), FakeNetwork(40'000)};
  FakeNetwork alone[] = {FakeNetwork(11), FakeNetwork(40'000)};
  const auto first = MakeLocalUpdateRule(options, 11);
  const auto second = MakeLocalUpdateRule(options, 40'000);
  for (int step = 0; step < 4; ++step) {
    for (FakeNetwork& network : together) network.SetGradients(step);
    for (FakeNetwork& network : alone) network.SetGradients(step);
    EXPECT_EQ(rule->Step(together[0], 0.01, 0), first->Step(alone[0], 0.01));
    if (step % 2 == 0) continue;  // The second moves half as often, at another rate.
    EXPECT_EQ(rule->Step(together[1], 0.1, 1), second->Step(alone[1], 0.1));
  }
  EXPECT_EQ(together[0].values(), alone[0].values());
  EXPECT_EQ(together[1].values(), alone[1].values());
  EXPECT_THROW(rule->Step(together[0], 0.01, 1), Error);  // Another number of parameters.
}

TEST(UpdateRuleTest, SavedStateContinuesToTheLastBit) {
  for (const std::string kind : {"adam", "rmsprop", "torch_rmsprop"}) {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() /
        ("menger_update_rule_test_" + std::to_string(getpid()) + "_" + kind);
    FakeNetwork straight(11);
    FakeNetwork resumed(11);
    const auto first = MakeLocalUpdateRule({.kind = kind}, 11);
    const auto second = MakeLocalUpdateRule({.kind = kind}, 11);
    for (int step = 0; step < 3; ++step) {
      straight.SetGradients(6 + step);
      first->Step(straight, 0.01);
    }
    ArchiveWriter writer(path.string());
    first->Save(writer);
    writer.Commit();
    ArchiveReader reader(path.string());
    second->Load(reader);
    std::copy(straight.parameters().begin(), straight.parameters().end(),
              resumed.parameters().begin());
    for (int step = 3; step < 6; ++step) {
      straight.SetGradients(6 + step);
      resumed.SetGradients(6 + step);
      first->Step(straight, 0.01);
      second->Step(resumed, 0.01);
    }
    EXPECT_EQ(straight.values(), resumed.values());
    std::filesystem::remove_all(path);
  }
}

TEST(UpdateRuleTest, ANetworkOfAnotherSizeIsRefused) {
  FakeNetwork network(11);
  EXPECT_THROW(MakeLocalUpdateRule({}, 12)->Step(network, 0.01), Error);
  EXPECT_THROW(MakeLocalUpdateRule({}, 0), Error);
  EXPECT_THROW(MakeLocalUpdateRule({.kind = "sgd"}, 11), Error);
}

TEST(UpdateRuleTest, OneLearnerHasNobodyToSumWith) {
  for (const std::string kind : {"adam", "rmsprop", "torch_rmsprop"}) {
    const auto rule = MakeLocalUpdateRule({.kind = kind}, 1, /*threads=*/2);
    EXPECT_EQ(rule->learners(), 1);
    const std::vector<double> own = {1.5, -2.0, 0.0, 1e300, -1e-300, 3.0};
    std::vector<double> sums = own;
    rule->Sum(sums);
    EXPECT_EQ(sums, own);
  }
}

TEST(UpdateRuleTest, ItsOptionsAreDeclaredWithLimits) {
  OptimiserOptions config;
  Options options("optimiser");
  config.Declare(options);
  options.SetFromText("kind", "rmsprop");
  EXPECT_EQ(config.kind, "rmsprop");
  EXPECT_THROW(options.SetFromText("max_gradient_norm", "-1"), Error);
  for (const auto& entry : options.Entries()) EXPECT_FALSE(entry.consequence.empty());
}

TEST(UpdateRuleTest, GroupsThatAreNotDeclaredOrOfAnotherSizeAreNamed) {
  const std::vector<ParameterGroup> groups = {{.name = "actor", .count = 11},
                                              {.name = "critics", .count = 5}};
  const auto rule = MakeLocalUpdateRule({}, groups);
  FakeNetwork network(11);
  network.SetGradients(6);
  const auto text_of = [&](int group) -> std::string {
    try {
      rule->Step(network, 0.1, group);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(text_of(0), "nothing was thrown");
  for (const int group : {-1, 2}) {
    EXPECT_THAT(text_of(group), HasSubstr("parameter_groups() are 2: actor, critics"));
  }
  EXPECT_THAT(text_of(1), HasSubstr("group 'critics' has 5 parameters"));
  const std::vector<ParameterGroup> twice = {{.name = "actor", .count = 1},
                                             {.name = "actor", .count = 2}};
  EXPECT_THROW(MakeLocalUpdateRule({}, twice), Error);
}

}  // namespace
}  // namespace menger
