#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "menger/base/program_files.h"
#include "menger/runtime/cluster/program_fetcher.h"
#include "menger/runtime/cluster/program_testing.h"

namespace menger {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A driver, and the part of its streams' owner that is for programs.
class Driver final : public PeerStreamOwner {
 public:
  explicit Driver(const ProgramManifest& manifest, const ProgramServer::Source& source = SourceOf,
                  PeerStreamOptions options = OptionsOfNode(1))
      : server_(manifest, source), streams_(std::move(options)) {
    address_ = streams_.Listen("127.0.0.1:0", *this);
  }

  const std::string& address() const { return address_; }
  std::atomic<int> questions{0};
  std::atomic<int> questions_max{1 << 30};  // Answered; then it goes.

 private:
  void Opened(std::shared_ptr<PeerStream> stream) override {
    EXPECT_EQ(stream->peer().lane, PeerLane::kFiles);
    server_.Opened(*stream);
  }
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    if ((questions += static_cast<int>(frames.size())) > questions_max) return stream.Close();
    server_.Arrived(stream, frames);
  }
  void HasRoom(PeerStream& stream) override { server_.HasRoom(stream); }
  void Ended(PeerStream& stream, const Error&) override { server_.Ended(stream); }
  void Failed(const std::string&, const Error&) override {}

  ProgramServer server_;
  std::string address_;
  PeerStreams streams_;  // Ends before what its thread uses.
};

// A node that has nothing of a driver's files.
struct FetchingNode {
  Folder folder;
  ProgramCache cache{{.folder = folder / "cache", .in_place = false}};
  ProgramFetcher fetcher;
  PeerStreams streams{OptionsOfNode(2)};

  ReadyProgram Fetch(const std::string& address, const Deadline& deadline = SoonEnough()) {
    return fetcher.Fetch(streams, address, cache, deadline);
  }
};

constexpr const char* kShippedVariable = "MENGER_TEST_IS_SHIPPED";

// The program that is shipped is this one, and does this test again.
void FindLibraryByName() {
  const std::string name = std::filesystem::path(MENGER_OPENED_LIBRARY).filename();
  ASSERT_NE(dlopen(name.c_str(), RTLD_NOW), nullptr) << dlerror();
  std::printf("runs as %s\n", std::filesystem::read_symlink("/proc/self/exe").c_str());
}

TEST(ProgramFetchTest, AProgramIsFetchedWithItsLibrariesAndRuns) {
  if (!Variable(kShippedVariable).empty()) return FindLibraryByName();
  void* const library = dlopen(MENGER_OPENED_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  Driver driver(DescribeProgram({.variables = {{kShippedVariable, "1"}}}));
  dlclose(library);
  FetchingNode node;
  const ReadyProgram ready = node.Fetch(driver.address());
  ASSERT_EQ(ready.program.arguments.size(), 1U);
  EXPECT_THAT(ready.program.arguments[0], StartsWith(node.folder.path()));
  const std::vector<std::string> lines = LinesOfRun(
      ready.program, {"--gtest_filter=ProgramFetchTest.AProgramIsFetchedWithItsLibrariesAndRuns"});
  EXPECT_THAT(lines, Contains("runs as " + ready.program.arguments[0]));
  EXPECT_EQ(lines.back(), "ended with exit status 0");
}

TEST(ProgramFetchTest, AFolderIsFetchedAndAScriptRunsInIt) {
  Folder folder;
  Driver driver(DescribeProgram(ScriptIn(folder)));
  FetchingNode node;
  const ReadyProgram ready = node.Fetch(driver.address());
  EXPECT_THAT(LinesOfRun(ready.program),
              ElementsAre("green", ready.program.folder + "/data:" + (folder / "none") + ":x",
                          "ended with exit status 0"));
}

TEST(ProgramFetchTest, WhatIsInPlaceIsNotFetched) {
  Driver driver(DescribeProgram({}));
  FetchingNode node;
  const ProgramCache in_place({.folder = node.folder / "other"});
  const ReadyProgram ready =
      node.fetcher.Fetch(node.streams, driver.address(), in_place, SoonEnough());
  EXPECT_EQ(ready.program.arguments[0], std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(driver.questions, 1);  // For the manifest.
}

}  // namespace
}  // namespace menger
