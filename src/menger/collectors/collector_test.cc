#include "menger/collectors/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include <stdlib.h>

#include "menger/base/clock.h"
#include "menger/base/counter_random.h"
#include "menger/base/error.h"
#include "menger/collectors/fake_environment.h"
#include "menger/collectors/random_policy.h"
#include "menger/environments/catalog.h"

namespace menger {
namespace {

using ::testing::HasSubstr;

// Batch-invariant, with recurrent state and columns: the action depends on the observation, the
// state, the mask and the parameters, so that an error anywhere shows in everything after it.
class TestPolicy : public Policy {
 public:
  TestPolicy() : random_(/*seed=*/5, /*stream=*/1) {
    spec_.state = Spec({LeafSpec::Box("hidden", DataType::kFloat32, {2}, {-1e9}, {1e9})});
    spec_.columns = Spec({LeafSpec::Scalar("value", DataType::kFloat32)});
  }
  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override { ++version_; }
  void Act(std::span<const ActSlice> slices) override {
    for (const ActSlice& slice : slices) ActOn(*slice.slab, slice.row, slice.positions);
  }

 private:
  void ActOn(Slab& slab, int row, PositionRange positions) {
    for (int p = positions.first; p < positions.first + positions.count; ++p) {
      const int environment = slab.columns().EnvironmentAt(p);
      if (environment < 0) continue;
      const float* observation = slab.observation<float>(0, row, p);
      const std::uint8_t* mask = slab.observation<std::uint8_t>(1, row, p);
      const float* before = slab.state<float>(0, row, p);
      const bool first = slab.is_first(row)[p] != 0;
      float* after = slab.state<float>(0, row + 1, p);
      after[0] = (first ? 0 : before[0]) * 0.5f + observation[0];
      after[1] = (first ? 0 : before[1]) + 1;
      const std::uint32_t word =
          random_.Draw(static_cast<std::uint64_t>(environment),
                       static_cast<std::uint64_t>(slab.first_step() + row))[0];
      std::int64_t action = (word + (after[0] > 0 ? 1 : 0) + static_cast<unsigned>(version_)) % 3;
      if (mask[action] == 0) action = (action + 1) % 3;
      *slab.action<std::int64_t>(0, row, p) = action;
      *slab.policy<float>(0, row, p) = after[0] * after[1];
      slab.version(row)[p] = version_;
    }
  }

  PolicySpec spec_;
  const CounterRandom random_;
  std::int64_t version_ = 0;
};

std::unique_ptr<Policy> MakeTestPolicy() { return std::make_unique<TestPolicy>(); }

using Bytes = std::vector<char>;

void Append(Bytes& bytes, const void* data, std::size_t size) {
  const char* begin = static_cast<const char*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

// All that a reader may look at, environments in order: equal slabs give equal bytes whatever their
// layout.
Bytes ContentOf(const Slab& slab) {
  Bytes bytes;
  const auto part = [&](const Spec& spec, auto array, int row, int position) {
    for (int leaf = 0; leaf < spec.size(); ++leaf) {
      Append(bytes, array(leaf, row, position), spec[leaf].bytes());
    }
  };
  const auto observation = [&](int leaf, int row, int p) { return slab.observation(leaf, row, p); };
  const std::int64_t first_step = slab.first_step();
  Append(bytes, &first_step, sizeof(first_step));
  for (int row = 0; row <= slab.horizon(); ++row) {
    for (int environment = 0; environment < slab.columns().columns(); ++environment) {
      const int p = slab.columns().PositionOf(environment);
      part(slab.spec().observation, observation, row, p);
      Append(bytes, slab.is_first(row) + p, 1);
      part(
          slab.spec().state, [&](int leaf, int r, int q) { return slab.state(leaf, r, q); }, row,
          p);
      if (row == slab.horizon()) continue;
      part(
          slab.spec().action, [&](int leaf, int r, int q) { return slab.action(leaf, r, q); }, row,
          p);
      part(
          slab.spec().policy, [&](int leaf, int r, int q) { return slab.policy(leaf, r, q); }, row,
          p);
      Append(bytes, slab.reward(row) + p, sizeof(double));
      Append(bytes, slab.terminated(row) + p, 1);
      Append(bytes, slab.truncated(row) + p, 1);
      Append(bytes, slab.episode_end(row) + p, 1);
      Append(bytes, slab.valid(row) + p, 1);
      Append(bytes, slab.version(row) + p, sizeof(std::int64_t));
      const int slot = slab.final_index(row)[p];
      bytes.push_back(slot >= 0);
      if (slot < 0) continue;
      for (int leaf = 0; leaf < slab.spec().observation.size(); ++leaf) {
        Append(bytes, slab.final_observation(leaf, slot), slab.observation_bytes(leaf));
      }
    }
  }
  for (int row = -slab.spec().history; row < 0; ++row) {
    for (int environment = 0; environment < slab.columns().columns(); ++environment) {
      const int p = slab.columns().PositionOf(environment);
      part(slab.spec().observation, observation, row, p);
      Append(bytes, slab.is_first(row) + p, 1);
    }
  }
  return bytes;
}

Bytes ContentOf(std::span<const EpisodeResult> episodes) {
  Bytes bytes;
  for (const EpisodeResult& episode : episodes) {
    Append(bytes, &episode.environment, sizeof(int));
    Append(bytes, &episode.episode_return, sizeof(double));
    Append(bytes, &episode.length, sizeof(std::int64_t));
  }
  return bytes;
}

Bytes CollectContent(Collector& collector) {
  Bytes bytes = ContentOf(collector.Collect());
  const Bytes episodes = ContentOf(collector.episodes());
  bytes.insert(bytes.end(), episodes.begin(), episodes.end());
  return bytes;
}

CollectorPlan Plan(CollectorKind kind, int workers = 1, int groups = 1) {
  return {.kind = kind,
          .environments = 36,
          .workers = workers,
          .groups = groups,
          .horizon = 17,
          .history = 3,
          .seed = 11};
}

// Every kind with 1, 2 and 3 workers, 2 and 3 groups.
std::vector<CollectorPlan> AllPlans() {
  std::vector<CollectorPlan> plans = {Plan(CollectorKind::kSerial)};
  for (const int workers : {1, 2, 3}) {
    plans.push_back(Plan(CollectorKind::kLocal, workers));
    plans.push_back(Plan(CollectorKind::kSynchronous, workers));
    for (const int groups : {2, 3})
      plans.push_back(Plan(CollectorKind::kAlternating, workers, groups));
  }
  return plans;
}

std::string Describe(const CollectorPlan& plan) {
  return fmt::format("{}, {} workers, {} groups", NameOf(plan.kind), plan.workers, plan.groups);
}

// Each plan must collect what the serial one does, over several slabs.
void ExpectAllEqual(const EnvironmentEntry& environment, const PolicyFactory& policies,
                    const std::function<void(CollectorPlan&)>& change) {
  std::vector<Bytes> expected;
  for (CollectorPlan plan : AllPlans()) {
    change(plan);
    const auto collector = MakeCollector(plan, environment, policies);
    for (std::size_t slab = 0; slab < 5; ++slab) {
      const Bytes content = CollectContent(*collector);
      if (plan.kind == CollectorKind::kSerial) {
        expected.push_back(content);
      } else {
        EXPECT_TRUE(content == expected[slab]) << Describe(plan) << ", slab " << slab;
      }
    }
  }
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "menger_collector_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string ErrorOf(const std::function<void()>& function, ErrorCode code) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(CollectorTest, AllKindsGiveTheSameSlabsForAnyNumberOfWorkersAndGroups) {
  ExpectAllEqual(FakeEnvironment(), MakeTestPolicy, [](CollectorPlan&) {});
}

TEST(CollectorTest, AllKindsGiveTheSameSlabsWhenEpisodesRestartOnlyBetweenSlabs) {
  ExpectAllEqual(FakeEnvironment(), MakeTestPolicy,
                 [](CollectorPlan& plan) { plan.reset_mode = ResetMode::kBetweenSlabs; });
}

TEST(CollectorTest, AllKindsDecorrelateStartsAlike) {
  ExpectAllEqual(FakeEnvironment(), MakeTestPolicy,
                 [](CollectorPlan& plan) { plan.decorrelation_steps = 40; });
}

TEST(CollectorTest, AllKindsGiveTheSameSlabsWithRandomActions) {
  const EnvironmentEntry environment = FakeEnvironment();
  ExpectAllEqual(environment, RandomPolicies(environment.spec, /*seed=*/3), [](CollectorPlan&) {});
}

TEST(CollectorTest, AllKindsGiveTheSameSlabsWhileAnEnvironmentIsRestarted) {
  ExpectAllEqual(FakeEnvironment({.environment = 7, .step = 5, .every = 11}), MakeTestPolicy,
                 [](CollectorPlan& plan) { plan.restart_budget = 100; });
}

TEST(CollectorTest, AllKindsGiveTheSameSlabsOfNativeEnvironments) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  for (const char* name : {"CartPole-v1", "Pendulum-v1"}) {
    const EnvironmentEntry& environment = catalog.Find(name);
    ExpectAllEqual(environment, RandomPolicies(environment.spec, /*seed=*/3),
                   [](CollectorPlan& plan) {
                     plan.horizon = 60;  // Pendulum's episodes end after 200 steps.
                     plan.decorrelation_steps = 20;
                   });
  }
}

TEST(CollectorTest, AllNativeEnvironmentsGoOnBitIdenticallyAfterSaving) {
  const TemporaryFolder folder;
  const CollectorPlan plan = {.kind = CollectorKind::kLocal, .environments = 4, .workers = 2};
  const EnvironmentCatalog catalog = NativeEnvironments();
  for (const EnvironmentEntry& environment : catalog.entries()) {
    const PolicyFactory policies = RandomPolicies(environment.spec, /*seed=*/3);
    const auto straight = MakeCollector(plan, environment, policies);
    straight->Collect();
    {
      ArchiveWriter archive(folder / "collector");
      straight->Save(archive);
      archive.Commit();
    }
    const auto resumed = MakeCollector(plan, environment, policies);
    ArchiveReader archive(folder / "collector");
    resumed->Load(archive);
    for (int slab = 0; slab < 2; ++slab) {
      EXPECT_TRUE(CollectContent(*straight) == CollectContent(*resumed)) << environment.spec.name;
    }
  }
}

TEST(CollectorTest, PaddingIsNeverValid) {
  for (const CollectorPlan& plan : AllPlans()) {
    const auto collector = MakeCollector(plan, FakeEnvironment(), MakeTestPolicy);
    collector->Collect();
    const Slab& slab = collector->Collect();
    int padding = 0;
    for (int row = 0; row < slab.horizon(); ++row) {
      for (int p = 0; p < slab.positions(); ++p) {
        if (slab.columns().EnvironmentAt(p) >= 0) continue;
        ++padding;
        ASSERT_EQ(slab.valid(row)[p], 0);
      }
    }
    EXPECT_EQ(padding > 0, plan.workers * plan.groups > 1) << Describe(plan);
  }
}

TEST(CollectorTest, AParkedColumnStaysInvalidUntilTheNextSlab) {
  CollectorPlan plan = Plan(CollectorKind::kLocal, /*workers=*/2);
  plan.reset_mode = ResetMode::kBetweenSlabs;
  const auto collector = MakeCollector(plan, FakeEnvironment(), MakeTestPolicy);
  const Slab& slab = collector->Collect();
  std::size_t ended = 0;
  for (int environment = 0; environment < plan.environments; ++environment) {
    const int p = slab.columns().PositionOf(environment);
    bool over = false;
    for (int row = 0; row < slab.horizon(); ++row) {
      EXPECT_EQ(slab.valid(row)[p], !over);
      over = over || slab.episode_end(row)[p] != 0;
    }
    ended += over;
  }
  EXPECT_GT(ended, 0u);
  EXPECT_EQ(collector->episodes().size(), ended);
  collector->Collect();
  for (int environment = 0; environment < plan.environments; ++environment) {
    EXPECT_EQ(slab.valid(0)[slab.columns().PositionOf(environment)], 1);
  }
}

TEST(CollectorTest, AnEnvironmentErrorNamesWorkerIndexSeedAndStepAndEndsTheCollector) {
  for (const CollectorPlan& plan : AllPlans()) {
    const auto collector =
        MakeCollector(plan, FakeEnvironment({.environment = 35, .step = 20}), MakeTestPolicy);
    collector->Collect();
    const std::string text = ErrorOf([&] { collector->Collect(); }, ErrorCode::kInternal);
    EXPECT_THAT(text, HasSubstr("environment 35 (seed 46) failed in step 20"));
    if (plan.kind != CollectorKind::kSerial) {
      EXPECT_THAT(text, HasSubstr(fmt::format("collector worker {}", plan.workers - 1)));
    }
    EXPECT_THAT(ErrorOf([&] { collector->Collect(); }, ErrorCode::kFailedPrecondition),
                HasSubstr("stopped at an error"));
  }
}

TEST(CollectorTest, ARestartMarksItsRowInvalidAndTheCutEpisodeIsNotReported) {
  CollectorPlan plan = Plan(CollectorKind::kSerial);
  plan.restart_budget = 3;
  const auto collector = MakeCollector(
      plan, FakeEnvironment({.environment = 2, .step = 0, .every = 2}), MakeTestPolicy);
  ErrorOf([&] { collector->Collect(); },
          ErrorCode::kInternal);  // Steps 0, 2, 4 are granted, 6 is not.

  plan.restart_budget = 1000;
  const auto patient = MakeCollector(
      plan, FakeEnvironment({.environment = 2, .step = 0, .every = 2}), MakeTestPolicy);
  for (int i = 0; i < 4; ++i) {
    const Slab& slab = patient->Collect();
    for (int row = 0; row < slab.horizon(); ++row) {
      EXPECT_EQ(slab.valid(row)[2], (slab.first_step() + row) % 2);
      if (slab.valid(row)[2] == 0) {
        EXPECT_EQ(slab.is_first(row + 1)[2], 1);
      }
    }
    for (const EpisodeResult& episode : patient->episodes()) {
      if (episode.environment == 2) {
        EXPECT_EQ(episode.length, 1);
      }
    }
  }
}

TEST(CollectorTest, AHangingWorkerIsNamedWhenPatienceEnds) {
  for (CollectorPlan plan : {Plan(CollectorKind::kLocal, 2), Plan(CollectorKind::kSynchronous, 2),
                             Plan(CollectorKind::kAlternating, 2, 2)}) {
    plan.patience_seconds = 0.05;
    const auto collector = MakeCollector(
        plan, FakeEnvironment({.environment = 35, .step = 3, .hang_seconds = 0.5}), MakeTestPolicy);
    EXPECT_THAT(ErrorOf([&] { collector->Collect(); }, ErrorCode::kDeadlineExceeded),
                HasSubstr("collector worker 1 made no progress for 0.05 s"));
  }
}

TEST(CollectorTest, AnEnvironmentThatWatchesDeadlinesOfItsOwnIsNotGivenUpBeforeThem) {
  CollectorPlan plan = Plan(CollectorKind::kSynchronous, 2);
  plan.patience_seconds = 0.05;
  EnvironmentEntry entry = FakeEnvironment({.environment = 35, .step = 3, .hang_seconds = 0.5});
  entry.longest_call_seconds = 5;
  const auto collector = MakeCollector(plan, entry, MakeTestPolicy);
  EXPECT_NO_THROW(collector->Collect());
}

TEST(CollectorTest, ASlowWorkerThatMakesProgressIsNotGivenUp) {
  CollectorPlan plan = Plan(CollectorKind::kLocal, 2);
  plan.patience_seconds = 0.1;  // The slab takes longer, each step less.
  const auto collector = MakeCollector(
      plan, FakeEnvironment({.environment = 35, .every = 1, .hang_seconds = 0.02}), MakeTestPolicy);
  EXPECT_NO_THROW(collector->Collect());
}

TEST(CollectorTest, ASavedCollectorGoesOnBitIdentically) {
  const TemporaryFolder folder;
  for (CollectorPlan plan : AllPlans()) {
    for (const bool parked : {false, true}) {
      plan.reset_mode = parked ? ResetMode::kBetweenSlabs : ResetMode::kSameStep;
      plan.restart_budget = 100;
      plan.decorrelation_steps = 10;
      const EnvironmentEntry environment =
          FakeEnvironment({.environment = 7, .step = 12, .every = 11});
      const PolicyFactory policies = RandomPolicies(environment.spec, /*seed=*/3);
      const auto straight = MakeCollector(plan, environment, policies);
      straight->Collect();
      straight->Collect();
      {
        ArchiveWriter archive(folder / "collector");
        straight->Save(archive);
        archive.Commit();
      }
      const auto resumed = MakeCollector(plan, environment, policies);
      ArchiveReader archive(folder / "collector");
      resumed->Load(archive);
      {  // Saving what was just loaded changes nothing.
        ArchiveWriter again(folder / "again");
        resumed->Save(again);
        again.Commit();
        ArchiveReader reader(folder / "again");
        for (const std::string& name : archive.Names()) {
          EXPECT_EQ(archive.ReadBlob(name), reader.ReadBlob(name)) << name;
        }
      }
      for (int slab = 0; slab < 3; ++slab) {
        EXPECT_TRUE(CollectContent(*straight) == CollectContent(*resumed)) << Describe(plan);
      }
    }
  }
}

TEST(CollectorTest, ACollectorOfAnotherShapeIsNotLoaded) {
  const TemporaryFolder folder;
  const auto collector =
      MakeCollector(Plan(CollectorKind::kLocal, 2), FakeEnvironment(), MakeTestPolicy);
  collector->Collect();
  ArchiveWriter writer(folder / "collector");
  collector->Save(writer);
  writer.Commit();
  ArchiveReader reader(folder / "collector");
  const auto other =
      MakeCollector(Plan(CollectorKind::kLocal, 3), FakeEnvironment(), MakeTestPolicy);
  EXPECT_THAT(ErrorOf([&] { other->Load(reader); }, ErrorCode::kFailedPrecondition),
              HasSubstr("(36, 2, 1, 3), this one (36, 3, 1, 3)"));
}

TEST(CollectorTest, EveryThreadThatActsHasItsOwnPolicy) {
  for (const CollectorPlan& plan : AllPlans()) {
    int made = 0;
    const auto collector = MakeCollector(plan, FakeEnvironment(), [&made] {
      ++made;
      return std::make_unique<TestPolicy>();
    });
    EXPECT_EQ(made, plan.kind == CollectorKind::kLocal ? plan.workers : 1);
  }
}

TEST(CollectorTest, TimesAddUpToTheThreadsTimesTheWallClock) {
  const auto collector =
      MakeCollector(Plan(CollectorKind::kLocal, 2), FakeEnvironment(), MakeTestPolicy);
  const Stopwatch watch;
  for (int i = 0; i < 20; ++i) collector->Collect();
  const double wall = watch.seconds();
  const CollectorTimes times = collector->times();
  EXPECT_GT(times.simulation, 0);
  EXPECT_GT(times.inference, 0);
  EXPECT_GE(times.waiting, 0);
  EXPECT_LE(times.simulation + times.inference + times.waiting, 4 * wall);
}

TEST(CollectorTest, OptionsAreDeclaredWithTheirDefaultsAndLimits) {
  CollectorOptions collector;
  Options options("collector");
  collector.Declare(options);
  EXPECT_EQ(ToText(options.Get("workers")), "auto");
  options.SetFromText("workers", "2");
  options.SetFromText("kind", "alternating");
  EXPECT_EQ(collector.workers.value, 2);
  EXPECT_EQ(collector.kind, "alternating");
  EXPECT_THAT(ErrorOf([&] { options.SetFromText("horizn", "2"); }, ErrorCode::kInvalidArgument),
              HasSubstr("horizon"));
  ErrorOf([&] { options.SetFromText("groups", "1"); }, ErrorCode::kInvalidArgument);
  for (const OptionEntry& entry : options.Entries()) EXPECT_NE(entry.consequence, "") << entry.name;
}

TEST(CollectorTest, ImpossiblePlansAreRefusedByName) {
  const auto refuse = [](CollectorPlan plan) {
    return ErrorOf([&] { MakeCollector(plan, FakeEnvironment(), MakeTestPolicy); },
                   ErrorCode::kInvalidArgument);
  };
  EXPECT_THAT(refuse({.workers = 0}), HasSubstr("collector.workers is 0"));
  EXPECT_THAT(refuse({.horizon = 0}), HasSubstr("collector.horizon is 0"));
  EXPECT_THAT(refuse({.kind = CollectorKind::kSerial, .environments = 4, .workers = 2}),
              HasSubstr("a serial collector has one thread"));
  EXPECT_THAT(refuse({.kind = CollectorKind::kLocal, .environments = 7, .workers = 2}),
              HasSubstr("take a multiple of 2"));
  EXPECT_THAT(refuse({.kind = CollectorKind::kAlternating, .environments = 8, .workers = 2}),
              HasSubstr("collector.groups is 1"));
  EXPECT_THAT(refuse({.kind = CollectorKind::kSerial, .environments = 8, .groups = 2}),
              HasSubstr("only an alternating collector has groups"));
  EXPECT_THAT(ErrorOf([] { CollectorKindFromName("sychronous"); }, ErrorCode::kInvalidArgument),
              HasSubstr("did you mean 'synchronous'"));
}

}  // namespace
}  // namespace menger
