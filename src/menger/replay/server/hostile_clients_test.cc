#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/sharing/descriptors.h"
#include "menger/base/sharing/stream_channel.h"
#include "menger/base/sharing/tcp_socket.h"
#include "menger/base/sharing/unix_socket.h"
#include "menger/replay/server/serving_testing.h"

// Clients that say what makes no sense, say nothing, or go away: the others are served.
namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::size_t EntriesOf(const char* folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.path().empty() ? 0 : 1;
  }
  return count;
}

// A server, and a good client of it that must always be served.
class HostileClientsTest : public testing::TestWithParam<Transport> {
 protected:
  HostileClientsTest() : client_({.socket = served_.address(GetParam())}) { Use(); }
  ~HostileClientsTest() override { Use(); }

  std::unique_ptr<ServerLink> Link() {
    return std::make_unique<ServerLink>(served_.address(GetParam()), /*wants_memory=*/false,
                                        1 << 16, Soon());
  }

  void Use() {
    const auto writer = client_.NewWriter(SmallItems().steps, {}, 1);
    WriteValue(*writer, 0, 7);
    writer->Flush(0, Soon());
    writer->Await(Soon());
    Sample sample;
    client_.NewSampler(0)->SampleInto({.count = 1, .deadline = Soon()}, sample);
    EXPECT_EQ(LastValues(SmallItems(), sample).size(), 1U);
  }

  static void Say(ServerLink& link, std::span<const std::byte> bytes) {
    std::array<std::byte, 4> first{};
    std::memcpy(first.data(), bytes.data(), std::min<std::size_t>(bytes.size(), 4));
    const std::span<std::byte> rest =
        link.Begin(first, bytes.size() - std::min<std::size_t>(bytes.size(), 4));
    if (bytes.size() > 4) std::memcpy(rest.data(), bytes.data() + 4, bytes.size() - 4);
    link.Send();
  }

  template <typename Request>
  static void Say(ServerLink& link, const Request& request) {
    Say(link, std::as_bytes(std::span(&request, 1)));
  }

  static std::string BeginStreams(ServerLink& link, const StreamsRequest& request) {
    const std::string text = EncodeStreams(request);
    const std::span<std::byte> room = link.Begin(RequestKind::kStreams, text.size());
    std::memcpy(room.data(), text.data(), text.size());
    link.Send();
    const std::optional<Error> error = ErrorIn(link.Answer(seconds(60)));
    link.Release();
    return error ? error->what() : "";
  }

  void ExpectDropped(ServerLink& link) {
    EXPECT_THROW(static_cast<void>(link.Answer(seconds(60))), ServerGone);
  }

  Served served_;
  ServedReplay client_;
};

class HostileRingsTest : public HostileClientsTest {};
class HostileStreamsTest : public HostileClientsTest {};

INSTANTIATE_TEST_SUITE_P(Transports, HostileClientsTest,
                         testing::Values(Transport::kRings, Transport::kTcp), NameOfTransport);
INSTANTIATE_TEST_SUITE_P(Transports, HostileRingsTest, testing::Values(Transport::kRings),
                         NameOfTransport);
INSTANTIATE_TEST_SUITE_P(Transports, HostileStreamsTest, testing::Values(Transport::kTcp),
                         NameOfTransport);

TEST_P(HostileClientsTest, WhatIsNoRequestEndsItsConnection) {
  const std::vector<std::vector<std::byte>> requests = {
      {std::byte{99}, std::byte{0}, std::byte{0}, std::byte{0}},
      std::vector<std::byte>(200, std::byte{0xff}),
      std::vector<std::byte>(sizeof(RequestKind), std::byte{0}),
  };
  for (const auto& request : requests) {
    const auto link = Link();
    Say(*link, request);
    ExpectDropped(*link);
  }
  const auto cases = [&](auto... each) {
    (
        [&] {
          const auto link = Link();
          Say(*link, each);
          ExpectDropped(*link);
        }(),
        ...);
  };
  cases(AppendRequest{.stream = 4'000'000'000U}, AddRequest{}, FlushRequest{},
        SampleCall{.table = 1}, TableRequest{.table = 77},
        TableRequest{.kind = RequestKind::kUpdate, .count = std::uint64_t{1} << 60},
        TableRequest{.kind = RequestKind::kDelete,
                     .count = std::numeric_limits<std::uint64_t>::max()});
}

TEST_P(HostileClientsTest, RandomBytesEndTheirConnectionOrAreAnswered) {
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same each time.
  for (int round = 0; round < 60; ++round) {
    const auto link = Link();
    try {
      for (int message = 0; message < 20; ++message) {
        std::vector<std::byte> bytes(4 + random() % 200);
        for (std::byte& byte : bytes)
          byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
        const auto kind = static_cast<std::uint32_t>(random() % 14);
        std::memcpy(bytes.data(), &kind, sizeof kind);
        Say(*link, bytes);
      }
    } catch (const Error&) {  // It was dropped.
    }
  }
}

TEST_P(HostileClientsTest, StreamsAreBounded) {
  const auto link = Link();
  StreamsRequest request{.steps = SmallItems().steps};
  for (std::uint32_t i = 0; i < 60'000; i += 100) {
    request.streams.push_back({.index = i, .id = i + 1});
  }
  request.options.history = 65'535;
  EXPECT_THAT(BeginStreams(*link, request), HasSubstr("use several writers"));
  request.streams.resize(1);
  EXPECT_EQ(BeginStreams(*link, request), "");
  request.options.chunk_steps = 0;
  EXPECT_THAT(BeginStreams(*link, request), HasSubstr("chunk_steps is 0"));
}

// The second stream's steps are larger than the first's: each is read by its own.
TEST_P(HostileClientsTest, StreamsOfOtherStepsKeepTheirOwnSizes) {
  const auto link = Link();
  Spec large({LeafSpec::Box("value", DataType::kFloat64, {512}, {0}, {1})});
  EXPECT_EQ(BeginStreams(*link, {.streams = {{.index = 0, .id = 1}}, .steps = large}), "");
  EXPECT_EQ(BeginStreams(*link, {.streams = {{.index = 1, .id = 2}}, .steps = SmallItems().steps}),
            "");
  link->Begin(AppendRequest{.stream = 0}, sizeof(double));
  link->Send();
  ExpectDropped(*link);
}

TEST_P(HostileRingsTest, SamplesThatAreNotReleasedAreBounded) {
  const auto link = Link();
  std::string refused;
  for (std::uint64_t lease = 0; lease < 100 && refused.empty(); ++lease) {
    Say(*link, SampleCall{.count = 1, .wait = 1'000'000'000, .lease = lease});
    const std::span<const std::byte> answer = link->Answer(seconds(60));
    if (PlainReader(answer).Take<ReplyKind>() == ReplyKind::kDone)
      refused = ErrorIn(answer)->what();
    link->Release();
  }
  EXPECT_THAT(refused, HasSubstr("release some first"));
  for (const std::uint32_t count : {0U, 0xffffffffU}) {
    Say(*link, SampleCall{.count = count, .wait = -1, .lease = 1'000});
    EXPECT_TRUE(ErrorIn(link->Answer(seconds(60))).has_value());
    link->Release();
  }
}

TEST_P(HostileRingsTest, WhoSaysNothingOrAnotherLanguageIsTurnedAway) {
  const FileDescriptor silent = ConnectUnixSocket(served_.socket(), Soon());
  const FileDescriptor half = ConnectUnixSocket(served_.socket(), Soon());
  const std::array<std::byte, 5> few{};
  EXPECT_TRUE(TrySendDescriptors(half, few, {}));
  EXPECT_THROW(ReceiveDescriptors(half, 100, Soon()), Error);
  const FileDescriptor other = ConnectUnixSocket(served_.socket(), Soon());
  const Greeting greeting{.protocol = kReplayProtocol + 1};
  EXPECT_TRUE(TrySendDescriptors(other, std::as_bytes(std::span(&greeting, 1)), {}));
  const DescriptorMessage answer = ReceiveDescriptors(other, 1000, Soon());
  EXPECT_EQ(PlainReader(answer.bytes).Take<Welcome>().refused, 1U);
  EXPECT_TRUE(answer.descriptors.empty());
}

TEST_P(HostileClientsTest, ThoseWhoComeAndGoLeaveNothing) {
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const auto link = Link();
      Say(*link, SampleCall{.count = 1, .wait = 1'000'000'000, .lease = 1});
      if (i % 2 == 0) static_cast<void>(link->Answer(seconds(60)));
    }
    const Deadline deadline = Soon();
    while (served_.server().info().connections > 0 && !deadline.expired()) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  come_and_go(20);
  const std::size_t descriptors = EntriesOf("/proc/self/fd");
  const std::size_t threads = EntriesOf("/proc/self/task");
  come_and_go(300);
  EXPECT_LE(EntriesOf("/proc/self/fd"), descriptors + 3);
  EXPECT_LE(EntriesOf("/proc/self/task"), threads + 1);
}

TEST_P(HostileClientsTest, WhoNeverReadsHisAnswersKeepsNobodyElseWaiting) {
  // As many as are taken at once; their answers find no room on the way back.
  const auto link = Link();
  const int requests = GetParam() == Transport::kRings ? 1'000 : 30'000;
  for (int i = 0; i < requests; ++i) link->Begin(RequestKind::kServer);
  link->Send();
  for (int i = 0; i < 20; ++i) Use();
}

TEST_P(HostileStreamsTest, WhoSaysNothingOrAnotherLanguageIsTurnedAway) {
  const std::string& address = served_.address(Transport::kTcp);
  const FileDescriptor silent = ConnectTcpSocket(address, Soon());
  const FileDescriptor half = ConnectTcpSocket(address, Soon());
  EXPECT_EQ(send(half.get(), "few", 3, 0), 3);
  Use();  // They have been met, and keep nobody waiting.
  const FileDescriptor browser = ConnectTcpSocket(address, Soon());
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
  EXPECT_EQ(send(browser.get(), request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  StreamChannel strange(ConnectTcpSocket(address, Soon()), 1 << 16);
  const auto greet = [](StreamChannel& channel, const Greeting& greeting) {
    std::memcpy(channel.Reserve(sizeof greeting, Soon()).data(), &greeting, sizeof greeting);
    EXPECT_TRUE(channel.Drain(Soon()));
    return channel.Receive(Soon());
  };
  EXPECT_THROW(greet(strange, {.magic = 1}), Error);
  StreamChannel other(ConnectTcpSocket(address, Soon()), 1 << 16);
  const auto answer = greet(other, {.protocol = kReplayProtocol + 1});
  EXPECT_EQ(PlainReader(answer).Take<Welcome>().refused, 1U);
  pollfd gone{.fd = browser.get(), .events = POLLRDHUP, .revents = 0};
  EXPECT_EQ(poll(&gone, 1, 60'000), 1);
}

TEST_P(HostileStreamsTest, WhoGoesAmidAMessageOrReadsHalfOfASampleKeepsNobodyElseWaiting) {
  const auto writer = client_.NewWriter(SmallItems().steps, {}, 1);
  for (int i = 0; i < 1'000; ++i) {
    WriteValue(*writer, 0, i);
    if (i % 100 == 99) writer->Flush(0, Soon());
  }
  writer->Await(Soon());
  for (int i = 0; i < 4; ++i) {
    const auto link = Link();
    Say(*link, SampleCall{.count = 100'000, .wait = 1'000'000'000, .lease = 1});
    if (i % 2 == 0) static_cast<void>(link->Answer(seconds(60)));
  }
  for (const std::uint32_t claimed : {4U, 8'000U, 0xffffffffU}) {
    const auto link = Link();
    StreamChannel raw(ConnectTcpSocket(served_.address(Transport::kTcp), Soon()), 1 << 16);
    const Greeting greeting{.ring_bytes = 1 << 16};
    std::memcpy(raw.Reserve(sizeof greeting, Soon()).data(), &greeting, sizeof greeting);
    EXPECT_TRUE(raw.Drain(Soon()));
    EXPECT_NE(raw.Receive(Soon()).data(), nullptr);
    const StreamHeader header = StreamHeader::For(claimed);
    EXPECT_EQ(send(raw.socket().get(), &header, sizeof header, 0),
              static_cast<ssize_t>(sizeof header));
    Use();
  }
}

}  // namespace
}  // namespace menger
