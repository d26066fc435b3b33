#include "menger/runtime/cluster/question_server.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "menger/runtime/cluster/ask_nodes.h"
#include "menger/runtime/cluster/question_letters.h"
#include "menger/runtime/net/peer_stream_testing.h"

// Questions to processes of this machine, by what asks nodes and by what misbehaves.
namespace menger {
namespace {

// All streams that come are of the lane.
class Listening final : public PeerStreamOwner {
 public:
  explicit Listening(QuestionServer& server) : server_(server) {}
  void Opened(std::shared_ptr<PeerStream> stream) override { server_.Opened(std::move(stream)); }
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    server_.Arrived(stream, frames);
  }
  void HasRoom(PeerStream& stream) override { server_.HasRoom(stream); }
  void Ended(PeerStream& stream, const Error&) override { server_.Ended(stream); }
  void Failed(const std::string&, const Error&) override {}

 private:
  QuestionServer& server_;
};

// A node that repeats a letter as often as it is asked to.
void Repeat(std::string_view question, FunctionRef<void(std::string_view piece)> write) {
  const int count = std::stoi(std::string(question));
  if (count < 0) throw NotFound("{} is less than nothing", count);
  write(std::string(static_cast<std::size_t>(count), 'x'));
}

class QuestionServerTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kNode = 1;

  void Open(QuestionServerOptions options = {}) {
    server_ = std::make_unique<QuestionServer>(Repeat, options);
    listening_ = std::make_unique<Listening>(*server_);
    streams_ = std::make_unique<PeerStreams>(OptionsOfNode(kNode));
    address_ = streams_->Listen("127.0.0.1:0", *listening_);
  }

  NodeRecord Record() const { return {.id = OptionsOfNode(kNode).own.node, .address = address_}; }
  static std::vector<NodeAnswer> Ask(const std::vector<NodeRecord>& nodes,
                                     const std::string& question, const std::string& token = "") {
    return AskNodes({.token = token}, nodes, question, Deadline::After(kStreamPatience));
  }

  std::unique_ptr<QuestionServer> server_;
  std::unique_ptr<Listening> listening_;
  std::unique_ptr<PeerStreams> streams_;
  std::string address_;
};

TEST_F(QuestionServerTest, AnswersOfAnyLengthComeWhole) {
  Open();
  for (const std::size_t length : {0U, 1U, 262'144U, 262'145U, 40'000'000U}) {
    const NodeAnswer answer = Ask({Record()}, std::to_string(length)).at(0);
    ASSERT_FALSE(answer.failure) << answer.failure->what();
    EXPECT_EQ(answer.text, std::string(length, 'x'));
  }
}

TEST_F(QuestionServerTest, WhatANodeRefusesIsToldWithItsCode) {
  Open();
  const NodeAnswer answer = Ask({Record()}, "-3").at(0);
  ASSERT_TRUE(answer.failure);
  EXPECT_EQ(answer.failure->code(), ErrorCode::kNotFound);
  EXPECT_STREQ(answer.failure->what(), "-3 is less than nothing");
}

TEST_F(QuestionServerTest, WhoCannotBeAskedKeepsNoOtherFromAnswering) {
  Open();
  NodeRecord gone = Record();
  gone.address = "127.0.0.1:1";
  NodeRecord elsewhere = Record();
  elsewhere.address = "192.0.2.1:7000";  // Not without a token.
  NodeRecord another = Record();
  another.id.low = 77;  // Whose address this node has got.
  const std::vector<NodeAnswer> answers = Ask({gone, elsewhere, Record(), another}, "3");
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].failure->code(), ErrorCode::kNotFound);
  EXPECT_EQ(answers[1].failure->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(answers[2].text, "xxx");
  EXPECT_EQ(answers[3].failure->code(), ErrorCode::kNotFound);
}

TEST_F(QuestionServerTest, WhoHasAnotherTokenLearnsNothing) {
  Open();
  const NodeAnswer answer = Ask({Record()}, "3", "another").at(0);
  ASSERT_TRUE(answer.failure);
  EXPECT_EQ(answer.failure->code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(answer.text, "");
}

TEST_F(QuestionServerTest, AQuestionThatIsNoneEndsItsStream) {
  Open();
  RecordingOwner asker;
  PeerStreams asking(OptionsOfNode(2));
  asking.Connect(address_, PeerLane::kQuestions, asker);
  asker.WaitStream()->TrySend(BytesOf(std::string(kQuestionTextMax + 1, '1')));
  EXPECT_TRUE(asker.WaitEnded());
  asking.Connect(address_, PeerLane::kQuestions, asker);
  const std::shared_ptr<PeerStream> second = asker.WaitStream(1);
  second->TrySend(BytesOf("1"));
  second->TrySend(BytesOf("1"));
  EXPECT_TRUE(asker.WaitEnded(1));
  EXPECT_EQ(Ask({Record()}, "2").at(0).text, "xx");
}

TEST_F(QuestionServerTest, WhoComesWhenManyAskIsTurnedAwayUntilTheyHaveHadTheirTime) {
  Open({.streams_max = 2});
  RecordingOwner askers;
  PeerStreams asking(OptionsOfNode(2));
  for (std::size_t i = 0; i < 2; ++i) {
    asking.Connect(address_, PeerLane::kQuestions, askers);
    askers.WaitStream(i);
  }
  // Both ends see a stream open at moments of their own.
  askers.WaitStream(0)->TrySend(BytesOf("1"));
  askers.WaitStream(1)->TrySend(BytesOf("1"));
  askers.WaitFrames(4);
  EXPECT_TRUE(Ask({Record()}, "1").at(0).failure);
  askers.WaitStream(0)->Close();
  askers.WaitEnded();
  NodeAnswer answer;
  const Deadline deadline = Deadline::After(kStreamPatience);
  do {
    answer = Ask({Record()}, "1").at(0);
  } while (answer.failure && !deadline.expired());
  EXPECT_EQ(answer.text, "x");

  streams_.reset();
  Open({.streams_max = 1, .answer_max = std::chrono::nanoseconds(0)});
  RecordingOwner idle;
  asking.Connect(address_, PeerLane::kQuestions, idle);
  idle.WaitStream();
  EXPECT_EQ(Ask({Record()}, "1").at(0).text, "x");
  asking.Connect("127.0.0.1:1", PeerLane::kQuestions, idle);
  EXPECT_TRUE(idle.WaitFailed());
}

// Does not look at what comes until it may.
class Unreading final : public RecordingOwner {
 public:
  void Read() {
    const std::lock_guard lock(mutex_);
    reads_ = true;
    may_.notify_all();
  }
  std::size_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  void OnFrame(PeerStream&, std::span<const std::byte> frame) override {
    std::unique_lock lock(mutex_);
    may_.wait(lock, [this] { return reads_; });
    if (frame.size() > 1) bytes_ += frame.size() - 1;
  }

  std::mutex mutex_;
  std::condition_variable may_;
  bool reads_ = false;
  std::size_t bytes_ = 0;
};

TEST_F(QuestionServerTest, WhoReadsSlowlyKeepsNobodyWaitingAndWhoWantsTooMuchIsRefused) {
  constexpr std::size_t kLong = std::size_t{60} << 20;
  Open({.waiting_bytes_max = kLong});
  Unreading slow;
  PeerStreams asking(OptionsOfNode(2));
  asking.Connect(address_, PeerLane::kQuestions, slow);
  slow.WaitStream()->TrySend(BytesOf(std::to_string(kLong)));
  EXPECT_EQ(Ask({Record()}, "5").at(0).text, "xxxxx");
  Unreading greedy;
  PeerStreams other(OptionsOfNode(3));
  other.Connect(address_, PeerLane::kQuestions, greedy);
  greedy.WaitStream()->TrySend(BytesOf(std::to_string(4 * kLong)));
  EXPECT_EQ(Ask({Record()}, "5").at(0).text, "xxxxx");
  greedy.Read();
  slow.Read();
  while (slow.bytes() < kLong) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(slow.bytes(), kLong);
  EXPECT_LT(greedy.bytes(), 4 * kLong);
}

TEST(QuestionLettersTest, WhatIsNoAnswerIsRefused) {
  const std::vector<std::byte> whole =
      Encode({.kind = AnswerLetter::Kind::kRefusal, .code = ErrorCode::kNotFound, .text = "no"});
  const AnswerLetter letter = DecodeAnswerLetter(whole);
  EXPECT_EQ(letter.code, ErrorCode::kNotFound);
  EXPECT_EQ(letter.text, "no");
  EXPECT_THROW(DecodeAnswerLetter({}), Error);
  EXPECT_THROW(DecodeAnswerLetter(std::span(whole).first(1)), Error);
  std::vector<std::byte> wrong = whole;
  wrong[0] = std::byte{3};
  EXPECT_THROW(DecodeAnswerLetter(wrong), Error);
  wrong = whole;
  wrong[1] = std::byte{200};
  EXPECT_THROW(DecodeAnswerLetter(wrong), Error);
  const std::vector<std::byte> end = {std::byte{1}, std::byte{0}};
  EXPECT_THROW(DecodeAnswerLetter(end), Error);
}

}  // namespace
}  // namespace menger
