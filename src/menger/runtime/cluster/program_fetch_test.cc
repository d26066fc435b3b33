#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "menger/base/program_files.h"
#include "menger/runtime/cluster/program_fetcher.h"
#include "menger/runtime/cluster/program_testing.h"
#include "menger/runtime/net/frame_queue.h"

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
  // A node instead, which has that cache.
  explicit Driver(const CacheFolder& cache) : server_(cache), streams_(OptionsOfNode(1)) {
    address_ = streams_.Listen("127.0.0.1:0", *this);
  }

  const std::string& address() const { return address_; }
  // How its first stream has ended.
  ErrorCode WaitEnd() {
    std::future<ErrorCode> end = end_.get_future();
    return end.wait_for(kStreamPatience) == std::future_status::ready ? end.get()
                                                                      : ErrorCode::kInternal;
  }

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
  void Ended(PeerStream& stream, const Error& why) override {
    server_.Ended(stream);
    if (!ended_) end_.set_value(why.code());
    ended_ = true;
  }
  void Failed(const std::string&, const Error&) override {}

  ProgramServer server_;
  std::string address_;
  std::promise<ErrorCode> end_;
  bool ended_ = false;
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

TEST(ProgramFetchTest, WhatHasChangedInAFolderIsLeftOut) {
  Folder folder;
  WriteText(folder / "a_log.txt", std::string(3 * kProgramPartBytes, 'x'));
  WriteText(folder / "gone.txt", "soon\n");
  Driver driver(DescribeProgram(ScriptIn(folder)));
  WriteText(folder / "a_log.txt", "begun anew\n");
  std::filesystem::remove(folder / "gone.txt");
  FetchingNode node;
  const ReadyProgram ready = node.Fetch(driver.address());
  EXPECT_EQ(LinesOfRun(ready.program).front(), "green");
  EXPECT_FALSE(std::filesystem::exists(ready.program.folder + "/a_log.txt"));
  EXPECT_FALSE(std::filesystem::exists(ready.program.folder + "/gone.txt"));
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

// A program with a file of many parts.
ProgramManifest LargeProgram(const Folder& folder) {
  const std::size_t bytes = 12 * kProgramPartBytes + 100;
  WriteText(folder / "driver/large", std::string(bytes, 'x'));
  WriteText(folder / "driver/a", "a");  // Comes first.
  return DescribeProgram({.arguments = {"sh"}, .folder = folder / "driver"});
}

void ExpectLarge(const ReadyProgram& ready, const ProgramManifest& manifest) {
  EXPECT_TRUE(HasContent(ready.program.folder + "/large", manifest.files[1].content));
}

TEST(ProgramFetchTest, AFetchThatWasInterruptedSucceedsTheNextTime) {
  Folder folder;
  const ProgramManifest manifest = LargeProgram(folder);
  Driver driver(manifest);
  FetchingNode node;
  driver.questions_max = 8;
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { node.Fetch(driver.address()); }),
              HasSubstr("did not come"));
  driver.questions_max = 1 << 30;
  driver.questions = 0;
  ExpectLarge(node.Fetch(driver.address()), manifest);
  EXPECT_EQ(driver.questions, 1 + 13);  // The first file had come.
}

TEST(ProgramFetchTest, ADriverThatEndsIsUnavailable) {
  Folder folder;
  auto driver = std::make_unique<Driver>(DescribeProgram(ScriptIn(folder)));
  const std::string address = driver->address();
  FetchingNode node;
  driver.reset();
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { node.Fetch(address); }), HasSubstr(address));
}

TEST(ProgramFetchTest, WhatADriverThatIsGoneHadIsWhereNodesKeepIt) {
  Folder folder;
  const ProgramManifest manifest = LargeProgram(folder);
  const CacheFolder first(folder / "first");
  const CacheFolder second(folder / "second");
  LocalSource source;
  first.Store(manifest.files[0], source.Get());
  second.Store(manifest.files[1], source.Get());
  std::filesystem::remove_all(folder / "driver");
  Driver one(first);
  Driver other(second);
  auto gone = std::make_unique<Driver>(manifest);
  const std::string nowhere = gone->address();
  gone.reset();
  FetchingNode node;
  const CacheFolder kept(node.folder / "kept");
  const auto fetch = [&](const ProgramManifest& wanted, const std::vector<std::string>& addresses) {
    return node.fetcher.FetchFiles(node.streams, addresses, wanted, kept, SoonEnough());
  };
  // Who was not reached may have it.
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound,
                        [&] {
                          fetch(manifest, {nowhere, one.address()});
                        }),
              HasSubstr(manifest.files[1].path));
  EXPECT_EQ(fetch(manifest, {one.address()}).manifest.files.size(), 1);
  ProgramManifest needed = manifest;
  needed.files[1].role = ProgramFile::Role::kExecutable;
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [&] { fetch(needed, {one.address()}); }),
              HasSubstr(manifest.files[1].path));
  const KeptProgram program = fetch(manifest, {nowhere, one.address(), other.address()});
  for (const ProgramFile& file : manifest.files) {
    EXPECT_TRUE(HasContent(program.paths.at(file.content.hash), file.content)) << file.path;
  }
  EXPECT_EQ(program.manifest, manifest);
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [&] { node.Fetch(one.address()); }),
              HasSubstr("no program of its own"));
}

TEST(ProgramFetchTest, ADriverThatLiesAboutContentIsFoundOut) {
  Folder folder;
  ProgramManifest manifest = DescribeProgram(ScriptIn(folder));
  ++manifest.files[1].content.hash.low;
  Driver driver(manifest);
  FetchingNode node;
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { node.Fetch(driver.address()); }),
              HasSubstr("say.sh"));
}

TEST(ProgramFetchTest, EmptyFilesAndFilesOfWholePartsCome) {
  Folder folder;
  const std::vector<std::size_t> sizes = {
      0, 1, kProgramPartBytes - 1, kProgramPartBytes, kProgramPartBytes + 1, 6 * kProgramPartBytes};
  for (const std::size_t size : sizes) {
    WriteText(folder / ("driver/" + std::to_string(size)), std::string(size, 'x'));
  }
  Driver driver(DescribeProgram({.arguments = {"sh"}, .folder = folder / "driver"}));
  FetchingNode node;
  const ReadyProgram ready = node.Fetch(driver.address());
  for (const std::size_t size : sizes) {
    EXPECT_EQ(ReadFile(ready.program.folder + "/" + std::to_string(size)), std::string(size, 'x'));
  }
}

TEST(ProgramFetchTest, AStreamWithRoomForOnePartSuffices) {
  Folder folder;
  PeerStreamOptions options = OptionsOfNode(1);
  options.frame_bytes_max = options.queue_bytes_max = kProgramPartBytes + 100;
  const ProgramManifest manifest = LargeProgram(folder);
  Driver driver(manifest, SourceOf, options);
  FetchingNode node;
  ExpectLarge(node.Fetch(driver.address()), manifest);
}

TEST(ProgramFetchTest, SeveralFetchAtOnce) {
  Folder folder;
  const ProgramManifest manifest = LargeProgram(folder);
  Driver driver(manifest);
  FetchingNode node;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { ExpectLarge(node.Fetch(driver.address()), manifest); });
  }
}

TEST(ProgramFetchTest, WhoDoesNotAnswerIsNotWaitedForLonger) {
  RecordingOwner silent;
  PeerStreams listening(OptionsOfNode(1));
  const std::string address = listening.Listen("127.0.0.1:0", silent);
  FetchingNode node;
  EXPECT_THAT(
      ErrorText(ErrorCode::kDeadlineExceeded,
                [&] { node.Fetch(address, Deadline::After(std::chrono::milliseconds(50))); }),
      HasSubstr(address));
  std::atomic<bool> gone{true};
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded,
                        [&] { node.Fetch(address, SoonEnough().OrWhen(gone)); }),
              HasSubstr(address));
}

// Says one thing whatever it is asked.
class StubbornOwner final : public RecordingOwner {
 public:
  explicit StubbornOwner(std::vector<std::vector<std::byte>> answers)
      : answers_(std::move(answers)) {}

 protected:
  void OnFrame(PeerStream& stream, std::span<const std::byte>) override {
    for (const auto& answer : answers_) stream.TrySend(answer);
  }

 private:
  const std::vector<std::vector<std::byte>> answers_;
};

TEST(ProgramFetchTest, AnswersThatAreNoneAreRefused) {
  using Frames = std::vector<std::vector<std::byte>>;
  const auto part = EncodeAnswerHead({.kind = ProgramAnswer::Kind::kPart});
  const auto manifest = EncodeAnswerHead({.kind = ProgramAnswer::Kind::kManifest});
  const auto refusal = EncodeAnswerHead({.kind = ProgramAnswer::Kind::kRefusal,
                                         .code = ErrorCode::kInvalidArgument,
                                         .text = "it has none"});
  for (const auto& [answers, said] : {std::pair<Frames, std::string>({part}, "another question"),
                                      {{manifest}, "'version'"},
                                      {{BytesOf("?")}, "'kind'"},
                                      {{refusal}, "it has none"}}) {
    StubbornOwner driver(answers);
    PeerStreams listening(OptionsOfNode(1));
    FetchingNode node;
    const std::string address = listening.Listen("127.0.0.1:0", driver);
    EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { node.Fetch(address); }),
                HasSubstr(said));
  }
}

// Asks what it likes.
struct Asker {
  RecordingOwner owner;
  PeerStreams streams{OptionsOfNode(2)};

  std::shared_ptr<PeerStream> Connect(const std::string& address) {
    streams.Connect(address, PeerLane::kFiles, owner);
    return owner.WaitStream();
  }
};

TEST(ProgramServerTest, NothingButTheFilesOfTheManifestIsServed) {
  Folder folder;
  WriteText(folder / "secret", "secret");
  Driver driver(DescribeProgram({}));
  Asker asker;
  const auto stream = asker.Connect(driver.address());
  ASSERT_NE(stream, nullptr);
  const FileContent content = ReadContent(folder / "secret");
  stream->TrySend(EncodeQuestion({.kind = ProgramQuestion::Kind::kPart, .file = content.hash}));
  const FileContent own = ReadContent("/proc/self/exe");
  stream->TrySend(EncodeQuestion(
      {.kind = ProgramQuestion::Kind::kPart, .file = own.hash, .offset = own.bytes}));
  const std::vector<std::string> frames = asker.owner.WaitFrames(2);
  ASSERT_EQ(frames.size(), 2U);
  const ProgramAnswer unknown = DecodeAnswer(BytesOf(frames[0]));
  EXPECT_EQ(unknown.kind, ProgramAnswer::Kind::kRefusal);
  EXPECT_EQ(unknown.code, ErrorCode::kNotFound);
  const ProgramAnswer behind = DecodeAnswer(BytesOf(frames[1]));
  EXPECT_EQ(behind.kind, ProgramAnswer::Kind::kRefusal);
  EXPECT_EQ(behind.code, ErrorCode::kInvalidArgument);
}

TEST(ProgramServerTest, WhatIsNoQuestionEndsTheStream) {
  Driver driver(DescribeProgram({}));
  for (const char* const frame : {"?", "\1short", "\2"}) {
    Asker asker;
    const auto stream = asker.Connect(driver.address());
    ASSERT_NE(stream, nullptr);
    stream->TrySend(BytesOf(frame));
    EXPECT_TRUE(asker.owner.WaitEnded()) << frame;
  }
}

TEST(ProgramServerTest, WhoAsksMoreThanHeReadsIsCutOff) {
  Folder folder;
  WriteText(folder / "driver/large", std::string(kProgramPartBytes, 'x'));
  const ProgramManifest manifest =
      DescribeProgram({.arguments = {"sh"}, .folder = folder / "driver"});
  Driver driver(manifest);
  RawEnd end(driver.address());
  Handshake handshake({.own = OptionsOfNode(2).own, .lane = PeerLane::kFiles}, DrawNonce());
  end.Greet(handshake);
  const std::vector<std::byte> question = EncodeQuestion(
      {.kind = ProgramQuestion::Kind::kPart, .file = manifest.files[0].content.hash});
  const FrameHead head = FrameHead::For(question.size());
  std::vector<std::byte> said;
  for (int i = 0; i < 200; ++i) {  // The answers are more than the system takes for itself.
    for (const auto piece : {std::as_bytes(std::span(&head, 1)), std::span(question)}) {
      said.insert(said.end(), piece.begin(), piece.end());
    }
  }
  end.Say(said);
  EXPECT_EQ(driver.WaitEnd(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace menger
