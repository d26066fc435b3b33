#include "menger/base/memory_need.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "menger/base/file_testing.h"

namespace menger {
namespace {

template <typename Function>
std::string TextOf(Function function) {
  try {
    WithMemoryFor([] { return std::string("replay (replay.capacity = 7)"); }, function);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    return error.what();
  }
  return "";
}

TEST(MemoryNeedTest, WhatMemoryEndedForIsNamed) {
  EXPECT_EQ(TextOf([] { throw std::bad_alloc(); }),
            "out of memory for replay (replay.capacity = 7)");
  EXPECT_EQ(TextOf([] { std::vector<double>().reserve(std::numeric_limits<std::size_t>::max()); }),
            "out of memory for replay (replay.capacity = 7)");
  EXPECT_EQ(TextOf([] { throw OutOfMemory("cannot map 9 bytes"); }),
            "out of memory for replay (replay.capacity = 7): cannot map 9 bytes");
}

TEST(MemoryNeedTest, OtherErrorsAndResultsPass) {
  EXPECT_EQ(TextOf([] { throw Unavailable("the disk is full"); }), "the disk is full");
  EXPECT_EQ(WithMemoryFor([] { return "nothing"; }, [] { return 3; }), 3);
  int value = 0;
  int& same = WithMemoryFor([] { return "nothing"; }, [&value]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
}

TEST(MemoryNeedTest, WhatIsMoreThanThereCanBeIsRefusedBeforeItIsTouched) {
  EXPECT_NO_THROW(RequireMemory(static_cast<double>(MemoryLimit()), "all of it"));
  try {
    RequireMemory(0x1p61, "a network of 5 parameters");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(std::string(error.what()),
              "out of memory for a network of 5 parameters: it takes 2048.0 PiB, and this process "
              "can have " +
                  MemoryText(static_cast<double>(MemoryLimit())));
  }
}

// Files as systems with control groups of both versions have them.
TEST(MemoryNeedTest, TheLeastOfAllControlGroupsAroundAProcessCounts) {
  const testing_files::Folder folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file(folder / path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  const auto limit = [&] { return ControlGroupLimit(folder / "membership", folder / "groups"); };
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(limit(), kNone);  // There are no groups.
  write("membership", "9:cpu,memory:/jobs/seven\n8:pids:/\n0::/slice/one\n");
  EXPECT_EQ(limit(), kNone);
  write("groups/slice/one/memory.max", "max\n");
  write("groups/pids/memory.max", "5\n");
  EXPECT_EQ(limit(), kNone);
  write("groups/slice/memory.max", "7000\n");
  EXPECT_EQ(limit(), 7000U);
  write("groups/memory/jobs/seven/memory.limit_in_bytes", "6000\n");
  EXPECT_EQ(limit(), 6000U);
  write("groups/memory/jobs/memory.limit_in_bytes", "9000\n");
  write("groups/memory/memory.limit_in_bytes", "5000\n");
  EXPECT_EQ(limit(), 5000U);
  write("groups/memory.max", "4000\n");
  EXPECT_EQ(limit(), 4000U);
}

TEST(MemoryNeedTest, AmountsAreReadable) {
  EXPECT_EQ(MemoryText(512), "512 B");
  EXPECT_EQ(MemoryText(1.5 * 0x1p20), "1.5 MiB");
  EXPECT_EQ(MemoryText(34.36 * 0x1p30), "34.4 GiB");
}

}  // namespace
}  // namespace menger
