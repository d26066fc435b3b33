#include "menger/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "menger/base/error.h"

namespace menger {
namespace {

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string pattern = testing::TempDir() + "menger_files_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

  static ErrorCode CodeOf(const std::function<void()>& function) {
    try {
      function();
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::kInternal;
  }

  std::string folder_;
};

TEST_F(FilesTest, AFileReadsAsItWasWritten) {
  const std::string path = folder_ + "/a";
  const std::string text("x\0y\n", 4);
  WriteFileAtomically(path, text);
  EXPECT_EQ(ReadFile(path), text);
  WriteFileAtomically(path, "");
  EXPECT_EQ(ReadFile(path), "");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_F(FilesTest, WhatANewFileMustNotReplaceIsWrittenWhereItIs) {
  const std::string link = folder_ + "/link";
  WriteFileAtomically(folder_ + "/target", "old");
  std::filesystem::create_symlink("target", link);
  WriteFileAtomically(link, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(ReadFile(folder_ + "/target"), "new");

  const std::string full = folder_ + "/full";
  std::filesystem::create_symlink("/dev/full", full);  // Never the device itself: a fault costs it.
  EXPECT_EQ(CodeOf([&] { WriteFileAtomically(full, "x"); }), ErrorCode::kUnavailable);
  EXPECT_TRUE(std::filesystem::is_symlink(full));
}

TEST_F(FilesTest, FailuresNameThePathAndSayWhatCanBeDone) {
  EXPECT_EQ(CodeOf([&] { ReadFile(folder_ + "/none"); }), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf([&] { ReadFile(folder_); }), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf([&] { WriteFileAtomically(folder_ + "/none/a", "x"); }), ErrorCode::kNotFound);
  WriteFileAtomically(folder_ + "/file", "x");
  EXPECT_EQ(CodeOf([&] { CreateFolders(folder_ + "/file/below"); }),
            ErrorCode::kFailedPrecondition);
  try {
    ReadFile(folder_ + "/none");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(folder_ + "/none"));
  }
}

TEST_F(FilesTest, AFullDiskIsUnavailable) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const FileDescriptor file = CreateFile("/dev/full");
  const std::byte byte{1};
  EXPECT_EQ(CodeOf([&] { WriteAll(file, std::span(&byte, 1), "/dev/full"); }),
            ErrorCode::kUnavailable);
}

TEST_F(FilesTest, AFileThatEndsTooEarlyIsDataLoss) {
  const std::string path = folder_ + "/a";
  WriteFileAtomically(path, "abc");
  const FileDescriptor file = OpenForReading(path);
  std::byte bytes[4];
  EXPECT_EQ(CodeOf([&] { ReadAllAt(file, 0, bytes, path); }), ErrorCode::kDataLoss);
  ReadAllAt(file, 1, std::span(bytes, 2), path);
  EXPECT_EQ(bytes[0], std::byte{'b'});
}

TEST_F(FilesTest, FoldersAreMadeWithThoseAboveThem) {
  CreateFolders(folder_ + "/x/y");
  CreateFolders(folder_ + "/x/y");
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/x/y"));
  EXPECT_EQ(ParentFolder("a"), ".");
  EXPECT_EQ(ParentFolder("/a"), "/");
  EXPECT_EQ(ParentFolder("b/a/"), "b");
}

}  // namespace
}  // namespace menger
