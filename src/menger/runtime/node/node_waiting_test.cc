#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "menger/runtime/testing/node_world.h"

// Calls that wait for their arguments, very many of them, and stop.
namespace menger {
namespace {

using Call = World::Call;
using Running = World::Running;

void Fail(World& world, const Running& running) {
  world.machine.Failed(*running.worker, running.lease, {.text = "no"}, 1000);
}

// Of this thread's own work: what else the machine does takes none of it.
double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds for `end` to settle `count` calls, each of which has one argument for itself and one that
// all of them have.
template <typename Make, typename End>
double SecondsToEnd(int count, const Make& make, const End& end) {
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    World world({.resources = Resources(1, 0), .workers = 1});
    const Call shared = world.Submit();
    const Running running = world.Begin();
    std::vector<Call> calls;
    for (int i = 0; i < count; ++i) calls.push_back(make(world, shared));
    const double before = CpuSeconds();
    end(world, running, calls);
    least = std::min(least, CpuSeconds() - before);
    for (const Call& call : calls) EXPECT_NE(world.State(call.result()), "");
  }
  return least;
}

// Four times as many calls: quadratic work would be sixteen times as much.
template <typename Make, typename End>
void ExpectLinear(const Make& make, const End& end) {
  const double few = SecondsToEnd(40'000, make, end);
  const double many = SecondsToEnd(160'000, make, end);
  EXPECT_LE(many, 10 * few) << few << " s of 40,000 calls, " << many << " s of 160,000";
}

TEST(NodeWaitingTest, AFailedArgumentCostsEachOfItsCallsTheSame) {
  ExpectLinear(
      [](World& world, const Call& shared) { return world.Submit({shared.result()}); },
      [](World& world, const Running& running, const std::vector<Call>&) { Fail(world, running); });
}

TEST(NodeWaitingTest, ACancelledCallCostsTheSameHoweverManyWaitForItsArgument) {
  ExpectLinear([](World& world, const Call& shared) { return world.Submit({shared.result()}); },
               [](World& world, const Running&, const std::vector<Call>& calls) {
                 for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
                   world.machine.Cancel(*world.machine.objects().Find(call->result()), false);
                 }
               });
}

TEST(NodeWaitingTest, MethodsWithAFailedArgumentLeaveTheirLineAtTheSameCost) {
  Call actor;
  ExpectLinear(
      [&actor](World& world, const Call& shared) {
        if (world.calls == 1) actor = world.Construct({});
        return world.Submit(
            {.kind = CallKind::kMethod, .actor = actor.actor, .home = actor.result(), .retries = 0},
            {shared.result()}, {});
      },
      [](World& world, const Running& running, const std::vector<Call>&) { Fail(world, running); });
}

// A method that its worker has not begun is cancelled while others of its caller are held back.
TEST(NodeWaitingTest, WhoLeavesAnActorsWorkerLeavesTheOthersInTheirLine) {
  World world;
  const Call actor = world.Construct({});
  world.FinishAll();
  const Call slow = world.Submit();
  const Running running = world.Begin();
  const Call offered = world.Method(actor, {});
  const SpecHeader method{
      .kind = CallKind::kMethod, .actor = actor.actor, .home = actor.result(), .retries = 0};
  std::vector<Call> held;
  for (int i = 0; i < 3; ++i) held.push_back(world.Submit(method, {slow.result()}, {}));
  world.machine.Cancel(*world.machine.objects().Find(offered.result()), false);
  EXPECT_EQ(world.State(offered.result()), "cancelled");
  world.Finish(running);
  world.FinishAll();
  for (const Call& call : held) EXPECT_EQ(world.State(call.result()), "value");
  for (const Call& call : held) world.Forget(call.result());
  for (const Call& call : {slow, offered, actor}) world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeWaitingTest, ACallThatHasOneArgumentTwiceFailsOnceWithIt) {
  World world;
  const Call bad = world.Submit();
  const Running running = world.Begin();
  const Call twice = world.Submit({bad.result(), bad.result()});
  Fail(world, running);
  EXPECT_EQ(world.State(twice.result()), "exception");
  EXPECT_EQ(world.machine.counts().failed, 2);
  for (const Call& call : {bad, twice}) world.Forget(call.result());
  world.ExpectNothingLeft();
}

// The record of a call that was cancelled is another's before its argument is there.
TEST(NodeWaitingTest, ACancelledCallIsForgottenByWhatItWaitedFor) {
  World world({.resources = Resources(1, 0), .workers = 1});
  const Call slow = world.Submit();
  const Running running = world.Begin();
  const Call other = world.Submit();
  std::vector<Call> keep;
  for (int i = 0; i < 8; ++i) keep.push_back(world.Submit({slow.result()}));
  const Call gone = world.Submit({slow.result()});
  world.machine.Cancel(*world.machine.objects().Find(gone.result()), false);
  world.Forget(gone.result());
  const Call next = world.Submit({other.result(), other.result()});
  world.Finish(running);
  EXPECT_EQ(world.State(next.result()), "");  // It does not wait for `slow`.
  world.FinishAll();
  for (const Call& call : keep) EXPECT_EQ(world.State(call.result()), "value");
  EXPECT_EQ(world.State(next.result()), "value");
  for (const Call& call : keep) world.Forget(call.result());
  for (const Call& call : {slow, other, next}) world.Forget(call.result());
  world.ExpectNothingLeft();
}

}  // namespace
}  // namespace menger
