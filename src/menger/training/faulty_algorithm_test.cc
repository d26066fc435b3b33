// What an algorithm of one's own may do wrong, and what the run says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/algorithm_entries.h"
#include "menger/algorithms/dqn.h"
#include "menger/base/error.h"
#include "menger/base/log_listener.h"
#include "menger/environments/catalog.h"
#include "menger/training/run.h"

namespace menger {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct FaultyConfig {
  DqnConfig dqn;
  std::string fault = "none";

  void Declare(Options& options) {
    dqn.Declare(options);
    options.Add("fault", &fault, {.consequence = "what it does wrong"});
  }
};

// DQN, but for its fault.
class Faulty final : public ReplayAlgorithm {
 public:
  Faulty(const FaultyConfig& config, const AlgorithmContext& context)
      : fault_(config.fault), dqn_(config.dqn, context) {}

  static void Check(const EnvironmentSpec& environment) { Dqn::Check(environment); }
  static std::unique_ptr<PolicyMaker> MakePolicies(const FaultyConfig& config,
                                                   const AlgorithmContext& context) {
    return Dqn::MakePolicies(config.dqn, context);
  }

  const PolicyMaker& policies() const override { return dqn_.policies(); }
  Publication& publication() override { return dqn_.publication(); }
  void Publish() override { dqn_.Publish(); }
  std::int64_t parameter_count() const override { return dqn_.parameter_count(); }
  std::vector<ParameterGroup> parameter_groups() const override {
    std::vector<ParameterGroup> groups = dqn_.parameter_groups();
    if (fault_ == "groups of one name") groups.push_back({.name = groups[0].name, .count = 1});
    return groups;
  }

  const ItemSpec& items() const override { return dqn_.items(); }
  std::unique_ptr<SlabWriter> MakeWriter(const SlabWriterContext& context) const override {
    return dqn_.MakeWriter(context);
  }
  void SetProgress(double progress) override { dqn_.SetProgress(progress); }
  Metrics Learn(const ReplayBatch& batch, UpdateRule& update, double progress) override {
    Metrics metrics = dqn_.Learn(batch, update, progress);
    if (fault_ == "few metrics") metrics.pop_back();
    if (fault_ == "other metrics") metrics[0].first = "losses";
    if (fault_ == "a metric that is no number") metrics[0].second = std::nan("");
    if (fault_ == "no such group") {
      float number = 0;
      update.Step(2, {.manifest = manifest_, .parameters = {&number, 1}, .gradients = {&number, 1}},
                  0.1);
    }
    if (fault_ == "a gradient that is no number") throw GradientNotFinite("gradient is nan");
    if (const auto at = fault_.find("metric "); at == 0) metrics[0].first = fault_.substr(7);
    return metrics;
  }
  std::vector<std::string> metric_names() const override {
    std::vector<std::string> names = dqn_.metric_names();
    if (const auto at = fault_.find("metric "); at == 0) names[0] = fault_.substr(7);
    return names;
  }
  std::span<const float> priorities() const override {
    return dqn_.priorities().subspan(fault_ == "few priorities" ? 1 : 0);
  }

  void Save(ArchiveWriter& archive) const override {
    dqn_.Save(archive);
    if (fault_ == "saved twice") archive.Write("updates", 1);
    if (fault_ == "not loaded") archive.Write("temperature", 1.0F);
  }
  void Load(ArchiveReader& archive) override { dqn_.Load(archive); }
  void LoadParameters(ArchiveReader& archive) override { dqn_.LoadParameters(archive); }

 private:
  const std::string fault_;
  const ParameterManifest manifest_;
  Dqn dqn_;
};

// Forgets what it learns from.
class SlabsEntry final : public ConfiguredEntry<FaultyConfig, Faulty, A2cDefaults> {
 public:
  using ConfiguredEntry::ConfiguredEntry;
  DataRule data_rule() const override { return DataRule::kSlabs; }
  void Check(const EnvironmentSpec& environment) const override { Faulty::Check(environment); }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return Faulty::MakePolicies(config(), context);
  }
};

class FaultyAlgorithmTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    SetLogListener([this](LogLevel level, std::string_view text) {
      if (level == LogLevel::kWarning) warnings_.emplace_back(text);
    });
  }
  void TearDown() override {
    SetLogListener({});
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<Experiment> MakeExperiment(const std::vector<std::string>& settings) {
    Experiment::Algorithms algorithms;
    algorithms.push_back(std::make_unique<ReplayEntry<FaultyConfig, Faulty>>("faulty", "tests"));
    algorithms.push_back(std::make_unique<SlabsEntry>("slabs", "forgets its data rule"));
    std::vector<Assignment> assignments;
    for (const std::string& setting : settings) assignments.push_back(Assignment::Parse(setting));
    return std::make_unique<Experiment>(
        "environment = 'CartPole-v1'\nalgorithm = 'faulty'\nsteps = 300\nlearner_threads = 1\n"
        "[collector]\nkind = 'serial'\nworkers = 1\n[network]\nhidden = [4]\n"
        "[evaluation]\nepisodes = 1\n",
        "test", assignments, std::move(algorithms), environments_);
  }

  // What the run ends with, or "no error".
  std::string Train(const std::vector<std::string>& settings) {
    try {
      const auto experiment = MakeExperiment(settings);
      StartRun(
          *experiment, [this] { return RunFolder::Create(folder_); }, "", context_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string TrainWith(const std::string& fault) { return Train({"faulty.fault=" + fault}); }

  bool HasRun() const { return std::filesystem::exists(folder_ + "/checkpoints"); }

  const std::string folder_ = testing::TempDir() + "faulty_" +
                              testing::UnitTest::GetInstance()->current_test_info()->name();
  const EnvironmentCatalog environments_ = NativeEnvironments();
  ProgressReporter progress_ = ProgressReporter::Silent();
  const RunContext context_{.progress = progress_, .stop_requested = [] { return false; }};
  std::vector<std::string> warnings_;
};

TEST_F(FaultyAlgorithmTest, WithoutAFaultItTrainsAndNothingIsSaid) {
  EXPECT_EQ(TrainWith("none"), "no error");
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

TEST_F(FaultyAlgorithmTest, AnEntryThatForgetsWhatItLearnsFromIsNamed) {
  EXPECT_THAT(Train({"algorithm=slabs"}),
              AllOf(HasSubstr("algorithm 'slabs' says that it learns from slabs"),
                    HasSubstr("learns from batches of replay")));
}

TEST_F(FaultyAlgorithmTest, OtherMetricsThanItsOwnAreAMistakeOfTheAlgorithmAndOfNoSetting) {
  for (const std::string fault : {"few metrics", "other metrics"}) {
    EXPECT_THAT(TrainWith(fault), AllOf(HasSubstr("metric_names() are [loss, mean_value,"),
                                        HasSubstr("algorithm 'faulty' cannot go on"),
                                        Not(HasSubstr("learning_rate="))));
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(FaultyAlgorithmTest, APipelineEndsWithWhatIsWrongToo) {
  const auto train = [&](const std::string& fault) {
    std::filesystem::remove_all(folder_);
    return Train({"faulty.fault=" + fault, "topology.kind=threads", "topology.collectors=1",
                  "replay.sampler=prioritised"});
  };
  EXPECT_EQ(train("none"), "no error");
  EXPECT_THAT(train("few metrics"), HasSubstr("metric_names() are [loss, mean_value,"));
  EXPECT_THAT(train("few priorities"), AllOf(HasSubstr("learner"), HasSubstr("priorities() has")));
  EXPECT_THAT(train("a gradient that is no number"), HasSubstr("gradient is nan"));
  EXPECT_THAT(train("saved twice"), HasSubstr("algorithm 'faulty' cannot be saved"));
  EXPECT_FALSE(HasRun());
}

TEST_F(FaultyAlgorithmTest, MetricsThatCannotBeColumnsAreRefusedBeforeTheRun) {
  for (const std::string name : {"steps", "mean_value", "updates", "learning_seconds"}) {
    EXPECT_THAT(TrainWith("metric " + name),
                AllOf(HasSubstr("metrics of algorithm 'faulty'"),
                      HasSubstr("two columns of progress.csv would be called '" + name + "'")));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/checkpoints/0"));
    std::filesystem::remove_all(folder_);
  }
  EXPECT_THAT(TrainWith("metric a,b"), HasSubstr("'a,b' cannot be a column"));
}

TEST_F(FaultyAlgorithmTest, AMetricThatIsNoNumberIsToldOfOnceWithItsNameAndTheStep) {
  EXPECT_EQ(TrainWith("a metric that is no number"), "no error");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("metric 'loss' of algorithm 'faulty' is nan in the update "
                                      "after 100 steps"));
}

TEST_F(FaultyAlgorithmTest, TooFewPrioritiesAreNamed) {
  EXPECT_THAT(Train({"faulty.fault=few priorities", "replay.sampler=prioritised"}),
              HasSubstr("priorities() has 127 numbers after a batch of 128 items"));
}

TEST_F(FaultyAlgorithmTest, AGroupThatWasNotDeclaredIsNamed) {
  EXPECT_THAT(TrainWith("no such group"),
              AllOf(HasSubstr("no parameter group 2; parameter_groups() are 1: parameters"),
                    HasSubstr("algorithm 'faulty'")));
}

TEST_F(FaultyAlgorithmTest, OnlyAGradientThatIsNoNumberIsAnsweredByTheLearningRate) {
  EXPECT_THAT(TrainWith("a gradient that is no number"), HasSubstr("--set faulty.learning_rate="));
}

TEST_F(FaultyAlgorithmTest, WhatCannotBeSavedIsNotTrained) {
  EXPECT_THAT(TrainWith("saved twice"),
              AllOf(HasSubstr("algorithm 'faulty' cannot be saved"),
                    HasSubstr("already has an entry 'algorithm/updates'")));
  EXPECT_THAT(TrainWith("groups of one name"), HasSubstr("two parameter groups are called"));
  EXPECT_FALSE(HasRun());
}

TEST_F(FaultyAlgorithmTest, StateThatLoadingDoesNotReadIsNamed) {
  ASSERT_EQ(TrainWith("not loaded"), "no error");
  const auto experiment = MakeExperiment({"faulty.fault=not loaded"});
  try {
    ResumeRun(*experiment, RunFolder::Open(folder_), context_);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has 'temperature' of algorithm 'faulty', which loading"));
  }
}

TEST_F(FaultyAlgorithmTest, ARunTooShortForAnyUpdateSaysSo) {
  EXPECT_EQ(Train({"steps=3"}), "no error");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("no update was made: nothing was learned"));
}

}  // namespace
}  // namespace menger
