#include "menger/training/synchronous_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "menger/base/error.h"
#include "menger/collectors/fake_environment.h"
#include "menger/collectors/random_policy.h"
#include "menger/training/run.h"

namespace menger {
namespace {

// Learns nothing: acts at random and counts the slabs that it was shown.
class CountingAlgorithm final : public SlabAlgorithm {
 public:
  explicit CountingAlgorithm(const EnvironmentSpec& environment)
      : environment_(environment), publication_(Manifest()) {}

  const PolicySpec& policy_spec() const override { return spec_; }
  std::unique_ptr<Policy> MakePolicy(PolicyMode, std::uint64_t seed) override {
    return std::make_unique<RandomPolicy>(environment_.observation, environment_.action, seed);
  }
  Publication& publication() override { return publication_; }
  void Publish() override { publication_.Publish({&slabs_, 1}); }
  std::int64_t parameter_count() const override { return 1; }
  Metrics Learn(std::span<Slab* const>, UpdateRule&, double progress) override {
    slabs_ += 1;
    return {{"slabs", slabs_}, {"progress", progress}};
  }
  void Save(ArchiveWriter& archive) const override { archive.Write("slabs", slabs_); }
  void Load(ArchiveReader& archive) override { archive.Read("slabs", slabs_); }
  void LoadParameters(ArchiveReader& archive) override { Load(archive); }

 private:
  static ParameterManifest Manifest() {
    ParameterManifest manifest;
    manifest.Add("slabs", {1});
    return manifest;
  }

  const EnvironmentSpec environment_;
  const PolicySpec spec_;
  Publication publication_;
  float slabs_ = 0;
};

class CountingEntry final : public AlgorithmEntry {
 public:
  std::string name() const override { return "counting"; }
  std::string description() const override { return "for tests"; }
  void Declare(Options&) override {}
  void Check(const EnvironmentSpec& environment) const override {
    if (environment.action[0].space == Space::kDiscrete) return;
    throw InvalidArgument("algorithm 'counting' takes discrete actions; those of {} are continuous",
                          environment.name);
  }
  std::unique_ptr<Algorithm> Make(const AlgorithmContext& context) const override {
    return std::make_unique<CountingAlgorithm>(context.environment);
  }
};

Experiment::Algorithms OnlyCounting() {
  Experiment::Algorithms algorithms;
  algorithms.push_back(std::make_unique<CountingEntry>());
  return algorithms;
}

constexpr const char* kRecipe = R"(
environment = "Fake-v0"
algorithm = "counting"
steps = 200
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments_per_worker = 4
horizon = 5
[evaluation]
episodes = 2
[checkpoint]
every = 100
)";

class SynchronousLoopTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static std::unique_ptr<Experiment> MakeExperiment(const std::string& setting = "seed=1") {
    const std::vector<Assignment> assignments = {Assignment::Parse(setting)};
    return std::make_unique<Experiment>(kRecipe, "test", assignments, OnlyCounting());
  }

  static EnvironmentCatalog Catalog(const FakeFaults& faults) {
    EnvironmentCatalog catalog;
    catalog.Add(FakeEnvironment(faults));
    return catalog;
  }

  RunOutcome Start(const FakeFaults& faults = {}, const std::string& setting = "seed=1") {
    const EnvironmentCatalog catalog = Catalog(faults);
    const auto experiment = MakeExperiment(setting);
    return StartRun(*experiment, [this] { return RunFolder::Create(root_); }, "",
                    {.environments = catalog, .progress = progress_, .stop_requested = [this] {
                       return stop_;
                     }});
  }

  RunOutcome Resume(const std::string& setting = "seed=1") {
    const EnvironmentCatalog catalog = Catalog({});
    const auto experiment = MakeExperiment(setting);
    return ResumeRun(*experiment, RunFolder::Open(root_),
                     {.environments = catalog, .progress = progress_, .stop_requested = [this] {
                        return stop_;
                      }});
  }

  const std::string root_ =
      testing::TempDir() + "loop_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  ProgressReporter progress_{/*terminal=*/false};
  bool stop_ = false;
};

TEST_F(SynchronousLoopTest, ItEndsWithTheFirstSlabThatReachesTheSteps) {
  const RunOutcome outcome = Start({}, "steps=190");
  EXPECT_EQ(outcome.end, LoopEnd::kCompleted);
  EXPECT_EQ(outcome.counters.steps, 200);
  EXPECT_EQ(outcome.counters.slabs, 10);
  EXPECT_EQ(outcome.counters.evaluated_at, 200);
}

TEST_F(SynchronousLoopTest, AStopIsHeardAfterEachSlab) {
  stop_ = true;
  EXPECT_EQ(Start().end, LoopEnd::kInterrupted);
  EXPECT_THAT(RunFolder::Open(root_).Checkpoints(), testing::ElementsAre(20));
  stop_ = false;
  EXPECT_EQ(Resume().counters.slabs, 10);
}

TEST_F(SynchronousLoopTest, AnEnvironmentErrorLeavesACheckpointOfWhatWasLearned) {
  try {
    Start({.environment = 2, .step = 33});  // In the seventh slab.
    FAIL() << "not reported";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("after 120 steps"));
    EXPECT_THAT(error.what(), testing::HasSubstr("checkpoints/120"));
  }
  const ArchiveReader left = RunFolder::Open(root_).NewestWholeCheckpoint();
  EXPECT_TRUE(left.Read<bool>(SynchronousLoop::kCollectorLost));
  EXPECT_EQ(left.Read<float>("algorithm/slabs"), 6);
  EXPECT_EQ(Resume().counters.slabs, 10);
}

TEST_F(SynchronousLoopTest, AnErrorRightAfterACheckpointKeepsTheWholeOne) {
  EXPECT_THROW(Start({.environment = 2, .step = 26}), Error);  // In the slab after 100 steps.
  const ArchiveReader left = RunFolder::Open(root_).NewestWholeCheckpoint();
  EXPECT_FALSE(left.Read<bool>(SynchronousLoop::kCollectorLost));
}

TEST_F(SynchronousLoopTest, ARestartedEnvironmentCostsRowsButNotTheRun) {
  const RunOutcome outcome =
      Start({.environment = 2, .step = 33}, "collector.on_environment_error=restart");
  EXPECT_EQ(outcome.end, LoopEnd::kCompleted);
  EXPECT_GE(outcome.counters.slabs, 10);
}

TEST_F(SynchronousLoopTest, ACheckpointOfAnotherCollectionPlanIsRefused) {
  Start();
  EXPECT_THROW(Resume("collector.environments_per_worker=3"), Error);
}

TEST_F(SynchronousLoopTest, AnAlgorithmThatDoesNotFitTheEnvironmentIsRefusedBeforeAnythingIsMade) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  const auto experiment = MakeExperiment("environment=Pendulum-v1");
  try {
    StartRun(
        *experiment, [this] { return RunFolder::Create(root_); }, "",
        {.environments = catalog, .progress = progress_, .stop_requested = [] { return false; }});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("discrete actions"));
  }
  EXPECT_FALSE(std::filesystem::exists(root_));
}

TEST(LoopStateTest, OnlyTheLastHundredEpisodesCount) {
  RecentEpisodes recent;
  EXPECT_TRUE(std::isnan(recent.return_mean()));
  std::vector<EpisodeResult> episodes;
  for (int i = 0; i < 250; ++i) episodes.push_back({.episode_return = 1.0 * i, .length = 2 * i});
  recent.Add(episodes);
  EXPECT_EQ(recent.return_mean(), 199.5);  // Of 150 to 249.
  EXPECT_EQ(recent.length_mean(), 399.0);
}

TEST(LoopStateTest, MetricsAreMeansSinceTheLastRow) {
  MetricMeans metrics;
  metrics.Add({{"loss", 1.0}, {"kl", 0.5}});
  metrics.Add({{"loss", 3.0}, {"kl", 0.5}});
  EXPECT_EQ(metrics.TakeMeans(), (Metrics{{"loss", 2.0}, {"kl", 0.5}}));
  metrics.Add({{"loss", 7.0}, {"kl", 0.1}});
  EXPECT_EQ(metrics.TakeMeans(), (Metrics{{"loss", 7.0}, {"kl", 0.1}}));
}

TEST(RunTest, AnAggregateHasMeanSpreadAndExtremes) {
  const std::vector<double> values = {1, 2, 4, 9};
  const Aggregate all = AggregateOf(values);
  EXPECT_EQ(all.mean, 4.0);
  EXPECT_NEAR(all.standard_deviation, 3.082207001484488, 1e-15);  // numpy.std
  EXPECT_EQ(all.minimum, 1.0);
  EXPECT_EQ(all.maximum, 9.0);
}

}  // namespace
}  // namespace menger
