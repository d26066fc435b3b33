#include "menger/base/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Plain {
  int32_t a = 0;
  float b = 0;
};

// Written as bytes, these would save an address.
static_assert(ArchiveItem<Plain> && !ArchiveItem<int*> && !ArchiveItem<std::string_view> &&
              !ArchiveItem<std::span<float>> && !ArchiveItem<std::span<const float, 2>>);

class ArchiveTest : public testing::Test {
 protected:
  ArchiveTest() {
    std::string pattern = testing::TempDir() + "menger_archive_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/checkpoint";
  }
  ~ArchiveTest() override { std::filesystem::remove_all(folder_); }

  void WriteSmall(int32_t value) {
    ArchiveWriter writer(path_);
    writer.Write("value", value);
    ArchiveWriter scope = writer.Scope("network");
    scope.Write("weights", std::vector<float>{1, 2, 3});
    writer.Write("empty", std::string());
    writer.Commit();
  }

  static std::string TextOf(const std::function<void()>& function) {
    try {
      function();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  // Opens the archive and reads all of it.
  int32_t ReadSmall() {
    const ArchiveReader reader(path_);
    reader.Verify();
    return reader.Read<int32_t>("value");
  }

  static Error ErrorOf(const std::function<void()>& function) {
    try {
      function();
    } catch (const Error& error) {
      return error;
    }
    return Internal("nothing was thrown");
  }

  std::string folder_;
  std::string path_;
};

TEST_F(ArchiveTest, EveryKindOfEntryReadsAsItWasWritten) {
  ArchiveWriter writer(path_);
  writer.Write("plain", Plain{.a = 3, .b = 0.5f});
  writer.Write("flag", true);
  writer.Write("text", std::string("linear"));
  ArchiveWriter scope = writer.Scope("a").Scope("b");
  scope.Write("numbers", std::vector<int64_t>{1, -2, 3});
  const double values[] = {0.1, 0.2};
  scope.Write("values", std::span<const double>(values));
  writer.Commit();

  const ArchiveReader reader(path_ + "/");
  EXPECT_EQ(reader.Read<Plain>("plain").b, 0.5f);
  EXPECT_TRUE(reader.Read<bool>("flag"));
  EXPECT_EQ(reader.Read<std::string>("text"), "linear");
  const ArchiveReader inner = reader.Scope("a/b");
  EXPECT_THAT(inner.Read<std::vector<int64_t>>("numbers"), ElementsAre(1, -2, 3));
  double read[2];
  inner.Read("values", std::span<double>(read));
  EXPECT_THAT(read, ElementsAre(0.1, 0.2));
  EXPECT_THAT(inner.Names(), ElementsAre("numbers", "values"));
  EXPECT_TRUE(inner.Contains("values"));
  EXPECT_FALSE(reader.Contains("values"));
  EXPECT_EQ(reader.SizeOf("text"), 6u);
  EXPECT_EQ(reader.ReadBlob("flag").size(), 1u);
}

TEST_F(ArchiveTest, AnArchiveIsNotThereBeforeCommitAndGoesIfThereIsNone) {
  {
    ArchiveWriter writer(path_);
    writer.Write("value", 1);
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(ErrorOf([&] { ArchiveReader reader(path_); }).code(), ErrorCode::kNotFound);
}

TEST_F(ArchiveTest, ANewArchiveReplacesTheOldOneAndLeavesNothingBeside) {
  WriteSmall(1);
  WriteSmall(2);
  EXPECT_EQ(ReadSmall(), 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(ArchiveTest, AWrongNameOrSizeIsNamedWithFileAndEntry) {
  WriteSmall(1);
  ArchiveReader network = ArchiveReader(path_).Scope("network");
  Error error = ErrorOf([&] { network.Read<float>("weight"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr(path_));
  EXPECT_THAT(error.what(), HasSubstr("'network/weight' (did you mean 'network/weights'?)"));
  error = ErrorOf([&] {
    std::vector<float> five(5);
    network.Read("weights", std::span<float>(five));
  });
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.what(), HasSubstr("entry 'network/weights' has 12 bytes; 20 are expected"));
  error = ErrorOf([&] { network.Read<std::vector<double>>("weights"); });
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
}

TEST_F(ArchiveTest, BadNamesAndCallsOutOfOrderAreRefused) {
  ArchiveWriter writer(path_);
  writer.Write("x", 1);
  EXPECT_EQ(ErrorOf([&] { writer.Write("x", 1); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] { writer.Write("a b", 1); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] { writer.Write("", 1); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] { writer.Scope(""); }).code(), ErrorCode::kInvalidArgument);
  writer.Commit();
  EXPECT_EQ(ErrorOf([&] { writer.Commit(); }).code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(ErrorOf([&] { writer.Write("y", 1); }).code(), ErrorCode::kFailedPrecondition);
}

TEST_F(ArchiveTest, EveryAlteredByteIsDataLossThatNamesTheFile) {
  WriteSmall(1);
  for (const char* name : {"/manifest.json", "/data.bin"}) {
    const std::string file = path_ + name;
    const std::string whole = ReadFile(file);
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const int flip : {0x01, 0x20, 0xff}) {
        std::string altered = whole;
        altered[i] = static_cast<char>(altered[i] ^ flip);
        WriteFileAtomically(file, altered);
        const Error error = ErrorOf([&] { ReadSmall(); });
        ASSERT_EQ(error.code(), ErrorCode::kDataLoss) << name << " byte " << i << error.what();
        ASSERT_THAT(error.what(), HasSubstr(path_));
      }
    }
    WriteFileAtomically(file, whole);
  }
  EXPECT_EQ(ReadSmall(), 1);
}

TEST_F(ArchiveTest, EveryTruncationAndAdditionIsDataLoss) {
  WriteSmall(1);
  for (const char* name : {"/manifest.json", "/data.bin"}) {
    const std::string file = path_ + name;
    const std::string whole = ReadFile(file);
    for (size_t size = 0; size < whole.size(); ++size) {
      WriteFileAtomically(file, std::string_view(whole).substr(0, size));
      ASSERT_EQ(ErrorOf([&] { ReadSmall(); }).code(), ErrorCode::kDataLoss) << name << size;
    }
    WriteFileAtomically(file, whole + " ");
    EXPECT_EQ(ErrorOf([&] { ReadSmall(); }).code(), ErrorCode::kDataLoss);
    std::filesystem::remove(file);
    EXPECT_EQ(ErrorOf([&] { ReadSmall(); }).code(), ErrorCode::kDataLoss);
    WriteFileAtomically(file, whole);
  }
  EXPECT_EQ(ReadSmall(), 1);
}

TEST_F(ArchiveTest, AWriterKilledHalfwayLeavesTheOldArchiveWhole) {
  WriteSmall(1);
  const pid_t child = fork();
  if (child == 0) {
    ArchiveWriter writer(path_);
    writer.Write("value", int32_t{2});
    _exit(0);  // No destructor, no Commit: as after kill -9.
  }
  ASSERT_GT(child, 0);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(path_ + ".partial"));
  EXPECT_EQ(ReadSmall(), 1);
  WriteSmall(3);
  EXPECT_EQ(ReadSmall(), 3);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

TEST_F(ArchiveTest, AKillAtAnyMomentLeavesAWholeArchive) {
  WriteSmall(1);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int32_t value = 2; value < 10'000; ++value) WriteSmall(value);
      _exit(0);
    }
    ASSERT_GT(child, 0);
    usleep(500 + 700 * round);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_GE(ReadSmall(), 1);
  }
}

TEST_F(ArchiveTest, WhereNamesCannotBeExchangedTheArchiveBeforeIsFound) {
  WriteSmall(1);
  std::filesystem::rename(path_, path_ + ".previous");  // The state between the two renames.
  EXPECT_EQ(ReadSmall(), 1);
  WriteSmall(2);
  EXPECT_EQ(ReadSmall(), 2);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".previous"));
}

TEST_F(ArchiveTest, AFullDiskIsUnavailableAndLeavesTheOldArchiveWhole) {
  WriteSmall(1);
  const pid_t child = fork();
  if (child == 0) {
    // A bound on file sizes stands for the full disk: a write beyond it fails in part, then wholly.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    ArchiveWriter writer(path_);
    const std::vector<float> many(1000);
    const bool refused =
        ErrorOf([&] { writer.Write("many", many); }).code() == ErrorCode::kUnavailable;
    const bool no_commit =
        ErrorOf([&] { writer.Commit(); }).code() == ErrorCode::kFailedPrecondition;
    _exit(refused && no_commit ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadSmall(), 1);
}

TEST_F(ArchiveTest, APathThatCannotBeWrittenIsNamed) {
  WriteFileAtomically(folder_ + "/file", "x");
  const Error below_file = ErrorOf([&] { ArchiveWriter writer(folder_ + "/file/checkpoint"); });
  EXPECT_EQ(below_file.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(below_file.what(), HasSubstr(folder_ + "/file"));
  // Somebody's folder is never replaced by an archive.
  CreateFolders(folder_ + "/photographs");
  const Error not_ours = ErrorOf([&] { ArchiveWriter writer(folder_ + "/photographs"); });
  EXPECT_EQ(not_ours.code(), ErrorCode::kFailedPrecondition);
  if (geteuid() == 0) return;  // Root may write anywhere.
  std::filesystem::permissions(
      folder_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const Error forbidden = ErrorOf([&] { ArchiveWriter writer(path_); });
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  EXPECT_EQ(forbidden.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(forbidden.what(), HasSubstr(path_));
}

TEST_F(ArchiveTest, ARehearsalRefusesWhatAnArchiveRefusesAndLeavesNothing) {
  ArchiveWriter rehearsal = ArchiveWriter::Rehearsal(path_);
  ArchiveWriter scope = rehearsal.Scope("network");
  scope.Write("weights", 1);
  EXPECT_THAT(TextOf([&] { rehearsal.Write("network/weights", 2); }),
              HasSubstr("already has an entry 'network/weights'"));
  EXPECT_THAT(TextOf([&] { rehearsal.Scope("two words"); }), HasSubstr("must be made of"));
  EXPECT_THAT(TextOf([&] { rehearsal.Commit(); }), HasSubstr("is a rehearsal"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ArchiveTest, AReaderKnowsWhatNobodyHasRead) {
  WriteSmall(7);
  const ArchiveReader archive(path_);
  EXPECT_THAT(archive.Unread(), ElementsAre("empty", "network/weights", "value"));
  archive.Read<std::int32_t>("value");
  EXPECT_THAT(archive.Scope("network").Unread(), ElementsAre("weights"));
  archive.Scope("network").Read<std::vector<float>>("weights");
  EXPECT_THAT(archive.Unread(), ElementsAre("empty"));
}

}  // namespace
}  // namespace menger
