#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "menger/collectors/collector.h"
#include "menger/collectors/fake_environment.h"
#include "menger/collectors/random_policy.h"

namespace menger {
namespace {

// A group whose state cannot be saved, as those of Python environments.
class ForgetfulGroup final : public FakeGroup {
 public:
  using FakeGroup::FakeGroup;
  void Reset(Slab& slab, int row) override {
    FakeGroup::Reset(slab, row);
    reset_ = true;
  }
  void Step(Slab& slab, int row) override {
    if (!reset_) throw Internal("Step before Reset");
    FakeGroup::Step(slab, row);
  }
  bool resumable() const override { return false; }
  void Save(ArchiveWriter& archive) const override { archive.Write("nothing", 0); }
  void Load(ArchiveReader& /*archive*/) override { reset_ = false; }
  std::vector<EnvironmentMetric> TakeMetrics() override {
    return {{.name = "luck", .sum = 0.5, .count = 1}};
  }

 private:
  bool reset_ = false;
};

EnvironmentEntry Forgetful() {
  return {.spec = FakeGroup::MakeSpec(), .make_group = [](const GroupOptions& options) {
            return std::make_unique<ForgetfulGroup>(options, FakeFaults{});
          }};
}

std::unique_ptr<Collector> Make(CollectorKind kind, int groups) {
  const CollectorPlan plan{
      .kind = kind, .environments = 8, .workers = 2, .groups = groups, .horizon = 10};
  const EnvironmentEntry entry = Forgetful();
  return MakeCollector(plan, entry, [spec = entry.spec] {
    return std::make_unique<RandomPolicy>(spec.observation, spec.action, /*seed=*/1);
  });
}

TEST(FreshEpisodesTest, GroupsThatForgetAreResetAfterLoadAndTheirLostEpisodesNotReported) {
  const std::string path = testing::TempDir() + "fresh_episodes";
  for (const auto& [kind, groups] :
       {std::pair{CollectorKind::kLocal, 1}, std::pair{CollectorKind::kAlternating, 2}}) {
    const auto saved = Make(kind, groups);
    for (int i = 0; i < 3; ++i) saved->Collect();
    {
      ArchiveWriter archive(path);
      saved->Save(archive);
      archive.Commit();
    }
    const auto loaded = Make(kind, groups);
    ArchiveReader archive(path);
    loaded->Load(archive);
    Slab& slab = loaded->Collect();
    EXPECT_EQ(slab.first_step(), 30);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(slab.is_first(0)[slab.columns().PositionOf(i)], 1);
    for (const EpisodeResult& episode : loaded->episodes()) EXPECT_LE(episode.length, 10);
    loaded->Collect();
    std::filesystem::remove_all(path);
  }
}

TEST(FreshEpisodesTest, MetricsOfAllGroupsAreSummed) {
  const auto collector = Make(CollectorKind::kLocal, 1);
  collector->Collect();
  const std::vector<EnvironmentMetric> metrics = collector->TakeMetrics();
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].sum, 1.0);
  EXPECT_EQ(metrics[0].count, 2);
}

}  // namespace
}  // namespace menger
