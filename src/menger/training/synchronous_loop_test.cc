#include "menger/training/synchronous_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <thread>

#include "menger/base/error.h"
#include "menger/collectors/fake_environment.h"
#include "menger/collectors/random_policy.h"
#include "menger/training/resolve.h"
#include "menger/training/run.h"
#include "menger/training/slab_cycle.h"

namespace menger {
namespace {

ParameterManifest CountingManifest() {
  ParameterManifest manifest;
  manifest.Add("slabs", {1});
  return manifest;
}

class RandomPolicyMaker final : public PolicyMaker {
 public:
  explicit RandomPolicyMaker(const EnvironmentSpec& environment) : environment_(environment) {}

  const PolicySpec& spec() const override { return spec_; }
  const ParameterManifest& manifest() const override { return manifest_; }
  std::unique_ptr<Policy> Make(const ParameterSource&, PolicyMode,
                               std::uint64_t seed) const override {
    return std::make_unique<RandomPolicy>(environment_.observation, environment_.action, seed);
  }
  PolicyDescription Describe(std::span<const float>) const override {
    throw FailedPrecondition("chance has no description");
  }

 private:
  const EnvironmentSpec environment_;
  const PolicySpec spec_;
  const ParameterManifest manifest_ = CountingManifest();
};

// Learns nothing: acts at random, counts the slabs that it was shown and remembers the actions.
class CountingAlgorithm final : public SlabAlgorithm {
 public:
  CountingAlgorithm(const EnvironmentSpec& environment, std::int64_t slabs_max)
      : policies_(environment), slabs_max_(slabs_max), publication_(policies_.manifest()) {}

  const PolicyMaker& policies() const override { return policies_; }
  Publication& publication() override { return publication_; }
  void Publish() override { publication_.Publish({&slabs_, 1}); }
  void BeforeCollection(UpdateRule&) override { ++collections_; }
  std::int64_t parameter_count() const override { return 1; }
  Metrics Learn(std::span<Slab* const> slabs, UpdateRule&, double progress) override {
    if (slabs_ == static_cast<float>(slabs_max_)) throw GradientNotFinite("gradient is not finite");
    slabs_ += 1;
    EXPECT_EQ(collections_, ++learned_);  // Each was told of.
    for (int row = 0; row < slabs[0]->horizon(); ++row) {
      const auto* const actions = slabs[0]->action<std::int64_t>(0, row);
      actions_.insert(actions_.end(), actions, actions + slabs[0]->positions());
    }
    return {{"slabs", slabs_}, {"progress", progress}};
  }
  std::vector<std::string> metric_names() const override { return {"slabs", "progress"}; }
  void Save(ArchiveWriter& archive) const override {
    archive.Write("slabs", slabs_);
    archive.Write("actions", actions_);
  }
  void Load(ArchiveReader& archive) override {
    archive.Read("slabs", slabs_);
    archive.Read("actions", actions_);
  }
  void LoadParameters(ArchiveReader& archive) override { Load(archive); }

 private:
  const RandomPolicyMaker policies_;
  const std::int64_t slabs_max_;
  Publication publication_;
  float slabs_ = 0;
  int collections_ = 0;
  int learned_ = 0;
  std::vector<std::int64_t> actions_;
};

class CountingEntry final : public AlgorithmEntry {
 public:
  std::string name() const override { return "counting"; }
  std::string description() const override { return "for tests"; }
  void Declare(Options& options) override {
    options.Add("slabs_max", &slabs_max_, {.consequence = "learning from one more fails"});
  }
  void Check(const EnvironmentSpec& environment) const override {
    if (environment.action[0].space == Space::kDiscrete) return;
    throw InvalidArgument("algorithm 'counting' takes discrete actions; those of {} are continuous",
                          environment.name);
  }
  std::unique_ptr<Algorithm> Make(const AlgorithmContext& context) const override {
    return std::make_unique<CountingAlgorithm>(context.environment, slabs_max_);
  }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return std::make_unique<RandomPolicyMaker>(context.environment);
  }

 private:
  std::int64_t slabs_max_ = 1'000'000;
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
seed = 1
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments = 4
horizon = 5
[evaluation]
every = 60
episodes = 2
[checkpoint]
every = 100
)";

constexpr FakeFaults kInTheSeventhSlab = {.environment = 2, .step = 33};

class SynchronousLoopTest : public testing::Test {
 protected:
  void SetUp() override { Remove(); }
  void TearDown() override { Remove(); }

  void Remove() const {
    for (const std::string& folder : {root_, copy_}) std::filesystem::remove_all(folder);
  }
  void Copy() const {
    std::filesystem::copy(root_, copy_, std::filesystem::copy_options::recursive);
  }

  static std::unique_ptr<Experiment> MakeExperiment(const EnvironmentCatalog& environments,
                                                    const std::string& setting = "seed=1") {
    const std::vector<Assignment> assignments = {Assignment::Parse(setting)};
    return std::make_unique<Experiment>(kRecipe, "test", assignments, OnlyCounting(), environments);
  }

  static EnvironmentCatalog Catalog(const FakeFaults& faults) {
    EnvironmentCatalog catalog;
    catalog.Add(FakeEnvironment(faults));
    return catalog;
  }

  RunOutcome Start(const FakeFaults& faults = {}, const std::string& setting = "seed=1") {
    const EnvironmentCatalog catalog = Catalog(faults);
    const auto experiment = MakeExperiment(catalog, setting);
    return StartRun(*experiment, [this] { return RunFolder::Create(root_); }, "",
                    {.progress = progress_, .stop_requested = StopRequested()});
  }

  RunOutcome Resume(const std::string& setting = "seed=1") { return ResumeIn(root_, {}, setting); }

  RunOutcome ResumeIn(const std::string& folder, const FakeFaults& faults = {},
                      const std::string& setting = "seed=1") {
    const EnvironmentCatalog catalog = Catalog(faults);
    const auto experiment = MakeExperiment(catalog, setting);
    return ResumeRun(*experiment, RunFolder::Open(folder),
                     {.progress = progress_, .stop_requested = StopRequested()});
  }

  // The loop's own questions alone count: a heartbeat asks now and then, too, in its own thread.
  std::function<bool()> StopRequested() {
    return [this, loop = std::this_thread::get_id()] {
      return std::this_thread::get_id() == loop && stop_after_-- <= 0;
    };
  }

  static std::string ErrorOf(const std::function<void()>& function) {
    try {
      function();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  static ArchiveReader Newest(const std::string& folder) {
    return RunFolder::Open(folder).NewestWholeCheckpoint();
  }

  static std::vector<std::int64_t> ActionsOf(const std::string& folder) {
    return Newest(folder).Read<std::vector<std::int64_t>>("algorithm/actions");
  }

  static void ExpectSameCheckpoints(const std::string& one, const std::string& other) {
    const ArchiveReader first = Newest(one);
    const ArchiveReader second = Newest(other);
    EXPECT_EQ(first.Names(), second.Names());
    for (const std::string& name : first.Names()) {
      if (name == "loop/counters") continue;  // It holds times.
      EXPECT_EQ(first.ReadBlob(name), second.ReadBlob(name)) << name;
    }
  }

  const std::string root_ =
      testing::TempDir() + "loop_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string copy_ = root_ + "_copy";
  ProgressReporter progress_{/*terminal=*/false};
  static constexpr int kNever = 1'000'000;
  int stop_after_ = kNever;  // Having been asked so many times.
};

// Of 4 environments; a whole slab would be 200.
TEST_F(SynchronousLoopTest, ItsLastSlabIsCutAtTheStepOfAllEnvironmentsThatReachesTheSteps) {
  const RunOutcome outcome = Start({}, "steps=190");
  EXPECT_EQ(outcome.end, LoopEnd::kCompleted);
  EXPECT_EQ(outcome.counters.steps, 192);
  EXPECT_EQ(outcome.counters.slabs, 10);
  EXPECT_EQ(outcome.counters.evaluated_at, 192);
}

TEST_F(SynchronousLoopTest, AStopIsHeardAfterEachSlab) {
  stop_after_ = 0;
  EXPECT_EQ(Start().end, LoopEnd::kInterrupted);
  EXPECT_THAT(RunFolder::Open(root_).Checkpoints(), testing::ElementsAre(20));
  stop_after_ = kNever;
  EXPECT_EQ(Resume().counters.slabs, 10);
}

// With more episodes than are played at the same time, it asks between the two passes, too.
TEST_F(SynchronousLoopTest, AnEvaluationThatIsStoppedIsMadeWhenTheRunResumes) {
  const std::string setting = fmt::format("evaluation.episodes={}", kEvaluationEnvironmentsMax + 1);
  const RunOutcome straight = Start({}, setting);
  std::filesystem::rename(root_, copy_);

  stop_after_ = 2;  // The first two slabs; the third is followed by an evaluation.
  const RunOutcome stopped = Start({}, setting);
  EXPECT_EQ(stopped.end, LoopEnd::kInterrupted);
  EXPECT_EQ(stopped.counters.steps, 60);
  EXPECT_EQ(stopped.counters.evaluations, 0);
  EXPECT_EQ(stopped.counters.reported_at, 40);

  stop_after_ = 0;
  const RunOutcome again = Resume(setting);
  EXPECT_EQ(again.end, LoopEnd::kInterrupted);
  EXPECT_EQ(again.counters.steps, 60);
  EXPECT_EQ(again.counters.evaluations, 0);

  stop_after_ = kNever;
  const RunOutcome resumed = Resume(setting);
  EXPECT_EQ(resumed.end, LoopEnd::kCompleted);
  EXPECT_EQ(resumed.counters.evaluations, straight.counters.evaluations);
  EXPECT_EQ(resumed.counters.evaluation_mean, straight.counters.evaluation_mean);
  EXPECT_EQ(resumed.counters.best_at, straight.counters.best_at);
  EXPECT_EQ(resumed.counters.best_mean, straight.counters.best_mean);
  ExpectSameCheckpoints(root_, copy_);
}

TEST_F(SynchronousLoopTest, AnEnvironmentErrorLeavesACheckpointOfWhatWasLearned) {
  const std::string error = ErrorOf([this] { Start(kInTheSeventhSlab); });
  EXPECT_THAT(error, testing::HasSubstr("after 120 steps: environment 2 (seed 3) failed"));
  EXPECT_THAT(error, testing::HasSubstr("--resume " + root_));
  const ArchiveReader left = Newest(root_);
  EXPECT_TRUE(left.Read<bool>(SynchronousLoop::kCollectorLost));
  EXPECT_EQ(left.Read<float>("algorithm/slabs"), 6);
  EXPECT_EQ(Resume().counters.slabs, 10);
}

TEST_F(SynchronousLoopTest, AfterAnEnvironmentErrorActionsAreDrawnFromAnotherStream) {
  Start();
  const std::vector<std::int64_t> straight = ActionsOf(root_);
  ASSERT_EQ(straight.size(), 200U);
  Remove();
  EXPECT_THROW(Start(kInTheSeventhSlab), Error);
  Resume();
  const std::vector<std::int64_t> resumed = ActionsOf(root_);
  ASSERT_EQ(resumed.size(), 200U);
  EXPECT_TRUE(std::equal(resumed.begin(), resumed.begin() + 120, straight.begin()));
  EXPECT_FALSE(std::equal(resumed.begin() + 120, resumed.end(), straight.begin()));
  EXPECT_FALSE(std::equal(resumed.begin() + 120, resumed.end(), straight.begin() + 120));
}

TEST_F(SynchronousLoopTest, TwoResumesAfterAnEnvironmentErrorAreTheSameRun) {
  EXPECT_THROW(Start(kInTheSeventhSlab), Error);
  Copy();
  Resume();
  stop_after_ = 0;  // The other is also interrupted on its way.
  EXPECT_EQ(ResumeIn(copy_).end, LoopEnd::kInterrupted);
  stop_after_ = kNever;
  ResumeIn(copy_);
  ExpectSameCheckpoints(root_, copy_);
}

TEST_F(SynchronousLoopTest, EachFailureOfCollectionIsFollowedByOtherSeeds) {
  const FakeFaults always = {.environment = 2, .step = 3};  // In each first slab.
  EXPECT_THAT(ErrorOf([&] { Start(always); }), testing::HasSubstr("environment 2 (seed 3)"));
  EXPECT_THAT(ErrorOf([&] { ResumeIn(root_, always); }),
              testing::HasSubstr(fmt::format("(seed {})", CollectorSeed(1, 1) + 2)));
  EXPECT_THAT(ErrorOf([&] { ResumeIn(root_, always); }),
              testing::HasSubstr(fmt::format("(seed {})", CollectorSeed(1, 2) + 2)));
  EXPECT_EQ(Resume().counters.attempt, 3);
}

TEST_F(SynchronousLoopTest, AnErrorRightAfterACheckpointReplacesTheOneThatWouldMeetItAgain) {
  EXPECT_THROW(Start({.environment = 2, .step = 26}), Error);  // In the slab after 100 steps.
  EXPECT_TRUE(Newest(root_).Read<bool>(SynchronousLoop::kCollectorLost));
}

TEST_F(SynchronousLoopTest, AWorkerThatHangsIsNamedAndWhatWasLearnedIsSaved) {
  const EnvironmentCatalog catalog = Catalog({.environment = 3, .step = 7, .hang_seconds = 3600});
  const auto experiment = MakeExperiment(catalog);
  const EnvironmentEntry& environment = catalog.entries().front();
  Resolve(*experiment, environment);
  TrainingParts parts = MakeParts(*experiment, environment, /*attempt=*/0);
  auto collector = MakeCollector(
      {.kind = CollectorKind::kLocal,
       .environments = 4,
       .workers = 2,
       .horizon = 5,
       .pin = false,
       .patience_seconds = 0.2,
       .seed = 1},
      environment, [&] { return parts.algorithm->MakePolicy(PolicyMode::kSample, 1); });
  parts.cycle = std::make_unique<SlabCycle>(
      std::move(collector), /*environments=*/4,
      MakeSlabConsumer(*experiment, *parts.algorithm, [] { return false; }));
  // The hanging thread uses it for ever: to tools that look for leaks it is not one.
  static const void* left = nullptr;
  left = parts.cycle.get();
  EXPECT_NE(left, nullptr);
  const RunFolder folder = RunFolder::Create(root_);
  SynchronousLoop loop(*experiment, environment, parts, folder, progress_, [] { return false; });
  EXPECT_THAT(ErrorOf([&] { loop.Run(); }),
              testing::AllOf(testing::HasSubstr("after 20 steps: collector worker 1 made no"),
                             testing::HasSubstr("What was learned is saved")));
  EXPECT_EQ(parts.cycle, nullptr);  // Left to the thread, which nobody waits for.
  EXPECT_EQ(folder.NewestWholeCheckpoint().Read<float>("algorithm/slabs"), 1);
}

TEST_F(SynchronousLoopTest, AnErrorOfLearningSaysAtWhichStepAndWhereToGoOn) {
  Start();
  Copy();
  std::filesystem::remove_all(root_);
  const std::string error = ErrorOf([this] { Start({}, "counting.slabs_max=8"); });
  EXPECT_THAT(error, testing::HasSubstr("learning after 160 steps: gradient is not finite"));
  EXPECT_THAT(error, testing::HasSubstr("--resume " + root_ + "` goes on from 100 steps"));
  EXPECT_THAT(error, testing::HasSubstr("--set counting.learning_rate="));
  EXPECT_THAT(RunFolder::Open(root_).Checkpoints(), testing::ElementsAre(100));
  Resume();
  EXPECT_EQ(ActionsOf(root_), ActionsOf(copy_));  // As if nothing had happened.
}

TEST_F(SynchronousLoopTest, AnErrorOfLearningBeforeTheFirstCheckpointSaysSo) {
  EXPECT_THAT(ErrorOf([this] { Start({}, "counting.slabs_max=2"); }),
              testing::AllOf(testing::HasSubstr("learning after 40 steps"),
                             testing::HasSubstr("no checkpoint yet (checkpoint.every = 100)")));
}

TEST_F(SynchronousLoopTest, ARestartedEnvironmentCostsRowsButNotTheRun) {
  const RunOutcome outcome =
      Start({.environment = 2, .step = 33}, "collector.on_environment_error=restart");
  EXPECT_EQ(outcome.end, LoopEnd::kCompleted);
  EXPECT_GE(outcome.counters.slabs, 10);
}

TEST_F(SynchronousLoopTest, ACheckpointOfAnotherCollectionPlanIsRefused) {
  Start();
  EXPECT_THROW(Resume("collector.environments=3"), Error);
}

TEST_F(SynchronousLoopTest, AnAlgorithmThatDoesNotFitTheEnvironmentIsRefusedBeforeAnythingIsMade) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  const auto experiment = MakeExperiment(catalog, "environment=Pendulum-v1");
  try {
    StartRun(*experiment, [this] { return RunFolder::Create(root_); }, "",
             {.progress = progress_, .stop_requested = [] { return false; }});
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
  metrics.Add({{"loss", std::nan("")}, {"kl", 0.3}});  // Nothing to report of the loss.
  EXPECT_EQ(metrics.TakeMeans(), (Metrics{{"loss", 7.0}, {"kl", 0.2}}));
}

// Whoever looks between two updates must not take nothing for a number that is none.
TEST(LoopStateTest, WhereNothingWasAddedThereAreNoMeansToTake) {
  MetricMeans metrics;
  EXPECT_TRUE(metrics.TakeIfAny().empty());
  metrics.Add({{"loss", std::nan("")}});
  EXPECT_EQ(metrics.TakeIfAny().size(), 1);
  EXPECT_TRUE(metrics.TakeIfAny().empty());
}

TEST(CollectorSeedTest, EveryAttemptHasItsOwnSeedThatARolloutTakes) {
  EXPECT_EQ(CollectorSeed(7, 0), 7U);
  EXPECT_NE(CollectorSeed(7, 1), CollectorSeed(7, 2));
  EXPECT_NE(CollectorSeed(7, 1), CollectorSeed(8, 1));
  EXPECT_LT(CollectorSeed(7, 1), 1'000'000'000'000'000U);
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
