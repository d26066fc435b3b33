#include "menger/training/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/environments/mujoco_environments.h"
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

EnvironmentSpec Showing(LeafSpec observation, LeafSpec action) {
  return {.name = "Test-v0",
          .observation = Spec({std::move(observation)}),
          .action = Spec({std::move(action)})};
}

// Numbers and frames, choices and amounts.
std::vector<EnvironmentSpec> KindsOfEnvironments() {
  const LeafSpec numbers = LeafSpec::Scalar("observation", DataType::kFloat32);
  const LeafSpec frames = LeafSpec::Box("observation", DataType::kUint8, {84, 84}, {0}, {255});
  const LeafSpec choice = LeafSpec::Discrete("action", 3);
  const LeafSpec amount = LeafSpec::Box("action", DataType::kFloat32, {2}, {-1}, {1});
  return {Showing(numbers, choice), Showing(numbers, amount), Showing(frames, choice),
          Showing(frames, amount)};
}

// Each names an option that there is, and a value that it takes.
TEST(ExperimentTest, AllDefaultsAreDeclaredOptions) {
  for (const EnvironmentSpec& environment : KindsOfEnvironments()) {
    for (const auto& entry : AllAlgorithms()) {
      for (const std::string steps : {"1", "5000", "1e6", "1e12"}) {
        const auto experiment = Make(kSmall, {"algorithm=" + entry->name(), "steps=" + steps});
        EXPECT_NO_THROW(experiment->ApplyDefaults(environment)) << entry->name();
        if (entry->data_rule() == DataRule::kBatches) experiment->replay.Check();
      }
    }
  }
}

TEST(ExperimentTest, DefaultsFollowTheObservationAndGiveWayToTheRecipe) {
  const auto kinds = KindsOfEnvironments();
  const auto experiment = Make(kSmall, {"ppo.epochs=3"});
  experiment->ApplyDefaults(kinds[1]);
  EXPECT_EQ(experiment->network.kind, "mlp");
  EXPECT_TRUE(experiment->transforms.Has("normalise_observation"));
  EXPECT_THAT(experiment->ToToml(/*with_origins=*/true), HasSubstr("epochs = 3  # from --set\n"));

  const auto pixels = Make(std::string(kSmall) + "[network]\nactivation = 'tanh'\n");
  pixels->ApplyDefaults(kinds[2]);
  EXPECT_EQ(pixels->network.kind, "nature_cnn");
  EXPECT_EQ(pixels->network.activation, "tanh");
  EXPECT_EQ(pixels->transforms.frame_stack, 4);
}

class Nameless final : public AlgorithmEntry {
 public:
  explicit Nameless(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string description() const override { return ""; }
  void Declare(Options&) override {}
  void Check(const EnvironmentSpec&) const override {}
  std::unique_ptr<Algorithm> Make(const AlgorithmContext&) const override { return nullptr; }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext&) const override {
    return nullptr;
  }

 private:
  const std::string name_;
};

TEST(ExperimentTest, NoAlgorithmHasTheNameOfASectionOrOfAnOptionOfTheTopLevel) {
  std::vector<std::string> taken = {"runtime", MujocoEnvironments().name()};
  for (const auto& table : CommonOptionTables()) {
    for (const OptionEntry& option : table) {
      taken.push_back(option.key.substr(0, option.key.find('.')));
    }
  }
  for (const std::string& name : taken) {
    Experiment::Algorithms algorithms;
    algorithms.push_back(std::make_unique<Nameless>(name));
    EXPECT_THROW(WithCheckedNames(std::move(algorithms)), Error) << name;
  }
}

// Origins stay: what was cut once is cut again where the resolved recipe is changed.
TEST(ExperimentTest, AMinibatchIsNoLargerThanWhatAnUpdateLearnsFrom) {
  const EnvironmentSpec numbers = KindsOfEnvironments()[0];
  const auto size_of = [](const Experiment& experiment) {
    const std::string text = experiment.ToToml(/*with_origins=*/true);
    const std::size_t begin = text.find("\nminibatch_size") + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  const auto cut = Make(kSmall, {"steps=1000"});  // 8 environments x 4 steps.
  cut->ApplyDefaults(numbers);
  EXPECT_EQ(size_of(*cut), "minibatch_size = 32  # from the defaults of ppo for it");
  const auto again = Make(cut->ToToml(/*with_origins=*/true), {"collector.environments=2"});
  again->ApplyDefaults(numbers);
  EXPECT_EQ(size_of(*again), "minibatch_size = 8  # from the defaults of ppo for it");
  const auto narrow = Make(kSmall, {"collector.environments=1", "collector.horizon=16"});
  narrow->ApplyDefaults(numbers);
  EXPECT_EQ(size_of(*narrow), "minibatch_size = 16  # from the defaults of ppo for it");
  const auto whole = Make(kSmall, {"collector.horizon=16", "ppo.minibatch_size=128"});
  whole->ApplyDefaults(numbers);
  EXPECT_EQ(size_of(*whole), "minibatch_size = 128  # from --set");
}

TEST(ExperimentTest, AMinibatchThatSomebodySetTooLargeIsRefusedWithWhatWouldBeRight) {
  const auto refusal = [](const std::vector<std::string>& settings) -> std::string {
    const auto experiment = Make(kSmall, settings);
    try {
      experiment->ApplyDefaults(KindsOfEnvironments()[0]);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "not refused";
  };
  EXPECT_EQ(refusal({"ppo.minibatch_size=1000000", "collector.horizon=256"}),
            "ppo.minibatch_size = 1000000 is more than an update learns from: "
            "collector.environments = 8 x collector.horizon = 256 are 2048 steps; set it to 2048 "
            "at most, or collect more for an update");
  EXPECT_THAT(refusal({"ppo.minibatch_size=64", "steps=1000"}),
              HasSubstr("collector.horizon = 4 (the default for steps = 1000) are 32 steps"));
}

constexpr const char* kSmallDqn = "environment = 'CartPole-v1'\nalgorithm = 'dqn'\n";

TEST(ExperimentTest, ByItsDefaultsARunWithReplayLearnsHoweverShortItIs) {
  for (const std::string name : {"dqn", "sac", "r2d2"}) {
    for (const std::int64_t steps : {20, 90, 150, 1'900, 100'000}) {
      if (name == "r2d2" && steps < 150) continue;  // No window of its eight environments is whole.
      const auto experiment = Make(kSmall, {"algorithm=" + name, "steps=" + std::to_string(steps)});
      experiment->ApplyDefaults(KindsOfEnvironments()[name == "sac" ? 1 : 0]);
      EXPECT_LT(experiment->replay.min_size, steps) << name;
    }
  }
}

TEST(ExperimentTest, AReplayThatTheRunCannotFillIsRefusedWithWhatWouldBeRight) {
  const auto refusal = [](const std::vector<std::string>& settings) -> std::string {
    const auto experiment = Make(kSmallDqn, settings);
    try {
      experiment->ApplyDefaults(KindsOfEnvironments()[0]);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "not refused";
  };
  EXPECT_EQ(refusal({"steps=1900", "replay.min_size=2000"}),
            "replay.min_size = 2000 is more than a run of steps = 1900 puts into replay: learning "
            "would never start; set it to 1899 at most, or train longer");
  EXPECT_EQ(refusal({"steps=1900", "replay.min_size=1899"}), "not refused");
  EXPECT_EQ(refusal({"steps=1", "replay.min_size=2000"}), "not refused");  // As a recipe is tried.
  EXPECT_THAT(refusal({"steps=1900", "replay.min_size=1899", "dqn.n_step=3"}),
              HasSubstr("set it to 1897 at most"));
  EXPECT_THAT(refusal({"steps=1900", "replay.training_intensity=0.01"}),
              HasSubstr("replay.training_intensity = 0.01 these are less than an update of "
                        "replay.batch_size = 128"));
  // Eight environments, each with a window of 10 decisions and 5 steps that is not whole.
  EXPECT_THAT(refusal({"algorithm=r2d2", "steps=1900", "replay.min_size=1899"}),
              HasSubstr("set it to 1792 at most"));
  EXPECT_THAT(refusal({"algorithm=r2d2", "steps=1900", "replay.training_intensity=0.01"}),
              HasSubstr("replay.batch_size = 64 x r2d2.sequence_length = 10: set one"));
}

TEST(ExperimentTest, WhatWasResolvedKeepsItsOrigins) {
  const auto experiment = Make(kSmall, {"steps=20000"});
  experiment->ApplyDefaults(KindsOfEnvironments()[0]);
  const std::string text = experiment->ToToml(/*with_origins=*/true);
  EXPECT_THAT(text, HasSubstr("\nhorizon = 64  # from the defaults of ppo for it\n"));
  const auto again = Make(text);
  again->ApplyDefaults(KindsOfEnvironments()[1]);
  EXPECT_EQ(again->ToToml(/*with_origins=*/true), text);
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
