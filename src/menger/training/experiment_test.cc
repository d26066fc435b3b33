#include "menger/training/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/networks/kernels/bf16.h"

namespace menger {
namespace {

using testing::HasSubstr;

constexpr const char* kSmall = "environment = 'CartPole-v1'\nalgorithm = 'ppo'\n";

std::vector<Assignment> Settings(const std::vector<std::string>& texts) {
  std::vector<Assignment> assignments;
  for (const std::string& text : texts) assignments.push_back(Assignment::Parse(text));
  return assignments;
}

std::unique_ptr<Experiment> Make(const std::string& toml,
                                 const std::vector<std::string>& settings = {}) {
  static const EnvironmentCatalog environments = NativeEnvironments();
  return std::make_unique<Experiment>(toml, "recipe.toml", Settings(settings), AllAlgorithms(),
                                      environments);
}

std::string RefusalOf(const std::string& toml, const std::vector<std::string>& settings = {}) {
  try {
    Make(toml, settings);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "not refused";
}

TEST(ExperimentTest, WhatTheFileLeavesOutHasItsDefault) {
  const auto experiment = Make(kSmall);
  EXPECT_EQ(experiment->steps, 100'000);
  EXPECT_EQ(experiment->precision, "auto");
  EXPECT_TRUE(experiment->learner_threads.is_auto);
}

TEST(ExperimentTest, ALaterSettingWinsOverAnEarlierOneAndOverTheFile) {
  const auto experiment = Make(std::string(kSmall) + "seed = 2\n[evaluation]\nepisodes = 3\n",
                               {"evaluation.episodes=4", "seed=5", "evaluation.episodes=6"});
  EXPECT_EQ(experiment->seed, 5);
  EXPECT_EQ(experiment->evaluation.episodes, 6);
}

TEST(ExperimentTest, OnlyAlgorithmsThatLearnFromBatchesHaveReplay) {
  const std::string dqn = "environment = 'CartPole-v1'\nalgorithm = 'dqn'\n";
  EXPECT_EQ(Make(dqn, {"replay.capacity=1e4"})->replay.capacity, 10'000);
  EXPECT_THAT(RefusalOf(kSmall, {"replay.capacity=1e4"}), HasSubstr("no section [replay]"));
  EXPECT_THAT(Make(kSmall)->ToToml(), testing::Not(HasSubstr("[replay]")));
}

TEST(ExperimentTest, ReadingBackWhatWasWrittenGivesTheSameText) {
  const auto experiment = Make(
      kSmall, {"network.hidden=[]", "evaluation.stop_at_return=-150", "ppo.learning_rate=1e-7",
               "transforms.apply=[normalise_observation]", "steps=1e9", "collector.workers=2"});
  const std::string text = experiment->ToToml();
  EXPECT_EQ(Make(text)->ToToml(), text);
}

TEST(ExperimentTest, TextsWithLineBreaksAndQuotesAreReadBack) {
  const auto experiment = Make("environment = \"a\\n\\t\\\"b\"\nalgorithm = 'ppo'\n");
  EXPECT_EQ(experiment->environment, "a\n\t\"b");
  EXPECT_EQ(Make(experiment->ToToml())->environment, experiment->environment);
}

TEST(ExperimentTest, ResolvingLeavesNothingButTheCollectorToChoose) {
  const auto experiment = Make(kSmall);
  experiment->ResolveDefaults();
  EXPECT_EQ(experiment->precision, "fp32");
  EXPECT_EQ(experiment->learner_threads.value, AvailableCpus());
  EXPECT_FALSE(experiment->learner_threads.is_auto);
}

TEST(ExperimentTest, AutomaticPrecisionIsLowForConvolutionsWhereTheDeviceGainsByIt) {
  const auto precision_of = [](const std::string& device, const std::string& kind) {
    const auto experiment = Make(kSmall, {"device=" + device, "network.kind=" + kind});
    experiment->ResolveDefaults();
    return experiment->precision;
  };
  EXPECT_EQ(precision_of("cuda", "nature_cnn"), "bf16");
  EXPECT_EQ(precision_of("cuda", "mlp"), "fp32");
  EXPECT_EQ(precision_of("cpu", "a3c_cnn"), HasAvx512Bf16() ? "bf16" : "fp32");
  EXPECT_EQ(precision_of("cpu", "mlp"), "fp32");
}

TEST(ExperimentTest, AnAlgorithmBringsItsOwnSection) {
  EXPECT_THAT(Make(kSmall, {"algorithm=a2c"})->ToToml(), HasSubstr("\n[a2c]\n"));
  EXPECT_THAT(RefusalOf(kSmall, {"a2c.discount=0.9"}), HasSubstr("belongs to another algorithm"));
}

TEST(ExperimentTest, ARecipeWithoutAnEnvironmentIsRefused) {
  EXPECT_THAT(RefusalOf("algorithm = 'ppo'"), HasSubstr("'environment' is missing"));
}

TEST(ExperimentTest, AnUnknownKeyIsRefusedWithItsLineAndTheNearestKey) {
  EXPECT_THAT(RefusalOf(std::string(kSmall) + "[ppo]\ndiscont = 1\n"),
              HasSubstr("recipe.toml:4: there is no option 'ppo.discont' (did you mean "
                        "'ppo.discount'?)"));
}

TEST(ExperimentTest, AWrongTypeInTheFileIsRefusedWithItsLine) {
  EXPECT_THAT(RefusalOf(std::string(kSmall) + "steps = true\n"), HasSubstr("recipe.toml:3: steps"));
  EXPECT_THAT(RefusalOf(std::string(kSmall) + "[network]\nhidden = [64, 'wide']\n"),
              HasSubstr("network.hidden is a list of mixed or unusable values"));
  EXPECT_THAT(RefusalOf(std::string(kSmall) + "[steps]\n"), HasSubstr("not a section"));
  EXPECT_THAT(RefusalOf(std::string(kSmall) + "seed = 2020-01-01\n"), HasSubstr("date"));
}

TEST(ExperimentTest, ASettingMustHaveAKeyAndAValue) {
  EXPECT_THROW(Assignment::Parse("ppo.discount"), Error);
  EXPECT_THROW(Assignment::Parse("=3"), Error);
  const Assignment assignment = Assignment::Parse("ppo.name=a=b");
  EXPECT_EQ(assignment.section + "|" + assignment.name + "|" + assignment.text, "ppo|name|a=b");
}

TEST(ExperimentTest, TheCommonTablesExplainEveryOption) {
  const auto tables = CommonOptionTables();
  EXPECT_EQ(tables.front().front().key, "environment");
  for (const auto& table : tables) {
    for (const OptionEntry& entry : table) EXPECT_FALSE(entry.consequence.empty()) << entry.key;
  }
}

}  // namespace
}  // namespace menger
