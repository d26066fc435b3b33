#include "menger/base/sharing/message_channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/sharing/ring_channel.h"
#include "menger/base/sharing/stream_channel.h"
#include "menger/base/sharing/tcp_socket.h"

// Both ends as threads, over memory and over sockets.
namespace menger {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr std::size_t kCapacity = 1 << 14;

Deadline Soon() { return Deadline::After(seconds(60)); }

using Ends = std::pair<std::unique_ptr<MessageChannel>, std::unique_ptr<MessageChannel>>;

Ends Rings() {
  auto one = std::make_unique<RingChannel>(kCapacity);
  FileDescriptor descriptor(dup(one->descriptor()));
  auto other = std::make_unique<RingChannel>(std::move(descriptor));
  return {std::move(one), std::move(other)};
}

std::pair<std::unique_ptr<StreamChannel>, std::unique_ptr<StreamChannel>> Streams() {
  const ListeningTcpSocket listener("localhost:0");
  auto one =
      std::make_unique<StreamChannel>(ConnectTcpSocket(listener.address(), Soon()), kCapacity);
  std::optional<FileDescriptor> come;
  while (!come) come = listener.Accept();
  return {std::move(one), std::make_unique<StreamChannel>(std::move(*come), kCapacity)};
}

class MessageChannelTest : public testing::TestWithParam<bool> {
 protected:
  MessageChannelTest() : ends_(GetParam() ? Ends(Streams()) : Rings()) {}

  MessageChannel& one() { return *ends_.first; }
  MessageChannel& other() { return *ends_.second; }

 private:
  Ends ends_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, MessageChannelTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Stream" : "Rings";
                         });

void Say(MessageChannel& channel, std::span<const std::byte> bytes) {
  const std::span<std::byte> room = channel.Reserve(bytes.size(), Soon());
  ASSERT_NE(room.data(), nullptr);
  if (!bytes.empty()) std::memcpy(room.data(), bytes.data(), bytes.size());
}

// The same numbers for both ends.
class Messages {
 public:
  explicit Messages(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  std::span<const std::byte> Next() {
    const std::uint64_t draw = random_();
    bytes_.resize(draw % 8 == 0 ? draw / 8 % (bytes_max_ + 1) : draw / 8 % 100);
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random_());
    return bytes_;
  }

 private:
  const std::size_t bytes_max_;
  std::mt19937_64 random_{1};  // NOLINT(cert-msc51-cpp): the same each time.
  std::vector<std::byte> bytes_;
};

TEST_P(MessageChannelTest, MessagesOfAnySizeComeInOrderAndWhole) {
  constexpr int kMessages = 20'000;
  std::thread sender([&] {
    Messages messages(one().entry_bytes_max());
    for (int i = 0; i < kMessages; ++i) {
      Say(one(), messages.Next());
      if (i % 7 == 0) one().Send();
    }
    EXPECT_TRUE(one().Drain(Soon()));
  });
  Messages messages(other().entry_bytes_max());
  int wrong = 0;
  for (int i = 0; i < kMessages; ++i) {
    const std::span<const std::byte> expected = messages.Next();
    const std::span<const std::byte> come = other().Receive(Soon());
    if (come.data() == nullptr) break;
    const bool same = come.size() == expected.size() &&
                      (come.empty() || std::memcmp(come.data(), expected.data(), come.size()) == 0);
    wrong += same ? 0 : 1;
    other().Release();
  }
  EXPECT_EQ(wrong, 0);
  sender.join();
}

TEST_P(MessageChannelTest, EachEndAsksAndAnswers) {
  std::thread answering([&] {
    for (int i = 0; i < 1'000; ++i) {
      const std::span<const std::byte> question = other().Receive(Soon());
      Say(other(), question);
      other().Release();
      other().Send();
    }
  });
  for (int i = 0; i < 1'000; ++i) {
    Say(one(), std::as_bytes(std::span(&i, 1)));
    one().Send();
    const std::span<const std::byte> answer = one().Receive(Soon());
    ASSERT_EQ(answer.size(), sizeof i);
    EXPECT_EQ(std::memcmp(answer.data(), &i, sizeof i), 0);
    one().Release();
  }
  answering.join();
}

TEST_P(MessageChannelTest, NothingHasNullBytesAndAnEmptyMessageHasNot) {
  EXPECT_EQ(other().Receive(Deadline::After(milliseconds(1))).data(), nullptr);
  Say(one(), {});
  one().Send();
  const std::span<const std::byte> come = other().Receive(Soon());
  EXPECT_NE(come.data(), nullptr);
  EXPECT_TRUE(come.empty());
}

TEST_P(MessageChannelTest, WhoDoesNotReadMakesTheOtherEndWaitUntilItsDeadline) {
  const std::size_t bytes = one().entry_bytes_max();
  std::size_t under_way = 0;
  // A socket may take more after it took none for a while: it is full where nothing drains either.
  bool full = false;
  while (!full) {
    const std::span<std::byte> room = one().Reserve(bytes, Deadline::After(milliseconds(20)));
    if (room.data() == nullptr) {
      full = !GetParam() || !one().Drain(Deadline::After(milliseconds(20)));
      continue;
    }
    std::memset(room.data(), 1, room.size());
    under_way += bytes;
    ASSERT_LT(under_way, std::size_t{1} << 26);  // What the system keeps for sockets is less.
  }
  // It goes on where it was.
  std::thread reading([&] {
    for (std::size_t come = 0; come < under_way + bytes; come += bytes) {
      EXPECT_EQ(other().Receive(Soon()).size(), bytes);
      other().Release();
    }
  });
  Say(one(), std::vector<std::byte>(bytes));
  EXPECT_TRUE(one().Drain(Soon()));
  reading.join();
}

TEST_P(MessageChannelTest, AWaitEndsWhenItsFlagIsSetAndItIsInterrupted) {
  std::atomic<bool> ended{false};
  std::thread ending([&] {
    std::this_thread::sleep_for(milliseconds(20));
    ended = true;
    one().Interrupt();
  });
  EXPECT_EQ(one().Receive(Soon().OrWhen(ended)).data(), nullptr);
  ending.join();
}

TEST_P(MessageChannelTest, WhatIsTooLongIsRefused) {
  EXPECT_THROW(one().Reserve(one().entry_bytes_max() + 1, Soon()), Error);
  EXPECT_NE(one().Reserve(one().entry_bytes_max(), Soon()).data(), nullptr);
}

TEST(StreamChannelTest, BytesBehindAMessageComeWhereTheyAreWantedInAnyNumber) {
  const auto [one, other] = Streams();
  std::vector<std::uint32_t> numbers(1'000'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto all = std::as_bytes(std::span(numbers));
  std::thread sender([&, &one = one] {
    for (int round = 0; round < 3; ++round) {
      Say(*one, std::as_bytes(std::span("message")));
      const std::vector<std::span<const std::byte>> pieces = {all.first(10), all.subspan(10, 0),
                                                              all.subspan(10)};
      EXPECT_TRUE(one->SendBytes(pieces, Soon()));
    }
    Say(*one, std::as_bytes(std::span("end")));
    one->Send();
  });
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(other->Receive(Soon()).size(), sizeof "message");
    std::vector<std::uint32_t> come(numbers.size());
    const auto room = std::as_writable_bytes(std::span(come));
    EXPECT_TRUE(other->ReceiveBytes(room.first(5), Soon()));
    EXPECT_TRUE(other->ReceiveBytes(room.subspan(5), Soon()));
    EXPECT_EQ(come, numbers);
  }
  EXPECT_EQ(other->Receive(Soon()).size(), sizeof "end");
  sender.join();
}

TEST(StreamChannelTest, WhatWasSaidBeforeTheEndIsHeardAndThenTheEnd) {
  auto [one, other] = Streams();
  Say(*one, std::as_bytes(std::span("last")));
  one->Send();
  one.reset();
  EXPECT_EQ(other->Receive(Soon()).size(), sizeof "last");
  other->Release();
  EXPECT_THROW(other->Receive(Soon()), Error);
  EXPECT_THROW(
      for (;;) {
        Say(*other, std::as_bytes(std::span("nobody hears")));
        other->Drain(Soon());
      },
      Error);
}

TEST(StreamChannelTest, WhatIsNoMessageIsDataLoss) {
  for (const std::string text : {"GET / HTTP/1.1\r\n", "\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    const auto [one, other] = Streams();
    ASSERT_EQ(send(one->socket().get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    EXPECT_THROW(other->Receive(Soon()), Error);
  }
  const auto [one, other] = Streams();
  const StreamHeader header = StreamHeader::For(kCapacity);
  ASSERT_EQ(send(one->socket().get(), &header, sizeof header, 0),
            static_cast<ssize_t>(sizeof header));
  EXPECT_THROW(other->Receive(Soon()), Error);
}

std::string Refusal(const std::string& address) {
  try {
    ListeningTcpSocket listener(address);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TcpSocketTest, NoAddressButLoopbackIsTaken) {
  for (const char* const address : {"127.0.0.1:0", "localhost:0", "127.1.2.3:0"}) {
    EXPECT_EQ(Refusal(address), "") << address;
  }
  for (const char* const address : {"0.0.0.0:7000", "192.168.1.2:7000", "example.org:7000", ":0",
                                    "[::]:7000", "127.0.0.1.example.org:7000"}) {
    EXPECT_THAT(Refusal(address), HasSubstr("not this machine's loopback")) << address;
  }
  EXPECT_THAT(Refusal("10.0.0.1:7000"), HasSubstr("it must be 127.0.0.1:7000"));
  EXPECT_THAT(Refusal("127.0.0.1:70000"), HasSubstr("a port below 65536"));
  EXPECT_THROW(ConnectTcpSocket("10.0.0.1:7000", Soon()), Error);
}

TEST(TcpSocketTest, AddressesOfTcpAreToldFromPaths) {
  for (const char* const address : {"127.0.0.1:7000", "host:1", "[::1]:80"}) {
    EXPECT_TRUE(IsTcpAddress(address)) << address;
  }
  for (const char* const path : {"replay.sock", "/run/a:7000", "a:b", "a:", "a:7x", ":7000", ""}) {
    EXPECT_FALSE(IsTcpAddress(path)) << path;
  }
}

TEST(TcpSocketTest, WhoIsNotThereIsNamed) {
  std::string address;
  { address = ListeningTcpSocket("127.0.0.1:0").address(); }
  try {
    ConnectTcpSocket(address, Deadline::After(milliseconds(1)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("nobody listens at '" + address + "'"));
  }
}

}  // namespace
}  // namespace menger
