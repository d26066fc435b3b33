#include "menger/training/pipeline_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "menger/base/file_testing.h"
#include "menger/base/files.h"
#include "menger/environments/catalog.h"
#include "menger/training/pipeline_testing.h"
#include "menger/training/run.h"
#include "menger/training/run_replay.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_files::ErrorText;
using testing_files::Folder;

class PipelineLoopTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Experiment> MakeExperiment(const std::vector<std::string>& settings = {}) {
    std::vector<Assignment> assignments = {
        Assignment::Parse(fmt::format("topology.kind={}", GetParam()))};
    for (const std::string& setting : settings) assignments.push_back(Assignment::Parse(setting));
    return std::make_unique<Experiment>(kPipelineRecipe, "test", assignments, AllAlgorithms(),
                                        catalog_);
  }
  RunOutcome Start(const std::vector<std::string>& settings = {}) {
    const auto experiment = MakeExperiment(settings);
    return StartRun(
        *experiment, [&] { return RunFolder::Create(run()); }, "", context_);
  }
  RunOutcome Resume(const std::vector<Assignment>& assignments = {}) {
    const RunFolder folder = RunFolder::Open(run());
    return ResumeRun(*ExperimentOf(folder, assignments, catalog_), folder, context_);
  }
  std::string run() const { return folder_ / "run"; }
  // Of progress.csv; NaN where a row has nothing.
  std::vector<double> ColumnOf(const std::string& name) const {
    std::istringstream file(ReadFile(run() + "/progress.csv"));
    std::string line;
    std::getline(file, line);
    const auto cells = [](const std::string& text) {
      std::vector<std::string> found;
      std::istringstream rest(text);
      for (std::string cell; std::getline(rest, cell, ',');) found.push_back(cell);
      return found;
    };
    const std::vector<std::string> names = cells(line);
    const auto at = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    EXPECT_LT(at, names.size()) << name;
    std::vector<double> column;
    while (std::getline(file, line)) {
      const std::vector<std::string> row = cells(line);
      column.push_back(at < row.size() && !row[at].empty() ? std::stod(row[at]) : NAN);
    }
    return column;
  }

  const Folder folder_;
  const EnvironmentCatalog catalog_ = NativeEnvironments();
  ProgressReporter progress_ = ProgressReporter::Silent();
  std::atomic<std::int64_t> asked_ = 0;
  std::int64_t stop_after_ = 1'000'000;  // Questions.
  RunContext context_{.progress = progress_,
                      .stop_requested = [this] { return ++asked_ > stop_after_; }};
};

TEST_P(PipelineLoopTest, ItCollectsLearnsEvaluatesAndSaves) {
  const RunOutcome outcome = Start();
  EXPECT_EQ(outcome.end, LoopEnd::kCompleted);
  EXPECT_EQ(outcome.counters.steps, 6'000);
  EXPECT_EQ(outcome.counters.evaluated_at, 6'000);
  EXPECT_EQ(outcome.counters.evaluation_episodes, 2);
  EXPECT_GT(outcome.counters.episodes, 50);
  EXPECT_TRUE(std::isfinite(outcome.episode_return_mean));
  const RunFolder folder = RunFolder::Open(run());
  EXPECT_EQ(folder.Checkpoints().back(), 6'000);
  EXPECT_TRUE(folder.ContainsCheckpoint("best"));
  EXPECT_FALSE(folder.ContainsCheckpoint("candidate"));
  EXPECT_GT(LoadRun(run(), "best", catalog_).algorithm->parameter_count(), 0);
}

TEST_P(PipelineLoopTest, EveryEvaluationIsInARow) {
  Start({"evaluation.every=1500"});
  const std::vector<double> returns = ColumnOf("evaluation_return_mean");
  // One each 1,500 steps, unless one took as long, and the last.
  EXPECT_GE(std::ranges::count_if(returns, [](double value) { return !std::isnan(value); }), 2);
  EXPECT_FALSE(std::isnan(returns.back()));
  EXPECT_EQ(ColumnOf("steps").back(), 6'000);
}

TEST_P(PipelineLoopTest, WhatIsLearnedOfAStepCollectedIsWhatTheRecipeSays) {
  Start({"replay.training_intensity=16"});
  const RunFolder folder = RunFolder::Open(run());
  const auto experiment = MakeExperiment({"replay.training_intensity=16"});
  const EnvironmentEntry environment = experiment->OpenEnvironment(EnvironmentUse::kTraining);
  experiment->ApplyDefaults(environment.spec);
  experiment->ResolveDefaults();
  const auto algorithm = MakeAlgorithm(*experiment, environment);
  RunReplay replay(PipelineStore(*experiment, static_cast<ReplayAlgorithm&>(*algorithm)));
  ArchiveReader consumer = folder.NewestWholeCheckpoint().Scope("consumer");
  replay.LoadContent(consumer);
  const TableInfo table = replay.client().info(0);
  // Of the last decisions no item has come: their returns were open.
  EXPECT_NEAR(static_cast<double>(table.inserts), 6'000, 2 * 3);
  const double owed = 16.0 * static_cast<double>(table.inserts - 500);
  const PipelinePace pace = PaceFor(*experiment, static_cast<ReplayAlgorithm&>(*algorithm));
  EXPECT_GT(static_cast<double>(table.samples), owed - 32);  // Less than a batch is left.
  EXPECT_LE(static_cast<double>(table.samples), owed + pace.buffer);
}

class TurnsTest : public PipelineLoopTest {
 protected:
  std::vector<float> Trained(const std::vector<std::string>& settings) {
    std::filesystem::remove_all(run());
    EXPECT_EQ(Start(settings).end, LoopEnd::kCompleted);
    const auto blob = LoadRun(run(), "newest", catalog_).algorithm->publication().Latest();
    return {blob->values().begin(), blob->values().end()};
  }
};

TEST_P(TurnsTest, TheCollectorsDoNotDependOnTheMachine) {
  Start({"topology.collectors=auto"});
  EXPECT_THAT(ReadFile(run() + "/experiment.toml"), HasSubstr("collectors = 1"));
}

// With a checkpoint whenever there is time for one, which changes nothing.
TEST_P(TurnsTest, TheSameSeedGivesTheSameBits) {
  for (const std::string inference : {"topology.inference=local", "topology.inference=apart"}) {
    const std::vector<float> first = Trained({inference});
    EXPECT_EQ(Trained({inference, "checkpoint.seconds=0.01"}), first);
    EXPECT_NE(Trained({inference, "seed=3"}), first);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TurnsTest, testing::Values("turns"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(PipelineLoopTest, InferenceMayBeApart) {
  for (const std::string collectors : {"4", "auto"}) {
    std::filesystem::remove_all(run());
    const RunOutcome outcome = Start({"topology.inference=apart", "collector.environments=8",
                                      "topology.collectors=" + collectors});
    EXPECT_EQ(outcome.end, LoopEnd::kCompleted);
    EXPECT_GE(outcome.counters.steps, 6'000);
    EXPECT_LT(outcome.counters.steps, 6'000 + 8);
    EXPECT_GT(outcome.counters.episodes, 50);
  }
}

TEST_P(PipelineLoopTest, WhatCollectorsSeeNormalisesWhatIsLearned) {
  Start({"transforms.apply=[\"normalise_observation\"]"});
  const ArchiveReader algorithm = RunFolder::Open(run()).NewestWholeCheckpoint().Scope("algorithm");
  const auto count = algorithm.Read<double>("observation_statistics/count");
  EXPECT_EQ(count, 6'000);
  EXPECT_LE(count, 6'000);
}

TEST_P(PipelineLoopTest, AStoppedRunGoesOnWhereItWas) {
  stop_after_ = 3;
  const RunOutcome stopped = Start({"steps=200000", "evaluation.every=0"});
  EXPECT_EQ(stopped.end, LoopEnd::kInterrupted);
  EXPECT_LT(stopped.counters.steps, 200'000);
  stop_after_ = 1'000'000;
  const std::int64_t steps = stopped.counters.steps + 3'000;
  const RunOutcome resumed = Resume({Assignment::Parse(fmt::format("steps={}", steps))});
  EXPECT_EQ(resumed.end, LoopEnd::kCompleted);
  EXPECT_GE(resumed.counters.steps, steps);
  EXPECT_LE(resumed.counters.steps, steps + 1);
  EXPECT_EQ(resumed.counters.attempt, stopped.counters.attempt + 1);
  EXPECT_GT(resumed.counters.episodes, stopped.counters.episodes);
}

TEST_P(PipelineLoopTest, ItGoesOnFromTheBestWhereNothingElseIsLeft) {
  Start();
  const RunFolder folder = RunFolder::Open(run());
  for (const std::int64_t steps : folder.Checkpoints()) {
    std::filesystem::remove_all(folder.checkpoint(steps));
  }
  const RunOutcome resumed = Resume({Assignment::Parse("steps=8000")});
  EXPECT_EQ(resumed.end, LoopEnd::kCompleted);
  EXPECT_EQ(resumed.counters.steps, 8'000);
  EXPECT_GT(ColumnOf("updates").back(), 0);
}

TEST_P(PipelineLoopTest, WhatIsOlderThanTheBoundIsNotLearnedFrom) {
  const auto most_behind = [&](const std::vector<std::string>& settings) {
    std::filesystem::remove_all(run());
    Start(settings);
    std::vector<double> column = ColumnOf("versions_behind_most");
    std::erase_if(column, [](double value) { return std::isnan(value); });
    return column.empty() ? -1 : *std::ranges::max_element(column);
  };
  EXPECT_GT(most_behind({"progress.every=1000"}), 70);  // A version a slab, of 8 steps.
  const double bounded = most_behind({"progress.every=1000", "topology.staleness_max=70"});
  EXPECT_GT(bounded, 50);
  EXPECT_LE(bounded, 70);
}

TEST_P(PipelineLoopTest, ABoundThatLeavesTooFewToDrawDelaysLearningForGood) {
  stop_after_ = 100;
  const RunOutcome outcome = Start({"topology.staleness_max=3", "evaluation.every=0"});
  EXPECT_EQ(outcome.end, LoopEnd::kCompleted);
}

TEST_P(PipelineLoopTest, ATableThatIsTooSmallToBeginWithEndsTheRun) {
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { Start({"replay.bytes_max=10000"}); }),
              HasSubstr("replay.bytes_max = 10000"));
}

TEST_P(PipelineLoopTest, ARunKeepsItsTopology) {
  Start();
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument,
                        [&] { Resume({Assignment::Parse("topology.kind=synchronous")}); }),
              HasSubstr("topology.kind"));
}

TEST_P(PipelineLoopTest, ARunGoesOnAsThreadsOrAsProcesses) {
  const std::int64_t steps = Start().counters.steps;
  const bool threads = GetParam() == std::string("threads");
  const RunOutcome resumed =
      Resume({Assignment::Parse(threads ? "topology.kind=processes" : "topology.kind=threads"),
              Assignment::Parse("steps=8000")});
  EXPECT_EQ(resumed.end, LoopEnd::kCompleted);
  EXPECT_EQ(resumed.counters.steps, 8'000);
  EXPECT_GT(resumed.counters.steps, steps);
}

TEST_P(PipelineLoopTest, WhatItCannotDoYetIsRefusedBeforeAnythingIsMade) {
  const auto refused = [&](const std::string& setting) {
    return ErrorText(ErrorCode::kInvalidArgument, [&] { Start({setting}); });
  };
  EXPECT_THAT(refused("replay.address=/nowhere"), HasSubstr("replay.address"));
  EXPECT_THAT(refused("collector.environments=3"), HasSubstr("a multiple of the collectors"));
  EXPECT_THAT(refused("collector.kind=alternating"), HasSubstr("topology.collectors = 2 has 1"));
  EXPECT_FALSE(std::filesystem::exists(run()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineLoopTest, testing::Values("threads", "processes", "turns"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace menger
