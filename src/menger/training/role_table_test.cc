#include "menger/training/role_table.h"

#include <gtest/gtest.h>

#include <string>

#include "menger/base/file_testing.h"
#include "menger/base/files.h"

namespace menger {
namespace {

using testing_files::Folder;

PipelineNews After(double seconds) {
  RoleStatus learner{.name = "learner", .done = static_cast<std::int64_t>(10 * seconds)};
  learner.working_seconds = 0.75 * seconds;
  learner.waiting_seconds = {{"items in replay", 0.05 * seconds},
                             {"steps to be collected", 0.2 * seconds}};
  RoleStatus collector{.name = "collector",
                       .done = static_cast<std::int64_t>(1000 * seconds),
                       .process = 7,
                       .restarts = 1};
  collector.working_seconds = 0.5 * seconds;
  return {.learner = learner, .collectors = {collector}};
}

TEST(RoleTableTest, ALineSaysHowARoleFaredSinceTheOneBefore) {
  const Folder folder;
  RoleTable table(folder / "roles.csv");
  table.Write(1'000, 2, After(2));
  table.Write(2'000, 4, After(4));
  const std::string header =
      "steps,seconds,role,process,done,done_per_second,working,waiting,waits_for,restarts\n";
  const std::string first =
      "1000,2.000,learner,0,20,10.0,0.750,0.250,steps to be collected,0\n"
      "1000,2.000,collector,7,2000,1000.0,0.500,0.000,,1\n";
  EXPECT_EQ(ReadFile(folder / "roles.csv"),
            header + first +
                "2000,4.000,learner,0,40,10.0,0.750,0.250,steps to be collected,0\n"
                "2000,4.000,collector,7,4000,1000.0,0.500,0.000,,1\n");
  RoleTable resumed(folder / "roles.csv");
  resumed.DropAfter(1'500, /*seconds=*/3);
  EXPECT_EQ(ReadFile(folder / "roles.csv"), header + first);
  resumed.DropAfter(0, 0);
  EXPECT_EQ(ReadFile(folder / "roles.csv"), header);
}

TEST(RoleTableTest, WhoWatchesIsToldTheSharesOfTheLastSecond) {
  BusyText busy;
  EXPECT_EQ(busy.Of(0.5, After(0.5)), "");
  EXPECT_EQ(busy.Of(2, After(2)), "busy: learner 75%, collector 50%");
  PipelineNews news = After(2.5);
  EXPECT_EQ(busy.Of(2.5, news), "busy: learner 75%, collector 50%");
  news.learner.working_seconds = 1.5;  // Nothing since.
  news.collectors.push_back(news.collectors[0]);
  EXPECT_EQ(busy.Of(4, news), "busy: learner 0%, collectors 38%");
}

}  // namespace
}  // namespace menger
