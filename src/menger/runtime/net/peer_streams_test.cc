#include "menger/runtime/net/peer_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/sharing/tcp_socket.h"
#include "menger/runtime/net/frame_queue.h"
#include "menger/runtime/net/peer_stream_testing.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAnyPort = "127.0.0.1:0";

// Two nodes, of which the first listens.
struct Pair {
  explicit Pair(const std::string& token = "")
      : Pair(OptionsOfNode(1, token), OptionsOfNode(2, token)) {}
  Pair(PeerStreamOptions first, PeerStreamOptions second)
      : listening(std::move(first)), connecting(std::move(second)) {
    address = listening.Listen(kAnyPort, acceptor);
  }
  void Connect(PeerLane lane = PeerLane::kControl) { connecting.Connect(address, lane, connector); }

  EchoingOwner acceptor;
  RecordingOwner connector;
  std::string address;
  PeerStreams listening;
  PeerStreams connecting;
};

TEST(PeerStreamsTest, FramesOfBothLanesComeBackInOrder) {
  for (const PeerLane lane : {PeerLane::kControl, PeerLane::kBulk}) {
    Pair pair("the token");
    pair.Connect(lane);
    const auto stream = pair.connector.WaitStream();
    ASSERT_NE(stream, nullptr);
    EXPECT_EQ(stream->peer().node.node.low, 1U);
    EXPECT_EQ(stream->peer().node.epoch, 10U);
    const auto accepted = pair.acceptor.WaitStream();
    ASSERT_NE(accepted, nullptr);
    EXPECT_EQ(accepted->peer().lane, lane);
    EXPECT_EQ(accepted->peer().node.node.low, 2U);
    EXPECT_TRUE(accepted->peer().accepted);
    std::vector<std::string> sent;
    for (int i = 0; i < 3000; ++i) {
      sent.push_back("letter " + std::to_string(i));
      ASSERT_TRUE(stream->TrySend(BytesOf(sent.back())));
    }
    EXPECT_EQ(pair.connector.WaitFrames(sent.size()), sent);
  }
}

TEST(PeerStreamsTest, ManyThreadsMaySend) {
  Pair pair;
  pair.Connect();
  const auto stream = pair.connector.WaitStream();
  ASSERT_NE(stream, nullptr);
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kLetters = 500;
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&stream, thread] {
        for (std::size_t i = 0; i < kLetters; ++i) {
          EXPECT_TRUE(stream->TrySend(BytesOf(std::to_string(thread * kLetters + i))));
        }
      });
    }
  }
  std::vector<std::size_t> next(kThreads);
  for (const std::string& frame : pair.connector.WaitFrames(kThreads * kLetters)) {
    const std::size_t number = std::stoul(frame);
    EXPECT_EQ(number % kLetters, next[number / kLetters]++);
  }
  EXPECT_EQ(next, std::vector(kThreads, kLetters));
}

TEST(PeerStreamsTest, WhatAnOwnerThrowsIsTheEndOfOneStreamAndNoOther) {
  class ThrowingOwner final : public RecordingOwner {
   protected:
    void OnFrame(PeerStream&, std::span<const std::byte> frame) override {
      if (frame[0] == std::byte{'!'}) throw InvalidArgument("no letter of a peer");
    }
  };
  ThrowingOwner acceptor;
  RecordingOwner connector;
  PeerStreams listening(OptionsOfNode(1));
  PeerStreams connecting(OptionsOfNode(2));
  const std::string address = listening.Listen(kAnyPort, acceptor);
  for (int i = 0; i < 2; ++i) connecting.Connect(address, PeerLane::kControl, connector);
  const auto first = connector.WaitStream(0);
  const auto second = connector.WaitStream(1);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  ASSERT_TRUE(first->TrySend(BytesOf("!")));
  const auto why = acceptor.WaitEnded();
  ASSERT_TRUE(why);
  EXPECT_THAT(why->what(), HasSubstr("no letter of a peer"));
  ASSERT_TRUE(second->TrySend(BytesOf("well")));
  EXPECT_THAT(acceptor.WaitFrames(1), ElementsAre("well"));
}

TEST(PeerStreamsTest, LargeFramesArriveWhole) {
  Pair pair;
  pair.Connect(PeerLane::kBulk);
  const auto stream = pair.connector.WaitStream();
  ASSERT_NE(stream, nullptr);
  std::vector<std::string> sent;
  for (const std::size_t bytes : {5'000'000, 1, 9'000, 9'000'000, 300'000, 100}) {
    Payload tail = Payload::Allocate(bytes);
    for (std::size_t i = 0; i < bytes; ++i) tail.fill()[i] = static_cast<std::byte>(i * 31 / 7);
    ASSERT_TRUE(stream->TrySend(BytesOf("a:"), tail));
    sent.push_back("a:" + TextOf(tail.bytes()));
    ASSERT_EQ(pair.connector.WaitFrames(sent.size()), sent);
  }
  EXPECT_THROW(stream->TrySend({}), Error);
}

TEST(PeerStreamsTest, AWrongTokenIsRefusedAndBothEndsSaySo) {
  for (const auto& [a, b] : {std::pair("right", "wrong"), {"", "some"}, {"some", ""}}) {
    Pair pair(OptionsOfNode(1, a), OptionsOfNode(2, b));
    pair.Connect();
    const auto here = pair.connector.WaitFailed();
    const auto there = pair.acceptor.WaitFailed();
    ASSERT_TRUE(here && there);
    EXPECT_THAT(here->what(), HasSubstr("another cluster token"));
    EXPECT_THAT(there->what(), HasSubstr("another cluster token"));
    EXPECT_EQ(here->code(), ErrorCode::kFailedPrecondition);
    EXPECT_EQ(pair.connector.opened() + pair.acceptor.opened(), 0U);
  }
}

TEST(PeerStreamsTest, AnotherVersionIsRefusedAndBothEndsSaySo) {
  Pair pair;
  RawEnd end(pair.address);
  Handshake handshake = ConnectorGreeting(2, "", Handshake::kVersion + 1);
  try {
    end.Greet(handshake);
    FAIL() << "it was welcome";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("speaks version {}", Handshake::kVersion)));
  }
  const auto there = pair.acceptor.WaitFailed();
  ASSERT_TRUE(there);
  EXPECT_THAT(there->what(), HasSubstr(fmt::format("speaks version {}", Handshake::kVersion + 1)));
}

TEST(PeerStreamsTest, WhoSaysNothingIsRefusedByEitherEnd) {
  PeerStreamOptions options = OptionsOfNode(1);
  options.greeting_max = std::chrono::milliseconds(30);
  RecordingOwner owner;
  PeerStreams service(options);
  RawEnd end(service.Listen(kAnyPort, owner));
  const auto come = owner.WaitFailed();
  ASSERT_TRUE(come);
  EXPECT_EQ(come->code(), ErrorCode::kDeadlineExceeded);
  Handshake handshake = ConnectorGreeting(2);
  (void)handshake.TakeOutgoing();
  try {
    handshake.Take(end.Hear(handshake.wanted()));
    FAIL() << "it was welcome";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  }
  EXPECT_TRUE(end.Hear(1).empty());  // It is closed.

  const ListeningTcpSocket silent(kAnyPort);
  service.Connect(silent.address(), PeerLane::kControl, owner);
  const auto gone = owner.WaitFailed(1);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->code(), ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(gone->what(), HasSubstr("30 ms"));
}

TEST(PeerStreamsTest, AGreetingMayBeCutAnywhere) {
  Pair pair;
  Handshake handshake = ConnectorGreeting(2);
  const std::vector<std::byte> hello = handshake.TakeOutgoing();
  std::size_t cut = 0;
  for (; cut < hello.size(); ++cut) {
    RawEnd end(pair.address);
    end.Say(std::span(hello).first(cut));
    end.Close();
    const auto why = pair.acceptor.WaitFailed(cut);
    ASSERT_TRUE(why) << cut;
    // Who says nothing at all is not worth a line of the log.
    EXPECT_EQ(why->code(), cut == 0 ? ErrorCode::kCancelled : ErrorCode::kUnavailable) << cut;
  }
  pair.Connect();  // It is in the best of health.
  EXPECT_NE(pair.connector.WaitStream(), nullptr);
}

TEST(PeerStreamsTest, AGreetingInPiecesIsOneLikeAnother) {
  Pair pair;
  RawEnd end(pair.address);
  Handshake handshake = ConnectorGreeting(2);
  while (!handshake.done()) {
    for (const std::byte byte : handshake.TakeOutgoing()) end.Say({&byte, 1});
    handshake.Take(end.Hear(handshake.wanted()));
  }
  EXPECT_NE(pair.acceptor.WaitStream(), nullptr);
}

TEST(PeerStreamsTest, GarbageIsRefusedHoweverLong) {
  Pair pair;
  RawEnd end(pair.address);
  end.Say(std::vector(20'000, std::byte{'?'}));
  const auto why = pair.acceptor.WaitFailed();
  ASSERT_TRUE(why);
  EXPECT_THAT(why->what(), HasSubstr("no greeting of a node"));
  Handshake handshake = ConnectorGreeting(2);
  EXPECT_THROW(handshake.Take(end.Hear(handshake.wanted())), Error);  // It was told.
  RawEnd page(pair.address);
  page.Say(BytesOf("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(pair.acceptor.WaitFailed(1));
  EXPECT_EQ(pair.acceptor.opened(), 0U);
}

TEST(PeerStreamsTest, WhatIsNoFrameEndsTheStream) {
  const std::vector<std::byte> no_frame(8, std::byte{7});
  const FrameHead long_head = FrameHead::For(PeerStreamOptions().frame_bytes_max + 1);
  const auto long_frame = std::as_bytes(std::span(&long_head, 1));
  for (const auto& [bytes, said] :
       {std::pair(std::span<const std::byte>(no_frame), "is no frame"), {long_frame, "longest"}}) {
    Pair pair;
    RawEnd end(pair.address);
    Handshake handshake = ConnectorGreeting(2);
    end.Greet(handshake);
    end.Say(bytes);
    const auto why = pair.acceptor.WaitEnded();
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(why->what(), HasSubstr(said));
  }
}

TEST(PeerStreamsTest, AStreamWhoseOtherEndHasLostItsPowerEnds) {
  PeerStreamOptions options = OptionsOfNode(1);
  options.heartbeat_every = std::chrono::milliseconds(10);
  options.silence_max = std::chrono::milliseconds(50);
  Pair pair(options, OptionsOfNode(2));
  RawEnd end(pair.address);
  Handshake handshake = ConnectorGreeting(2);
  end.Greet(handshake);
  EXPECT_FALSE(end.Hear(sizeof(FrameHead)).empty());  // A beat.
  const auto why = pair.acceptor.WaitEnded();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), ErrorCode::kDeadlineExceeded);
}

TEST(PeerStreamsTest, BeatsKeepAStreamThatHasNothingToSay) {
  PeerStreamOptions first = OptionsOfNode(1);
  first.heartbeat_every = std::chrono::milliseconds(20);
  first.silence_max = std::chrono::milliseconds(2'000);
  PeerStreamOptions second = first;
  second.own.node.low = 2;
  Pair pair(first, second);
  pair.Connect();
  const auto stream = pair.connector.WaitStream();
  ASSERT_NE(stream, nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_TRUE(stream->TrySend(BytesOf("still there")));
  EXPECT_THAT(pair.connector.WaitFrames(1), ElementsAre("still there"));
}

// Does not read until it may.
class SlowOwner final : public RecordingOwner {
 public:
  std::latch may_read{1};

 protected:
  void OnFrame(PeerStream&, std::span<const std::byte>) override { may_read.wait(); }
};

TEST(PeerStreamsTest, WhoSendsToASlowPeerIsToldToWait) {
  PeerStreamOptions options = OptionsOfNode(2);
  options.frame_bytes_max = options.queue_bytes_max = std::size_t{1} << 20;
  RecordingOwner connector;
  SlowOwner acceptor;
  PeerStreams listening(OptionsOfNode(1));
  PeerStreams connecting(options);
  connecting.Connect(listening.Listen(kAnyPort, acceptor), PeerLane::kBulk, connector);
  const auto stream = connector.WaitStream();
  ASSERT_NE(stream, nullptr);
  EXPECT_THROW(stream->TrySend(BytesOf("a:"), Payload::Allocate((1 << 20) - 1)), Error);
  const Payload frame = Payload::Copy(std::vector(std::size_t{100'000}, std::byte{1}));
  const auto deadline = Deadline::After(kStreamPatience);
  std::size_t sent = 0;
  // What the system takes for itself has a bound, too.
  for (int refusals = 0; refusals < 20 && !deadline.expired();) {
    if (stream->TrySend({}, frame)) {
      ++sent;
      refusals = 0;
    } else {
      ++refusals;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  EXPECT_FALSE(deadline.expired());
  acceptor.may_read.count_down();
  EXPECT_TRUE(connector.WaitRoom());
  EXPECT_EQ(acceptor.WaitFrames(sent).size(), sent);
}

TEST(PeerStreamsTest, AProcessThatIsKilledEndsItsStreams) {
  const ListeningTcpSocket meeting(kAnyPort);  // The child comes here before any thread is.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RawEnd end(meeting.address());
    const std::vector<std::byte> address = end.Hear(64);
    RawEnd other(TextOf(address).substr(0, TextOf(address).find(' ')));
    Handshake handshake = ConnectorGreeting(2);
    other.Greet(handshake);
    for (;;) pause();
  }
  std::optional<FileDescriptor> come;
  for (const auto patience = Deadline::After(kStreamPatience); !come && !patience.expired();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    come = meeting.Accept();
  }
  ASSERT_TRUE(come);
  RawEnd to_child(std::move(*come));
  EchoingOwner owner;
  PeerStreams service(OptionsOfNode(1));
  std::string address = service.Listen(kAnyPort, owner);
  address.resize(64, ' ');
  to_child.Say(BytesOf(address));
  ASSERT_NE(owner.WaitStream(), nullptr);
  kill(child, SIGKILL);
  const auto why = owner.WaitEnded();
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), ErrorCode::kUnavailable);
}

TEST(PeerStreamsTest, ClosingAnEndEndsBoth) {
  Pair pair;
  pair.Connect();
  const auto stream = pair.connector.WaitStream();
  ASSERT_NE(stream, nullptr);
  ASSERT_NE(pair.acceptor.WaitStream(), nullptr);
  stream->Close();
  EXPECT_FALSE(stream->TrySend(BytesOf("late")));
  const auto here = pair.connector.WaitEnded();
  const auto there = pair.acceptor.WaitEnded();
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->code(), ErrorCode::kCancelled);
  EXPECT_EQ(there->code(), ErrorCode::kUnavailable);
}

TEST(PeerStreamsTest, AStreamThatSomebodyHoldsOutlivesItsService) {
  auto pair = std::make_unique<Pair>();
  pair->Connect();
  const std::shared_ptr<PeerStream> stream = pair->connector.WaitStream();
  ASSERT_NE(stream, nullptr);
  ASSERT_NE(pair->acceptor.WaitStream(), nullptr);
  pair.reset();
  EXPECT_FALSE(stream->TrySend(BytesOf("late")));
  stream->Close();
  EXPECT_EQ(stream->peer().node.node.low, 1U);
}

TEST(PeerStreamsTest, AServiceThatGoesTellsItsOwners) {
  RecordingOwner owner;
  EchoingOwner acceptor;
  PeerStreams listening(OptionsOfNode(1));
  const std::string address = listening.Listen(kAnyPort, acceptor);
  {
    PeerStreams service(OptionsOfNode(2));
    service.Connect(address, PeerLane::kControl, owner);
    ASSERT_NE(owner.WaitStream(), nullptr);
  }
  const auto why = owner.WaitEnded();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), ErrorCode::kCancelled);
}

// A listener whose queue is full answers nobody, as a host that is cut off. The system tries on for
// two minutes.
TEST(PeerStreamsTest, AServiceGoesAlsoWhileNobodyAnswersIt) {
  const ListeningTcpSocket full(kAnyPort);
  ASSERT_EQ(listen(full.descriptor().get(), 0), 0);
  const RawEnd first(full.address());
  RecordingOwner owner;
  PeerStreamOptions options = OptionsOfNode(2);
  options.connect_max = kStreamPatience;
  auto service = std::make_unique<PeerStreams>(options);
  for (int i = 0; i < 3; ++i) service->Connect(full.address(), PeerLane::kControl, owner);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // So that it tries.
  std::future<void> gone = std::async(std::launch::async, [&service] { service.reset(); });
  EXPECT_EQ(gone.wait_for(kStreamPatience), std::future_status::ready);
  const auto why = owner.WaitFailed();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), ErrorCode::kCancelled);
}

TEST(PeerStreamsTest, WhereNobodyListensIsSaid) {
  std::string address;
  {
    const ListeningTcpSocket gone(kAnyPort);
    address = gone.address();
  }
  RecordingOwner owner;
  PeerStreams service(OptionsOfNode(2));
  service.Connect(address, PeerLane::kControl, owner);
  const auto why = owner.WaitFailed();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), ErrorCode::kNotFound);
  EXPECT_THAT(why->what(), HasSubstr(address));
}

TEST(PeerStreamsTest, TwoCannotListenAtOnePort) {
  RecordingOwner owner;
  PeerStreams service(OptionsOfNode(1));
  const std::string address = service.Listen(kAnyPort, owner);
  EXPECT_THROW(service.Listen(address, owner), Error);
}

TEST(PeerStreamsTest, WhoDoesNotSayWhoHeIsKeepsNoOthersOutForLong) {
  PeerStreamOptions options = OptionsOfNode(1);
  options.greetings_max = 2;
  options.greeting_max = std::chrono::milliseconds(100);
  PeerStreamOptions connector = OptionsOfNode(2);
  connector.connect_max = std::chrono::seconds(60);
  Pair pair(options, connector);
  std::vector<std::unique_ptr<RawEnd>> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(std::make_unique<RawEnd>(pair.address));
  pair.Connect();
  EXPECT_NE(pair.connector.WaitStream(), nullptr);
}

}  // namespace
}  // namespace menger
