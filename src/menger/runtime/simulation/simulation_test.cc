#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "menger/base/error.h"
#include "menger/runtime/simulation/simulated_cluster.h"
#include "menger/runtime/testing/state_differences.h"

namespace menger::simulation {
namespace {

// In so many even the rarest change of a state happens. Under a sanitizer each takes ten times as
// long.
constexpr std::uint64_t kEverything = 4000;
const std::uint64_t kSchedules = *MENGER_SANITIZER == '\0' ? kEverything : 500;

// MENGER_SIMULATION_SEED=n runs that schedule alone.
void RunSeeds(std::uint64_t first, std::uint64_t count) {
  if (const char* const seed = std::getenv("MENGER_SIMULATION_SEED")) {
    first = std::stoull(seed);
    count = 1;
  }
  SimulationCounts sum;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SimulatedCluster cluster(seed);
    try {
      cluster.Run();
    } catch (const Error& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\nMENGER_SIMULATION_SEED=" << seed
             << " runs it again";
    }
    sum.events += cluster.counts().events;
    sum.values += cluster.counts().values;
    sum.errors += cluster.counts().errors;
    sum.deaths += cluster.counts().deaths;
    sum.node_deaths += cluster.counts().node_deaths;
    sum.drained += cluster.counts().drained;
    sum.groups += cluster.counts().groups;
    sum.removed += cluster.counts().removed;
    sum.loans += cluster.counts().loans;
    sum.guests += cluster.counts().guests;
    sum.rests += cluster.counts().rests;
    sum.away += cluster.counts().away;
    sum.asked += cluster.counts().asked;
    sum.inside += cluster.counts().inside;
    sum.remote += cluster.counts().remote;
    sum.fetched += cluster.counts().fetched;
    sum.spread += cluster.counts().spread;
    sum.given += cluster.counts().given;
    sum.called += cluster.counts().called;
    sum.brought += cluster.counts().brought;
    sum.packets += cluster.counts().packets;
    sum.partings += cluster.counts().partings;
    sum.rifts += cluster.counts().rifts;
    sum.fail_overs += cluster.counts().fail_overs;
    sum.fenced += cluster.counts().fenced;
    sum.node.submitted += cluster.counts().node.submitted;
    sum.node.retried += cluster.counts().node.retried;
    sum.node.rebuilt += cluster.counts().node.rebuilt;
    sum.node.replayed += cluster.counts().node.replayed;
    sum.node.checkpoints += cluster.counts().node.checkpoints;
    sum.node.actors_moved += cluster.counts().node.actors_moved;
    sum.node.bundles_moved += cluster.counts().node.bundles_moved;
    sum.states.Add(cluster.counts().states);
  }
  fmt::print(
      "{} schedules: {} events, {} calls, {} values and {} errors checked, {} workers died, {} "
      "calls run again, {} rebuilt, {} replayed, {} checkpoints\n",
      count, sum.events, sum.node.submitted, sum.values, sum.errors, sum.deaths, sum.node.retried,
      sum.node.rebuilt, sum.node.replayed, sum.node.checkpoints);
  fmt::print(
      "{} placement groups, {} of them removed, {} nodes asked for bundles, {} loans of workers, "
      "{} guests, {} rests, {} of them for actors, {} in groups, {} bundles placed anew, {} "
      "messages of theirs, {} "
      "values fetched, {} from "
      "third nodes, {} nodes died, {} of them fenced, {} drained with {} actors moved, {} packets "
      "lost, {} pairs parted, {} of them took each other for dead, {} "
      "fail-overs; {} references given to other drivers, {} calls of others' actors, {} values of "
      "theirs brought\n",
      sum.groups, sum.removed, sum.asked, sum.loans, sum.guests, sum.rests, sum.away, sum.inside,
      sum.node.bundles_moved, sum.remote, sum.fetched, sum.spread, sum.node_deaths, sum.fenced,
      sum.drained, sum.node.actors_moved, sum.packets, sum.partings, sum.rifts, sum.fail_overs,
      sum.given, sum.called, sum.brought);
  EXPECT_EQ(StateDifferences(sum.states, /*all=*/count >= kEverything), "");
  if (count == 1) return;
  // Each thing that can happen does.
  EXPECT_GT(sum.values, count);
  EXPECT_GT(sum.deaths, count / 10);
  EXPECT_GT(sum.node.rebuilt, 0);
  EXPECT_GT(sum.node.replayed, 0);
  EXPECT_GT(sum.groups, 0);
  EXPECT_GT(sum.removed, 0);
  EXPECT_GT(sum.loans, 0);
  EXPECT_GT(sum.guests, 0);
  EXPECT_GT(sum.rests, 0);
  EXPECT_GT(sum.away, 0);
  EXPECT_GT(sum.asked, 0);
  EXPECT_GT(sum.inside, 0);
  EXPECT_GT(sum.node.bundles_moved, 0);
  EXPECT_GT(sum.fetched, 0);
  EXPECT_GT(sum.spread, 0);
  EXPECT_GT(sum.given, 0);
  EXPECT_GT(sum.called, 0);
  EXPECT_GT(sum.brought, 0);
  EXPECT_GT(sum.node_deaths, 0);
  EXPECT_GT(sum.drained, 0);
  EXPECT_GT(sum.node.actors_moved, 0);
  EXPECT_GT(sum.packets, 0);
  EXPECT_GT(sum.partings, 0);
  EXPECT_GT(sum.rifts, 0);
  EXPECT_GT(sum.fail_overs, 0);
  EXPECT_GT(sum.fenced, 0);
}

TEST(SimulationTest, RandomSchedulesGiveWhatTheProgramSays) { RunSeeds(1, kSchedules); }

// MENGER_SIMULATION_SCHEDULES=n runs so many.
TEST(SimulationTest, SlowManySchedules) {
  const char* const schedules = std::getenv("MENGER_SIMULATION_SCHEDULES");
  RunSeeds(1'000'000, schedules != nullptr ? std::stoull(schedules) : 10'000);
}

}  // namespace
}  // namespace menger::simulation
