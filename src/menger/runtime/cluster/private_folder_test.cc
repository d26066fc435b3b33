#include "menger/runtime/cluster/private_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "menger/runtime/cluster/program_testing.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

std::size_t FoldersIn(const CacheFolder& below) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(below.path())) {
    count += entry.path().filename().string().starts_with("kept-") ? 1 : 0;
  }
  return count;
}

TEST(PrivateFolderTest, IsThereAsLongAsItIsWanted) {
  Folder folder;
  const CacheFolder below(folder / "cache");
  std::string path;
  {
    const PrivateFolder files(below);
    path = files.folder().path();
    const PrivateFolder others(below);
    EXPECT_TRUE(fs::exists(path));
    EXPECT_NE(path, others.folder().path());
    EXPECT_EQ(FoldersIn(below), 2U);
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(FoldersIn(below), 0U);
}

TEST(PrivateFolderTest, WhatIsLeftOfOneThatWasKilledGoes) {
  Folder folder;
  const CacheFolder below(folder / "cache");
  const CacheFolder left(below.path() + "/kept-left");
  const PrivateFolder files(below);
  EXPECT_FALSE(fs::exists(left.path()));
  EXPECT_TRUE(fs::exists(files.folder().path()));
}

// One was removed between being made and being locked: its owner waited for minutes.
TEST(PrivateFolderTest, ManyAreMadeAtOnce) {
  Folder folder;
  const CacheFolder below(folder / "cache");
  std::vector<int> gone(6);
  {
    std::vector<std::jthread> threads;
    for (int& each : gone) {
      threads.emplace_back([&below, &each] {
        for (int i = 0; i < 100; ++i) {
          const PrivateFolder files(below);
          each += fs::exists(files.folder().path() + "/lock") ? 0 : 1;
        }
      });
    }
  }
  EXPECT_EQ(gone, std::vector<int>(6));
  EXPECT_EQ(FoldersIn(below), 0U);
}

}  // namespace
}  // namespace menger
