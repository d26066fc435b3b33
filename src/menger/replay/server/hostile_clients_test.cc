#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
class HostileClientsTest : public testing::Test {
 protected:
  HostileClientsTest() : client_({.socket = served_.socket()}) { Use(); }
  ~HostileClientsTest() override { Use(); }

  std::unique_ptr<ServerLink> Link() {
    return std::make_unique<ServerLink>(served_.socket(), /*wants_memory=*/false, 1 << 16, Soon());
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

TEST_F(HostileClientsTest, WhatIsNoRequestEndsItsConnection) {
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

TEST_F(HostileClientsTest, RandomBytesEndTheirConnectionOrAreAnswered) {
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

TEST_F(HostileClientsTest, StreamsAreBounded) {
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
TEST_F(HostileClientsTest, StreamsOfOtherStepsKeepTheirOwnSizes) {
  const auto link = Link();
  Spec large({LeafSpec::Box("value", DataType::kFloat64, {512}, {0}, {1})});
  EXPECT_EQ(BeginStreams(*link, {.streams = {{.index = 0, .id = 1}}, .steps = large}), "");
  EXPECT_EQ(BeginStreams(*link, {.streams = {{.index = 1, .id = 2}}, .steps = SmallItems().steps}),
            "");
  link->Begin(AppendRequest{.stream = 0}, sizeof(double));
  link->Send();
  ExpectDropped(*link);
}

TEST_F(HostileClientsTest, SamplesThatAreNotReleasedAreBounded) {
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

TEST_F(HostileClientsTest, WhoSaysNothingOrAnotherLanguageIsTurnedAway) {
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

TEST_F(HostileClientsTest, ThoseWhoComeAndGoLeaveNothing) {
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const auto link = Link();
      Say(*link, SampleCall{.count = 1, .wait = 1'000'000'000, .lease = 1});
      if (i % 2 == 0) static_cast<void>(link->Answer(seconds(60)));
    }
    const Deadline deadline = Soon();
    while (served_.server().info().connections > 1 && !deadline.expired()) {
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

TEST_F(HostileClientsTest, WhoNeverReadsHisAnswersKeepsNobodyElseWaiting) {
  // As many as the ring for requests takes at once; their answers do not fit into the other one.
  const auto link = Link();
  for (int i = 0; i < 1'000; ++i) link->Begin(RequestKind::kServer);
  link->Send();
  for (int i = 0; i < 20; ++i) Use();
}

}  // namespace
}  // namespace menger
