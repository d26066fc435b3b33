#include "menger/training/process_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/file_testing.h"
#include "menger/environments/catalog.h"
#include "menger/training/experiment.h"
#include "menger/training/pipeline_testing.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_files::Folder;

constexpr std::chrono::milliseconds kLook{20};
const std::vector<Assignment> kSettings = {Assignment::Parse("topology.kind=processes"),
                                           Assignment::Parse("steps=1000000"),
                                           Assignment::Parse("replay.capacity=10000")};

class ProcessRolesTest : public testing::Test {
 protected:
  ProcessRolesTest()
      : experiment_(kPipelineRecipe, "test", kSettings, AllAlgorithms(), catalog_),
        environment_(experiment_.OpenEnvironment(EnvironmentUse::kTraining)) {
    experiment_.ApplyDefaults(environment_.spec);
    experiment_.ResolveDefaults();
    parts_ = MakeLearningParts(experiment_, environment_);
    roles_ = std::make_unique<ProcessRoles>(
        experiment_, static_cast<ReplayAlgorithm&>(*parts_.algorithm), *parts_.update);
  }

  // Looks until it is so.
  PipelineNews Until(const std::function<bool(const PipelineNews& news)>& is_so) {
    const Deadline end = Deadline::After(std::chrono::minutes(2));
    while (true) {
      PipelineNews news = roles_->Look(kLook);
      if (is_so(news)) return news;
      if (end.expired() || news.failed) {
        ADD_FAILURE() << (news.failed ? "a role has failed" : "it never came");
        return news;
      }
    }
  }
  PipelineNews UntilItLearns() {
    return Until([](const PipelineNews& news) {
      const auto is_there = [](const RoleStatus& role) { return role.process > 0; };
      return news.updates > 50 && is_there(news.learner) &&
             std::ranges::all_of(news.collectors, is_there) &&
             std::ranges::all_of(news.others, is_there);
    });
  }

  // No others: process 0 would be all of this group.
  static void Send(int number, const RoleStatus& role) {
    ASSERT_GT(role.process, 0) << role.name;
    kill(role.process, number);
  }

  const Folder folder_;
  const EnvironmentCatalog catalog_ = NativeEnvironments();
  Experiment experiment_;
  const EnvironmentEntry environment_;
  LearningParts parts_;
  std::unique_ptr<ProcessRoles> roles_;
};

TEST_F(ProcessRolesTest, WhenItsProcessIsKilledAnotherCollects) {
  roles_->Begin({});
  const PipelineNews before = UntilItLearns();
  Send(SIGKILL, before.collectors[0]);
  Until([&](const PipelineNews& news) {
    const RoleStatus& collector = news.collectors[0];
    return collector.process != 0 && collector.process != before.collectors[0].process &&
           collector.done > 1'000 && news.steps > before.steps + 1'000;
  });
  roles_->Stop();
}

TEST_F(ProcessRolesTest, WhenItsProcessIsKilledAnotherLearnsFromWhatWasSaved) {
  roles_->Begin({});
  UntilItLearns();
  std::shared_ptr<const ParameterBlob> saved;
  {
    ArchiveWriter archive(folder_ / "saved");
    saved = roles_->Save(archive, /*with_replay=*/false);
  }
  ASSERT_NE(saved, nullptr);
  Until([&](const PipelineNews& news) { return news.updates > 200; });
  const PipelineNews before = UntilItLearns();
  Send(SIGKILL, before.learner);
  Until([&](const PipelineNews& news) {
    return news.learner.process != 0 && news.learner.process != before.learner.process;
  });
  // Others had seen later versions than what it begins with: none is older than those.
  const auto latest = roles_->parameters().Latest();
  EXPECT_EQ(latest->version().incarnation, saved->version().incarnation + 1);
  EXPECT_GE(latest->version().number, saved->version().number);
  const std::int64_t updates = roles_->Look(kLook).updates;
  Until([&](const PipelineNews& news) { return news.updates > updates + 100; });
  roles_->Stop();
}

TEST_F(ProcessRolesTest, WhatWasLearnedAtLastOutlivesTheLearnersProcess) {
  experiment_.steps = 4'000;
  roles_->Begin({});
  const PipelineNews ended = Until([](const PipelineNews& news) { return news.learner.ended; });
  ASSERT_GT(ended.updates, 100);
  const std::uint64_t last = roles_->parameters().Latest()->version().number;
  Send(SIGKILL, ended.learner);
  ArchiveWriter archive(folder_ / "saved");
  const auto saved = roles_->Save(archive, /*with_replay=*/false);
  EXPECT_GT(saved->version().incarnation, 0);
  EXPECT_GE(saved->version().number, last);
  roles_->Stop();
}

TEST_F(ProcessRolesTest, WhenItsProcessIsKilledReplayHasWhatWasSaved) {
  roles_->Begin({});
  Until([&](const PipelineNews& news) { return news.table.items > 2'000; });
  ArchiveWriter archive(folder_ / "saved");
  roles_->Save(archive, /*with_replay=*/true);
  archive.Commit();
  const PipelineNews before = UntilItLearns();
  Send(SIGKILL, before.others[0]);
  const PipelineNews after = Until([&](const PipelineNews& news) {
    const RoleStatus& replay = news.others[0];
    return replay.process != 0 && replay.process != before.others[0].process;
  });
  EXPECT_GE(after.table.items, 2'000);
  Until([&](const PipelineNews& news) {
    return news.updates > after.updates + 100 && news.steps > after.steps + 1'000;
  });
  roles_->Stop();
}

TEST_F(ProcessRolesTest, SavingSurvivesTheDeathOfThoseWhoSave) {
  roles_->Begin({});
  const PipelineNews before = UntilItLearns();
  Send(SIGKILL, before.learner);
  Send(SIGKILL, before.others[0]);
  ArchiveWriter archive(folder_ / "saved");
  EXPECT_NE(roles_->Save(archive, /*with_replay=*/true), nullptr);
  archive.Commit();
  ArchiveReader saved(folder_ / "saved");
  LoadLearningParts("dqn", *parts_.algorithm, *parts_.update, saved);
  roles_->Stop();
}

TEST_F(ProcessRolesTest, WhenItsProcessIsKilledAnotherInfers) {
  experiment_.topology.inference = "apart";
  roles_ = std::make_unique<ProcessRoles>(
      experiment_, static_cast<ReplayAlgorithm&>(*parts_.algorithm), *parts_.update);
  roles_->Begin({});
  const PipelineNews before = UntilItLearns();
  ASSERT_EQ(before.others[1].name, "inference");
  Send(SIGKILL, before.others[1]);
  const PipelineNews after = Until([&](const PipelineNews& news) {
    const RoleStatus& inference = news.others[1];
    return inference.process != 0 && inference.process != before.others[1].process &&
           inference.done > 1'000;
  });
  // And one of those who ask it.
  Send(SIGKILL, after.collectors[0]);
  Until([&](const PipelineNews& news) {
    const RoleStatus& collector = news.collectors[0];
    return collector.process != 0 && collector.process != after.collectors[0].process &&
           collector.done > 1'000;
  });
  roles_->Stop();
}

TEST_F(ProcessRolesTest, OneThatHangsIsSeenToDoNothing) {
  roles_->Begin({});
  const PipelineNews before = UntilItLearns();
  Send(SIGSTOP, before.collectors[0]);
  const PipelineNews hung =
      Until([](const PipelineNews& news) { return news.collectors[0].idle_seconds > 2; });
  EXPECT_EQ(hung.collectors[0].waits_for, "");
  EXPECT_LT(hung.collectors[1].idle_seconds, 2);  // Which goes on.
  EXPECT_LT(hung.others[0].idle_seconds, 2);
  Send(SIGSTOP, before.collectors[1]);
  Until([](const PipelineNews& news) { return news.learner.waits_for == "items in replay"; });
  for (const RoleStatus& collector : before.collectors) Send(SIGCONT, collector);
  Until([&](const PipelineNews& news) { return news.steps > before.steps + 1'000; });
  roles_->Stop();
}

TEST_F(ProcessRolesTest, WhatARoleThrowsEndsThemAndNamesIt) {
  experiment_.network.activation = "nonsense";  // Which the others read.
  roles_->Begin({});
  while (!roles_->Look(kLook).failed) {
  }
  try {
    roles_->Stop();
    FAIL() << "it did not throw";
  } catch (const RoleFailed& error) {
    EXPECT_THAT(error.what(), HasSubstr("nonsense"));
  }
}

}  // namespace
}  // namespace menger
