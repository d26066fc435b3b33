#include "menger/training/roles/inference_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "menger/algorithms/dqn.h"
#include "menger/base/file_testing.h"
#include "menger/base/thread.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "menger/training/roles/remote_policy.h"
#include "menger/training/roles/role_thread.h"

namespace menger {
namespace {

constexpr int kCollectors = 3;
constexpr int kEnvironments = 4;  // Of each.

EnvironmentEntry CartPole() { return NativeEnvironments().Find("CartPole-v1"); }

CollectorPlan PlanOf(CollectorKind kind, int groups, int collector) {
  return {.kind = kind,
          .environments = kEnvironments,
          .first_environment = collector * kEnvironments,
          .groups = groups,
          .horizon = 9,
          .pin = false,
          .seed = 5};
}

class InferenceRoleTest : public testing::Test {
 protected:
  InferenceRoleTest() : environment_(CartPole()) {
    DqnConfig config;
    config.epsilon.start = 0.5;
    dqn_ =
        std::make_unique<Dqn>(config, AlgorithmContext{.environment = environment_.spec,
                                                       .environments = kCollectors * kEnvironments,
                                                       .seed = 5});
  }

  std::unique_ptr<InferenceRole> MakeRole(const InferenceRoleOptions& options) {
    return std::make_unique<InferenceRole>(
        options, dqn_->MakePolicy(PolicyMode::kSample, /*seed=*/5), board_,
        [this](int collector, std::uint32_t) {
          return slabs_[static_cast<std::size_t>(collector)].load();
        });
  }
  std::unique_ptr<Collector> MakeAsking(const CollectorPlan& plan, int collector) {
    return MakeCollector(plan, environment_, [this, collector] {
      return std::make_unique<RemotePolicy>(dqn_->policies().spec(), board_, collector,
                                            [this, collector](Slab& slab, std::uint32_t) {
                                              slabs_[static_cast<std::size_t>(collector)] = &slab;
                                            });
    });
  }

  const EnvironmentEntry environment_;
  std::unique_ptr<Dqn> dqn_;
  InferenceBoard board_;
  std::vector<std::atomic<Slab*>> slabs_{kCollectors};
};

// Also in other batches: whoever asks at the same time shares one.
TEST_F(InferenceRoleTest, WhatItDoesForSeveralCollectorsIsWhatTheyWouldDoThemselves) {
  for (const auto& [kind, groups] :
       {std::pair(CollectorKind::kSerial, 1), std::pair(CollectorKind::kSynchronous, 1),
        std::pair(CollectorKind::kAlternating, 2)}) {
    const auto role = MakeRole({.collectors = kCollectors});
    RoleThread infers(*role);
    std::vector<Thread> threads;
    for (int i = 0; i < kCollectors; ++i) {
      threads.emplace_back(
          ThreadOptions{.name = "collector"}, [&, i, kind = kind, groups = groups] {
            const CollectorPlan plan = PlanOf(kind, groups, i);
            const auto asking = MakeAsking(plan, i);
            const auto own = MakeCollector(plan, environment_, [this] {
              return dqn_->MakePolicy(PolicyMode::kSample, /*seed=*/5);
            });
            for (int slab = 0; slab < 20; ++slab) {
              const Slab& expected = own->Collect();
              const Slab& found = asking->Collect();
              for (int row = 0; row < expected.horizon(); ++row) {
                for (int column = 0; column < kEnvironments; ++column) {
                  const int p = expected.columns().PositionOf(column);
                  ASSERT_EQ(*found.action<std::int64_t>(0, row, p),
                            *expected.action<std::int64_t>(0, row, p))
                      << "collector " << i << ", slab " << slab << ", row " << row;
                  ASSERT_EQ(*found.policy<float>(0, row, p), *expected.policy<float>(0, row, p));
                  ASSERT_EQ(found.version(row)[p], expected.version(row)[p]);
                }
              }
            }
          });
    }
    for (Thread& thread : threads) thread.Join();
    EXPECT_EQ(role->done(), kCollectors * 20 * 9 * kEnvironments);
  }
}

// Advanced by hand, so that everybody has asked.
TEST_F(InferenceRoleTest, ItActsOnAllThatIsReadyUpToABatch) {
  const auto role = MakeRole({.collectors = kCollectors, .positions_max = 2 * kEnvironments});
  EXPECT_EQ(role->Advance(Deadline::After({})).waits_for, "groups to act on");
  std::vector<Thread> threads;
  for (int i = 0; i < kCollectors; ++i) {
    threads.emplace_back(ThreadOptions{.name = "collector"}, [&, i] {
      MakeAsking(PlanOf(CollectorKind::kSerial, 1, i), i)->Collect(/*rows_max=*/1);
    });
  }
  const auto asked = [&] {
    return std::ranges::count_if(board_.desks, [](const auto& desk) { return desk.open(); });
  };
  const Deadline end = Deadline::After(std::chrono::seconds(30));
  while (asked() < kCollectors && !end.expired()) {
  }
  role->Advance(Deadline::After({}));
  EXPECT_EQ(asked(), 1);
  role->Advance(Deadline::After({}));
  EXPECT_EQ(asked(), 0);
  EXPECT_EQ(role->batches(), 2);
  for (Thread& thread : threads) thread.Join();
}

// Not when the wait ends, which is never.
TEST_F(InferenceRoleTest, ABatchThatWaitsIsActedOnOnceAllHaveAsked) {
  const auto role = MakeRole({.collectors = kCollectors, .wait = std::chrono::hours(1)});
  std::vector<Thread> threads;
  for (int i = 0; i < kCollectors; ++i) {
    if (i == kCollectors - 1) {  // The others are not enough, and do not keep who advances it.
      const Deadline end = Deadline::After(std::chrono::minutes(1));
      while (role->Advance(Deadline::After({})).waits_for != "more groups for a batch") {
        ASSERT_FALSE(end.expired());
      }
      EXPECT_EQ(role->batches(), 0);
    }
    threads.emplace_back(ThreadOptions{.name = "collector"}, [&, i] {
      MakeAsking(PlanOf(CollectorKind::kSerial, 1, i), i)->Collect();
    });
  }
  {
    RoleThread infers(*role);
    for (Thread& thread : threads) thread.Join();
  }
  EXPECT_EQ(role->batches(), 9);  // A row of all of them each.
}

TEST_F(InferenceRoleTest, ARequestOfACollectorThatHasGoneIsDroppedAndItsSuccessorServed) {
  board_.desks[1].asked.Advance();  // And died before anybody acted.
  board_.desks[1].slab = 7;
  const auto role = MakeRole({.collectors = kCollectors});
  RoleThread infers(*role);
  MakeAsking(PlanOf(CollectorKind::kSerial, 1, 1), 1)->Collect();
  EXPECT_EQ(board_.desks[1].slab, 8);
  EXPECT_EQ(role->done(), 9 * kEnvironments);
}

TEST_F(InferenceRoleTest, WhereItHasEndedThoseWhoAskAreTold) {
  const auto asking = MakeAsking(PlanOf(CollectorKind::kSerial, 1, 0), 0);
  MakeRole({.collectors = kCollectors});  // And goes at once.
  EXPECT_THAT(testing_files::ErrorText(ErrorCode::kUnavailable, [&] { asking->Collect(); }),
              testing::HasSubstr("inference has ended"));
}

}  // namespace
}  // namespace menger
