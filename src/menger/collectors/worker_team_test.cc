#include "menger/collectors/worker_team.h"

#include <gtest/gtest.h>

#include <thread>

#include "menger/base/error.h"

namespace menger {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

// A team whose second worker's job takes so long.
void HangFor(std::chrono::milliseconds time, std::chrono::milliseconds grace) {
  WorkerTeam team({.first_worker = 0, .workers = 2, .patience = 20ms, .grace = grace},
                  [time](int worker, int /*round*/) {
                    if (worker == 1) std::this_thread::sleep_for(time);
                  });
  team.BeginSlab();
  team.StartRound();
  EXPECT_THROW(team.WaitFor(1), Error);
}

TEST(WorkerTeamDeathTest, AWorkerThatNeverComesBackEndsTheProcessAndIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // No threads of other tests in the child.
  EXPECT_EXIT(HangFor(/*time=*/1h, /*grace=*/20ms), testing::ExitedWithCode(1),
              "'collect-1' still hangs");
}

TEST(WorkerTeamTest, AWorkerThatComesBackInTimeIsJoined) { HangFor(/*time=*/100ms, /*grace=*/1h); }

}  // namespace
}  // namespace menger
