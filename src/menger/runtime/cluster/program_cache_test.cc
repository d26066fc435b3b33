#include "menger/runtime/cluster/program_cache.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <thread>

#include "menger/base/build_identity.h"
#include "menger/runtime/cluster/program_testing.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// One that uses nothing in place.
ProgramCache CacheIn(const Folder& folder, std::uint64_t bytes_max = 1 << 30) {
  return ProgramCache({.folder = folder / "cache", .bytes_max = bytes_max, .in_place = false});
}

// Of `bytes` bytes in a folder.
ProgramManifest ProgramOf(const Folder& folder, char letter, std::size_t bytes) {
  const std::string own = folder / std::string(1, letter);
  WriteText(own + "/" + letter, std::string(bytes, letter));
  return DescribeProgram({.arguments = {"sh"}, .folder = own});
}

// A program of the fake worker's file, with a change.
ProgramManifest ChangedWorker(const Folder& folder,
                              const std::function<void(std::string&)>& change) {
  std::string bytes = ReadFile(FAKE_WORKER);
  change(bytes);
  WriteText(folder / "worker", bytes);
  fs::permissions(folder / "worker", fs::perms(0755));
  ProgramManifest manifest{.version = ThisBuild().version};
  manifest.files = {{.path = folder / "worker", .mode = 0755}};
  manifest.files[0].content = ReadContent(folder / "worker");
  return manifest;
}

TEST(ProgramCacheTest, WhatIsInPlaceIsUsedWhereItLies) {
  Folder folder;
  const WorkerProgram program = ScriptIn(folder);
  const ProgramCache cache({.folder = folder / "cache"});
  LocalSource source;
  const ReadyProgram ready = cache.Prepare(DescribeProgram(program), source.Get(), SoonEnough());
  EXPECT_EQ(ready.program, program);
  EXPECT_THAT(ready.holds, IsEmpty());
  const ReadyProgram own = cache.Prepare(DescribeProgram({}), source.Get(), SoonEnough());
  EXPECT_THAT(own.program.arguments, ElementsAre(fs::read_symlink("/proc/self/exe").string()));
  EXPECT_EQ(own.program.folder, fs::current_path());
  EXPECT_THAT(source.asked, IsEmpty());
  ProgramManifest kept = DescribeProgram(program);
  kept.copied = true;
  const ReadyProgram copied = cache.Prepare(kept, source.Get(), SoonEnough());
  EXPECT_THAT(copied.program.folder, StartsWith(folder / "cache"));
}

TEST(ProgramCacheTest, WhatIsNotInPlaceIsCopiedOnceForAll) {
  Folder folder;
  const ProgramManifest manifest = DescribeProgram(ScriptIn(folder));
  LocalSource source;
  const ReadyProgram first = CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough());
  EXPECT_THAT(first.program.folder, StartsWith(folder / "cache/programs/"));
  EXPECT_THAT(first.program.arguments, ElementsAre("/bin/sh", first.program.folder + "/say.sh"));
  EXPECT_EQ(first.program.variables[0].second,
            first.program.folder + "/data:" + (folder / "none") + ":x");
  EXPECT_THAT(source.asked, ElementsAre("data/word.txt", "say.sh"));
  ProgramManifest other = manifest;
  other.variables[0].second = "another";
  const ReadyProgram second = CacheIn(folder).Prepare(other, source.Get(), SoonEnough());
  EXPECT_EQ(second.program.folder, first.program.folder);
  EXPECT_EQ(source.asked.size(), 2U);
  struct stat status {};
  ASSERT_EQ(stat((folder / "cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST(ProgramCacheTest, AWorkerProgramIsCopiedAndRuns) {
  Folder folder;
  const ProgramManifest manifest = ChangedWorker(folder, [](std::string&) {});
  ProgramManifest elsewhere = manifest;
  elsewhere.files[0].path = "/nowhere/worker";
  const ProgramCache cache({.folder = folder / "cache"});
  const ProgramSource source = [&](const ProgramFile&, const TakeBytes& take) {
    const std::string bytes = ReadFile(folder / "worker");
    take(std::as_bytes(std::span(bytes)));
  };
  const ReadyProgram ready = cache.Prepare(elsewhere, source, SoonEnough());
  EXPECT_THAT(ready.program.arguments[0], StartsWith(folder / "cache/programs/"));
  EXPECT_THAT(
      LinesOfRun({.arguments = ready.program.arguments, .variables = {{"MENGER_WORKER", "x"}}}),
      testing::Contains(HasSubstr("MENGER_WORKER is 'x'")));
}

TEST(ProgramCacheTest, WhatGrowsInAFolderIsLeftOutAndWhatEndsTooEarlyIsDataLoss) {
  Folder folder;
  const ProgramManifest manifest = DescribeProgram(ScriptIn(folder));
  LocalSource source;
  for (const char* const text : {"", "grey\n", "green"}) {
    WriteText(folder / "data/word.txt", text);
    EXPECT_THAT(ErrorText(ErrorCode::kDataLoss,
                          [&] { CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough()); }),
                HasSubstr("data/word.txt'"));
  }
  EXPECT_TRUE(fs::is_empty(folder / "cache/programs"));
  WriteText(folder / "data/word.txt", "green\n\n");
  const ReadyProgram ready = CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough());
  EXPECT_TRUE(fs::exists(ready.program.folder + "/say.sh"));
  EXPECT_FALSE(fs::exists(ready.program.folder + "/data/word.txt"));
}

TEST(ProgramCacheTest, AnExecutableOfAnotherContentIsDataLoss) {
  Folder folder;
  WriteText(folder / "tool", "what it was");
  ProgramManifest manifest = DescribeProgram({});
  std::erase_if(manifest.files, [](const ProgramFile& file) {
    return file.role != ProgramFile::Role::kExecutable;
  });
  manifest.files.front().content = ReadContent(folder / "tool");
  const ProgramSource source = [](const ProgramFile&, const TakeBytes& take) {
    take(std::as_bytes(std::span(std::string_view("what it is!"))));
  };
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss,
                        [&] { CacheIn(folder).Prepare(manifest, source, SoonEnough()); }),
              HasSubstr(manifest.files.front().path));
  EXPECT_TRUE(fs::is_empty(folder / "cache/programs"));
  EXPECT_TRUE(fs::is_empty(folder / "cache/files"));
}

TEST(ProgramCacheTest, WhatWorkersChangedIsMadeAnew) {
  Folder folder;
  const ProgramManifest manifest = DescribeProgram(ScriptIn(folder));
  LocalSource source;
  const auto prepare = [&] {
    return CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough());
  };
  std::string first_folder;
  {
    const ReadyProgram first = prepare();
    first_folder = first.program.folder;
    WriteText(first_folder + "/data/word.txt", "grey\n");
    const ReadyProgram second = prepare();  // The first may still run.
    EXPECT_NE(second.program.folder, first_folder);
    EXPECT_EQ(ReadFile(second.program.folder + "/data/word.txt"), "green\n");
  }
  EXPECT_EQ(prepare().program.folder, first_folder);
  EXPECT_EQ(ReadFile(first_folder + "/data/word.txt"), "green\n");
  EXPECT_EQ(source.asked.size(), 2U);
}

TEST(ProgramCacheTest, DamagedFilesOfTheCacheAreFetchedAgain) {
  Folder folder;
  const ProgramManifest manifest = DescribeProgram(ScriptIn(folder));
  LocalSource source;
  CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough());
  for (const auto& file : fs::directory_iterator(folder / "cache/files")) {
    testing_files::FlipBit(file.path(), 0, 3);
  }
  fs::remove_all(folder / "cache/programs");
  const ReadyProgram ready = CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough());
  EXPECT_EQ(ReadFile(ready.program.folder + "/data/word.txt"), "green\n");
  EXPECT_EQ(source.asked.size(), 4U);
}

TEST(ProgramCacheTest, ManyPrepareAtOnce) {
  Folder folder;
  const ProgramManifest manifest = DescribeProgram(ScriptIn(folder));
  std::vector<std::string> folders(8);
  {
    std::vector<std::jthread> threads;
    for (std::string& made : folders) {
      threads.emplace_back([&] {
        LocalSource source;
        const ReadyProgram ready = CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough());
        made = ready.program.folder;
        EXPECT_EQ(LinesOfRun(ready.program)[0], "green");
      });
    }
  }
  EXPECT_EQ(folders, std::vector(folders.size(), folders[0]));
  for (const auto& entry : fs::recursive_directory_iterator(folder / "cache")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".new")) << entry.path();
  }
}

TEST(ProgramCacheTest, WhatNobodyHoldsGoesOldestFirst) {
  constexpr std::size_t kBytes = 100'000;
  Folder folder;
  const ProgramCache cache = CacheIn(folder, 3 * kBytes + kBytes / 2);
  LocalSource source;
  const auto prepare = [&](char letter) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // Times of files are coarse.
    return cache.Prepare(ProgramOf(folder, letter, kBytes), source.Get(), SoonEnough());
  };
  const ReadyProgram held = prepare('a');
  const std::string b = prepare('b').program.folder;
  const std::string c = prepare('c').program.folder;
  prepare('b');
  const std::string d = prepare('d').program.folder;
  EXPECT_TRUE(fs::exists(held.program.folder));
  EXPECT_TRUE(fs::exists(b));
  EXPECT_FALSE(fs::exists(c));
  EXPECT_TRUE(fs::exists(d));
}

TEST(ProgramCacheTest, WhatWasLeftHalfMadeGoes) {
  Folder folder;
  LocalSource source;
  CacheIn(folder);
  WriteText(folder / "cache/files/.new-abcdef", "x");
  WriteText(folder / "cache/programs/.new-abcdef/lib/x", "x");
  CacheIn(folder).Prepare(ProgramOf(folder, 'a', 5), source.Get(), SoonEnough());
  EXPECT_FALSE(fs::exists(folder / "cache/files/.new-abcdef"));
  EXPECT_FALSE(fs::exists(folder / "cache/programs/.new-abcdef"));
}

TEST(ProgramCacheTest, AProgramLargerThanTheCacheIsRefused) {
  Folder folder;
  LocalSource source;
  ProgramManifest manifest = ProgramOf(folder, 'a', 1001);
  EXPECT_THAT(
      ErrorText(ErrorCode::kFailedPrecondition,
                [&] { CacheIn(folder, 1000).Prepare(manifest, source.Get(), SoonEnough()); }),
      HasSubstr("larger than the 1000 bytes"));
  manifest.files.assign(3, manifest.files[0]);
  for (ProgramFile& file : manifest.files) file.content.bytes = ~0ULL >> 1;
  EXPECT_THAT(
      ErrorText(ErrorCode::kFailedPrecondition,
                [&] { CacheIn(folder, ~0ULL).Prepare(manifest, source.Get(), SoonEnough()); }),
      HasSubstr("larger than"));
}

TEST(ProgramCacheTest, AFolderThatShouldBeHereIsNamedWithTheReason) {
  Folder folder;
  LocalSource source;
  ProgramManifest manifest{.version = ThisBuild().version,
                           .arguments = {"sh"},
                           .folder = folder / "none",
                           .folder_is = ProgramManifest::Folder::kNeeded,
                           .unshipped = "it has more than 2000 files"};
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] { CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough()); }),
              testing::AllOf(HasSubstr(folder / "none"), HasSubstr("2000 files")));
  fs::create_directory(folder / "none");
  EXPECT_EQ(CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough()).program.folder,
            folder / "none");
}

TEST(ProgramCacheTest, AnotherVersionIsRefused) {
  Folder folder;
  LocalSource source;
  ProgramManifest manifest = ProgramOf(folder, 'a', 1);
  manifest.version = "99.7.1";
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] { CacheIn(folder).Prepare(manifest, source.Get(), SoonEnough()); }),
              HasSubstr("99.7.1"));
}

TEST(ProgramCacheTest, LibrariesThatAreMissingAreNamed) {
  Folder folder;
  LocalSource source;
  const ProgramManifest manifest = ChangedWorker(folder, [](std::string& bytes) {
    const std::size_t at = bytes.find("libxxhash.so");
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, 9, "libnothas");
  });
  const ProgramCache cache({.folder = folder / "cache"});
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] { cache.Prepare(manifest, source.Get(), SoonEnough()); }),
              HasSubstr("libnothas"));
}

TEST(ProgramCacheTest, AProgramOfAnotherKindOfMachineIsRefused) {
  Folder folder;
  LocalSource source;
  const ProgramManifest manifest = ChangedWorker(folder, [](std::string& bytes) {
    bytes[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_S390);
  });
  const ProgramCache cache({.folder = folder / "cache"});
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] { cache.Prepare(manifest, source.Get(), SoonEnough()); }),
              HasSubstr("machines of kind 22 "));
}

TEST(ProgramCacheTest, TheFolderIsWhereTheEnvironmentKeepsSuchThings) {
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before != nullptr ? before : "";
  setenv("XDG_CACHE_HOME", "/there", 1);
  EXPECT_EQ(DefaultProgramCacheFolder(), "/there/menger/programs");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_THAT(DefaultProgramCacheFolder(), testing::EndsWith("/.cache/menger/programs"));
  if (before != nullptr) {
    setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  } else {
    unsetenv("XDG_CACHE_HOME");
  }
}

}  // namespace
}  // namespace menger
