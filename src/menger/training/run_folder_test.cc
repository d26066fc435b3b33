#include "menger/training/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(root_); }
  void TearDown() override { fs::remove_all(root_); }

  RunFolder MakeRun(const std::vector<int>& checkpoints) {
    RunFolder folder = RunFolder::Create(root_ + "/run");
    WriteFileAtomically(folder.file("experiment.toml"), "");
    for (const int steps : checkpoints) {
      ArchiveWriter archive(folder.checkpoint(steps));
      archive.Write("steps", steps);
      archive.Commit();
    }
    return folder;
  }

  const std::string root_ = testing::TempDir() + "run_folder_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(RunFolderTest, NumberedFoldersNeverMeet) {
  EXPECT_EQ(MakeNumberedFolder(root_, "cartpole"), root_ + "/cartpole-1");
  EXPECT_EQ(MakeNumberedFolder(root_, "cartpole"), root_ + "/cartpole-2");
  EXPECT_EQ(MakeNumberedFolder(root_, "acrobot"), root_ + "/acrobot-1");
}

TEST_F(RunFolderTest, AFolderThatHoldsARunIsNotTakenAgain) {
  MakeRun({});
  EXPECT_THROW(RunFolder::Create(root_ + "/run"), Error);
}

TEST_F(RunFolderTest, OnlyTheNewestCheckpointsStayBesideTheBest) {
  const RunFolder folder = MakeRun({9, 10, 100});
  fs::create_directory(folder.checkpoint("best"));
  folder.Prune(/*keep=*/2, /*newest=*/100);
  EXPECT_THAT(folder.Checkpoints(), testing::ElementsAre(10, 100));
  EXPECT_TRUE(folder.Contains("checkpoints/best"));
}

TEST_F(RunFolderTest, ARunThatGoesOnFromBeforeADamagedCheckpointKeepsWhatItSaves) {
  const RunFolder folder = MakeRun({9, 10, 100});
  folder.Prune(/*keep=*/1, /*newest=*/10);
  EXPECT_THAT(folder.Checkpoints(), testing::ElementsAre(10, 100));
}

TEST_F(RunFolderTest, WhatAWriterKilledBetweenTwoRenamesLeftIsACheckpointStill) {
  const RunFolder folder = MakeRun({9, 10});
  fs::rename(folder.checkpoint(10), folder.checkpoint(10) + ".previous");
  EXPECT_THAT(folder.Checkpoints(), testing::ElementsAre(9, 10));
  EXPECT_EQ(folder.NewestWholeCheckpoint().Read<int>("steps"), 10);
  EXPECT_TRUE(folder.ContainsCheckpoint("10"));
  EXPECT_FALSE(folder.ContainsCheckpoint("11"));
}

TEST_F(RunFolderTest, ACheckpointBesideItsPreviousOneCountsOnceAndGoesWithIt) {
  const RunFolder folder = MakeRun({9, 10});
  fs::copy(folder.checkpoint(9), folder.checkpoint(9) + ".previous");
  EXPECT_THAT(folder.Checkpoints(), testing::ElementsAre(9, 10));
  folder.Prune(/*keep=*/1, /*newest=*/10);
  EXPECT_THAT(folder.Checkpoints(), testing::ElementsAre(10));
}

TEST_F(RunFolderTest, ADamagedCheckpointIsPassedOverAloud) {
  const RunFolder folder = MakeRun({9, 10});
  fs::resize_file(folder.checkpoint(10) + "/data.bin", 2);
  testing::internal::CaptureStderr();
  EXPECT_EQ(folder.NewestWholeCheckpoint().Read<int>("steps"), 9);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("checkpoints/10' cannot be used"));
}

TEST_F(RunFolderTest, WithoutAWholeCheckpointTheDamagedFileIsNamed) {
  const RunFolder folder = MakeRun({10});
  fs::resize_file(folder.checkpoint(10) + "/data.bin", 2);
  try {
    folder.NewestWholeCheckpoint();
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.what(), testing::HasSubstr("checkpoints/10/data.bin"));
  }
}

TEST_F(RunFolderTest, ARunWithoutCheckpointsSaysSo) {
  const RunFolder run = MakeRun({});
  const auto refusal = [&run] {
    try {
      run.NewestWholeCheckpoint();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(), testing::HasSubstr("the run ended before the first one; remove it"));
  const FileDescriptor lock = run.Lock();
  EXPECT_THAT(refusal(), testing::HasSubstr("it is being trained now, and will have one soon"));
}

TEST_F(RunFolderTest, WithoutOthersTheBestIsTheNewest) {
  const RunFolder run = MakeRun({});
  ArchiveWriter archive(run.checkpoint("best"));
  archive.Write("steps", 1);
  archive.Commit();
  EXPECT_EQ(run.NewestWholeCheckpoint().path(), run.checkpoint("best"));
}

TEST_F(RunFolderTest, OneProcessAtATimeTrainsInIt) {
  const RunFolder run = MakeRun({});
  EXPECT_FALSE(IsTrainedNow(run.path()));
  {
    const FileDescriptor lock = run.Lock();
    EXPECT_TRUE(IsTrainedNow(run.path()));
    EXPECT_THROW(run.Lock(), Error);
  }
  EXPECT_FALSE(IsTrainedNow(run.path()));
  const FileDescriptor again = run.Lock();
}

TEST_F(RunFolderTest, WhatAKilledRemovalLeftIsCleanedUpOnOpening) {
  const RunFolder folder = MakeRun({10});
  fs::create_directory(folder.checkpoint("9.removing"));
  RunFolder::Open(root_ + "/run/");
  EXPECT_FALSE(folder.Contains("checkpoints/9.removing"));
  EXPECT_TRUE(folder.Contains("checkpoints/10"));
}

}  // namespace
}  // namespace menger
