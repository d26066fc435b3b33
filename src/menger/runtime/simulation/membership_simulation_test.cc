#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "menger/base/error.h"
#include "menger/runtime/simulation/membership_world.h"

namespace menger::simulation {
namespace {

// Under a sanitizer each takes ten times as long.
const std::uint64_t kSchedules = *MENGER_SANITIZER == '\0' ? 10'000 : 500;

// MENGER_SIMULATION_SEED=n runs that schedule alone, MENGER_SIMULATION_SCHEDULES=n so many.
TEST(MembershipSimulationTest, LivesKnowOfEachOtherAndNobodyIsBuriedAlive) {
  std::uint64_t first = 1;
  std::uint64_t count = kSchedules;
  if (const char* const seed = std::getenv("MENGER_SIMULATION_SEED")) {
    first = std::stoull(seed);
    count = 1;
  } else if (const char* const schedules = std::getenv("MENGER_SIMULATION_SCHEDULES")) {
    count = std::stoull(schedules);
  }
  MembershipCounts sum;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    MembershipWorld world(seed);
    try {
      world.Run();
    } catch (const Error& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\nMENGER_SIMULATION_SEED=" << seed
             << " runs it again";
    }
    sum.lives += world.counts().lives;
    sum.members += world.counts().members;
    sum.met += world.counts().met;
    sum.draining += world.counts().draining;
    sum.died += world.counts().died;
    sum.left += world.counts().left;
    sum.fenced += world.counts().fenced;
    sum.names_taken += world.counts().names_taken;
    sum.doubled_names += world.counts().doubled_names;
    sum.fail_overs += world.counts().fail_overs;
    sum.leases_again += world.counts().leases_again;
  }
  fmt::print(
      "{} schedules: {} lives, {} members, {} met, {} seen draining, {} said to be dead, {} left, "
      "{} fenced, {} lost their name, {} moments of doubled names, {} fail-overs, {} leases taken "
      "again\n",
      count, sum.lives, sum.members, sum.met, sum.draining, sum.died, sum.left, sum.fenced,
      sum.names_taken, sum.doubled_names, sum.fail_overs, sum.leases_again);
  if (count == 1) return;
  // Each thing that can happen does.
  EXPECT_GT(sum.members, count);
  EXPECT_GT(sum.met, count);
  EXPECT_GT(sum.draining, 0);
  EXPECT_GT(sum.died, count / 2);
  EXPECT_GT(sum.left, 0);
  EXPECT_GT(sum.fenced, count / 10);
  EXPECT_GT(sum.names_taken, 0);
  EXPECT_GT(sum.doubled_names, 0);
  EXPECT_GT(sum.fail_overs, count / 2);
  EXPECT_GT(sum.leases_again, count / 10);
}

}  // namespace
}  // namespace menger::simulation
