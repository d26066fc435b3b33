#include "menger/training/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "menger/base/error.h"
#include "menger/base/file_testing.h"
#include "menger/base/files.h"
#include "menger/training/run_folder.h"

namespace menger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_files::ErrorText;
using testing_files::Folder;

constexpr const char* kExperiment =
    "# The resolved configuration of this run.\n"
    "environment = \"CartPole-v1\"  # from the recipe\n"
    "algorithm = \"ppo\"  # from the recipe\n"
    "steps = 5000  # from --set\n"
    "seed = 3  # from --seeds\n"
    "device = \"cpu\"\n"
    "\n[network]\n"
    "hidden = [64, 64]  # from the recipe\n"
    "activation = \"relu\"  # from --set\n";

void MakeRun(const std::string& path) {
  std::filesystem::create_directories(path);
  WriteFileAtomically(path + "/experiment.toml", kExperiment);
}

TEST(RunTableTest, ARunSaysHowFarItIsHowWellItDoesAndWhatWasChanged) {
  const Folder folder;
  MakeRun(folder / "run");
  WriteFileAtomically(folder / "run/progress.csv",
                      "steps,seconds,episode_return_mean,evaluation_return_mean\n"
                      "1000,1.5,,20\n"
                      "2000,2.5,17.25,80.5\n"
                      "3000,3.5,33,60\n"
                      "4000,4.5,,\n"
                      "5000,5");  // Half a row.
  RunRow row = DescribeRun(folder / "run");
  EXPECT_EQ(row.environment, "CartPole-v1");
  EXPECT_EQ(row.algorithm, "ppo");
  EXPECT_EQ(row.state, "unfinished");
  EXPECT_EQ(row.steps, 4000);
  EXPECT_EQ(row.steps_planned, 5000);
  EXPECT_EQ(row.last_return, 33);
  EXPECT_EQ(row.best_return, 80.5);
  EXPECT_THAT(row.changed, ElementsAre("steps=5000", "seed=3", "network.activation=relu"));
  WriteFileAtomically(folder / "run/summary.json",
                      R"({"status": "interrupted", "steps": 5000, "best": {"return_mean": 90}})");
  row = DescribeRun(folder / "run");
  EXPECT_EQ(row.state, "interrupted");
  EXPECT_EQ(row.best_return, 90);
}

TEST(RunTableTest, ARunThatHasReportedNothingIsInTheTable) {
  const Folder folder;
  MakeRun(folder / "run");
  const RunRow row = DescribeRun(folder / "run");
  EXPECT_EQ(row.steps, 0);
  EXPECT_FALSE(row.best_return);
  EXPECT_FALSE(row.last_return);
}

TEST(RunTableTest, RunsAreFoundBelowAndSortedByNumber) {
  const Folder folder;
  for (const char* const name : {"b-10", "b-2", "a-1/seed-7", "a-1/seed-10", "b-2/inner"}) {
    MakeRun(folder / name);
  }
  std::filesystem::create_directories(folder / "empty");
  MakeRun(folder / "broken");
  WriteFileAtomically(folder / "broken/experiment.toml", "nothing\n");
  std::vector<std::string> paths;
  for (const RunRow& row : RunsIn(folder.path() + "/")) {
    paths.push_back(std::filesystem::path(row.path).lexically_relative(folder.path()).string());
  }
  EXPECT_THAT(paths, ElementsAre("a-1/seed-7", "a-1/seed-10", "b-2", "b-10"));
  EXPECT_EQ(RunsIn(folder / "b-2").size(), 1);
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [&] { RunsIn(folder / "nowhere"); }),
              HasSubstr("there is no folder"));
}

TEST(RunTableTest, ARunIsRunningWhileAProcessHasItsLock) {
  const Folder folder;
  MakeRun(folder / "run");
  {
    const FileDescriptor lock = RunFolder::Open(folder / "run").Lock();
    EXPECT_EQ(RunsIn(folder.path()).at(0).state, "running");
  }
  EXPECT_EQ(RunsIn(folder.path()).at(0).state, "unfinished");
}

}  // namespace
}  // namespace menger
