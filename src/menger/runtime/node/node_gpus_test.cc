#include <gtest/gtest.h>

#include <set>

#include "menger/runtime/testing/node_world.h"

// Processes that calls with GPUs have used are kept apart from others.
namespace menger {
namespace {

using Call = World::Call;
using Running = World::Running;

constexpr std::int64_t kMillisecond = 1'000'000;

class NodeGpusTest : public testing::Test {
 protected:
  Call OnGpu(const std::string& scheduling = "cpu=1 gpu=1") {
    return world.Submit({}, {}, {.scheduling = scheduling});
  }
  // Whoever does what can be done now.
  std::set<WorkerIndex> Do() {
    std::set<WorkerIndex> who;
    for (Running running = world.Begin(); running.lease != 0; running = world.Begin()) {
      who.insert(running.worker->index);
      world.Finish(running);
    }
    return who;
  }
  WorkerIndex DoOne() {
    const std::set<WorkerIndex> who = Do();
    EXPECT_EQ(who.size(), 1U);
    return who.empty() ? 0 : *who.begin();
  }

  World world{{.resources = Resources(1, 2), .workers = 1}};
};

TEST_F(NodeGpusTest, AProcessThatHasDoneOtherCallsGetsNoneThatNeedGpus) {
  world.Submit();
  const WorkerIndex without = DoOne();
  OnGpu();
  EXPECT_NE(DoOne(), without);
  EXPECT_EQ(world.ended, std::vector{without});
}

TEST_F(NodeGpusTest, AProcessThatHasHadGpusGetsNoOtherCalls) {
  OnGpu();
  const WorkerIndex with = DoOne();
  world.Submit();
  EXPECT_NE(DoOne(), with);
  EXPECT_EQ(world.ended, std::vector{with});
}

TEST_F(NodeGpusTest, CallsThatNeedTheSameShareAProcess) {
  OnGpu();
  const WorkerIndex with = DoOne();
  for (int i = 0; i < 5; ++i) OnGpu();
  EXPECT_EQ(DoOne(), with);
  OnGpu("cpu=1 gpu=2");
  EXPECT_NE(DoOne(), with);
}

TEST_F(NodeGpusTest, ActorsAndPlacementGroupsHaveFreshProcesses) {
  world.Submit();
  const WorkerIndex without = DoOne();
  const Call actor = world.Construct({.scheduling = "gpu=1"});
  EXPECT_NE(DoOne(), without);
  world.Submit();
  const Call group = world.Submit({.kind = CallKind::kReserve}, {}, {.scheduling = "PACK;gpu=1"});
  Do();
  const std::size_t ended = world.ended.size();
  world.Submit({.home = group.result()}, {}, {.scheduling = "gpu=1"});
  Do();
  EXPECT_GT(world.ended.size(), ended);
  EXPECT_EQ(world.State(actor.result()), "value");
}

TEST_F(NodeGpusTest, WithoutGpusProcessesServeAll) {
  world.Submit();
  world.Submit({}, {}, {.scheduling = "cpu=0.5"});
  world.Submit({}, {}, {.scheduling = "cpu=0.25"});
  DoOne();
  EXPECT_TRUE(world.ended.empty());
}

// Of which a process takes a while to start.
class SlowWorld : public World {
 public:
  using World::World;
  void StartWorker() override { ++starting; }
  void Arrive() {
    for (; starting > 0; --starting) World::StartWorker();
    machine.Run();
  }

  int starting = 0;
};

// Of many calls without GPUs each would do with a process that has done nothing.
TEST_F(NodeGpusTest, OtherCallsDoNotTakeTheProcessesThatAreWaitedFor) {
  SlowWorld many({.resources = Resources(1, 1), .workers = 1});
  for (int i = 0; i < 100; ++i) many.Submit();
  const Call on_gpu = many.Submit({}, {}, {.scheduling = "cpu=1 gpu=1"});
  int before = 0;
  for (; many.State(on_gpu.result()).empty() && before < 100; ++before) {
    many.Arrive();
    many.machine.SetTime(before * kMillisecond);
    const Running running = many.Begin();
    std::vector<TaskResult> results(1);
    results[0].value = World::Small();
    many.machine.Finished(*running.worker, running.lease, results, kMillisecond);
    many.machine.Run();
  }
  EXPECT_LT(before, 50);
  many.FinishAll();
  EXPECT_EQ(many.State(on_gpu.result()), "value");
}

}  // namespace
}  // namespace menger
