#include "menger/runtime/cluster/describe_program.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "menger/base/build_identity.h"
#include "menger/runtime/cluster/program_testing.h"
#include "menger/runtime/cluster/working_folder.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> NamesOf(const std::vector<ProgramFile>& files) {
  std::vector<std::string> names;
  for (const ProgramFile& file : files) names.push_back(file.name);
  return names;
}

TEST(DescribeProgramTest, ThisProgramIsItsExecutable) {
  const ProgramManifest manifest = DescribeProgram({.memory_bytes_max = 5});
  EXPECT_EQ(manifest.version, ThisBuild().version);
  EXPECT_EQ(manifest.memory_bytes_max, 5U);
  EXPECT_EQ(manifest.folder, fs::current_path());
  EXPECT_EQ(manifest.folder_is, ProgramManifest::Folder::kIfThere);
  ASSERT_FALSE(manifest.files.empty());
  const ProgramFile& executable = manifest.files[0];
  EXPECT_EQ(executable.role, ProgramFile::Role::kExecutable);
  EXPECT_EQ(executable.path, fs::read_symlink("/proc/self/exe"));
  EXPECT_EQ(executable.content.bytes, fs::file_size("/proc/self/exe"));
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest)), manifest);
}

TEST(DescribeProgramTest, LibrariesAreThoseThatAreNotTheSystems) {
  void* const library = dlopen(MENGER_OPENED_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const std::vector<ProgramFile> files = DescribeProgram({}).files;
  dlclose(library);
  const std::string name = fs::path(MENGER_OPENED_LIBRARY).filename();
  const auto found = std::ranges::find(files, name, &ProgramFile::name);
  ASSERT_NE(found, files.end());
  EXPECT_EQ(found->role, ProgramFile::Role::kLibrary);
  EXPECT_EQ(found->path, MENGER_OPENED_LIBRARY);
  EXPECT_EQ(found->content, ReadContent(MENGER_OPENED_LIBRARY));
  for (const ProgramFile& file : files) EXPECT_FALSE(file.name.starts_with("libc.so")) << file.path;
}

TEST(DescribeProgramTest, AnotherProgramIsItsFolder) {
  Folder folder;
  const WorkerProgram program = ScriptIn(folder);
  const ProgramManifest manifest = DescribeProgram(program);
  EXPECT_EQ(manifest.arguments, program.arguments);
  EXPECT_EQ(manifest.variables, program.variables);
  EXPECT_EQ(manifest.folder, folder.path());
  EXPECT_EQ(manifest.folder_is, ProgramManifest::Folder::kShipped);
  EXPECT_THAT(NamesOf(manifest.files), ElementsAre("data/word.txt", "say.sh"));
  EXPECT_EQ(manifest.files[0].content, ReadContent(folder / "data/word.txt"));
  EXPECT_EQ(manifest.files[0].path, folder / "data/word.txt");
}

TEST(DescribeProgramTest, AFolderThatIsTooLargeIsNeededAndTheReasonSaid) {
  Folder folder;
  WriteText(folder / "small", "x");
  fs::create_directories(folder / "data");
  std::ofstream(folder / "data/large").close();
  fs::resize_file(folder / "data/large", std::uintmax_t{65} << 20);
  const ProgramManifest manifest =
      DescribeProgram({.arguments = {"python3"}, .folder = folder.path()});
  EXPECT_EQ(manifest.folder_is, ProgramManifest::Folder::kNeeded);
  EXPECT_THAT(manifest.files, IsEmpty());
  EXPECT_THAT(manifest.unshipped, HasSubstr("67108864 bytes"));
}

TEST(WorkingFolderTest, WhatIsMadeByToolsIsLeftOut) {
  Folder folder;
  for (const char* const name :
       {".git/config", ".venv/lib/a.py", "a/__pycache__/a.pyc", "web/node_modules/x/index.js",
        "build/program", "environment/pyvenv.cfg", "environment/lib/b.py", "kept.py", ".hidden",
        "a/build/rules.py"}) {
    WriteText(folder / name, "x");
  }
  EXPECT_THAT(NamesOf(ListWorkingFolder(folder.path())),
              ElementsAre(".hidden", "a/build/rules.py", "kept.py"));
}

TEST(WorkingFolderTest, LinksAreFollowedInsideTheFolder) {
  Folder folder;
  Folder other;
  WriteText(folder / "a/one", "1");
  WriteText(other / "two", "22");
  fs::create_symlink("a/one", folder / "to_one");
  fs::create_directory_symlink("a", folder / "to_a");
  fs::create_directory_symlink("..", folder / "a/up");
  fs::create_directory_symlink(".", folder / "a/same");
  fs::create_symlink(other / "two", folder / "to_two");
  fs::create_directory_symlink(other.path(), folder / "to_other");
  fs::create_symlink("nothing", folder / "to_nothing");
  const std::vector<ProgramFile> files = ListWorkingFolder(folder.path());
  EXPECT_THAT(NamesOf(files), ElementsAre("a/one", "to_a/one", "to_one"));
  for (const ProgramFile& file : files) EXPECT_EQ(file.content.bytes, 1U);
}

TEST(WorkingFolderTest, EachLimitIsNamed) {
  Folder folder;
  for (const char* const name : {"a", "b", "c/d"}) WriteText(folder / name, "four");
  EXPECT_THAT(ListWorkingFolder(folder.path(), {.bytes = 12, .files = 3, .looked_at = 4}),
              SizeIs(3));
  const auto refusal = [&](const WorkingFolderLimits& limits) {
    return ErrorText(ErrorCode::kFailedPrecondition,
                     [&] { ListWorkingFolder(folder.path(), limits); });
  };
  EXPECT_THAT(refusal({.bytes = 11}), HasSubstr("more than 11 bytes"));
  EXPECT_THAT(refusal({.files = 2}), HasSubstr("more than 2 files"));
  EXPECT_THAT(refusal({.looked_at = 3}), HasSubstr("more than 3 files and folders"));
}

TEST(WorkingFolderTest, AFolderThatIsNotThereIsSaid) {
  Folder folder;
  EXPECT_THAT(
      ErrorText(ErrorCode::kFailedPrecondition, [&] { ListWorkingFolder(folder / "none"); }),
      HasSubstr("none' is not shipped"));
}

}  // namespace
}  // namespace menger
