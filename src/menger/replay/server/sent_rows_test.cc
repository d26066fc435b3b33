// Samples whose rows come over TCP, and what a client makes of a server that sends others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/random.h"
#include "menger/base/sharing/stream_channel.h"
#include "menger/base/sharing/tcp_socket.h"
#include "menger/replay/client/local_replay.h"
#include "menger/replay/client/row_receiver.h"
#include "menger/replay/server/serving_testing.h"

namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)

// Leaves of sizes that share no alignment, columns that show the same rows.
ItemSpec FrameItems() {
  return {
      .steps = Spec({LeafSpec::Box("flags", DataType::kUint8, {3}, {0}, {1}),
                     LeafSpec::Box("frame", DataType::kUint8, {70, 90}, {0}, {255}),
                     LeafSpec::Scalar("reward", DataType::kFloat64),
                     LeafSpec::Scalar("unused", DataType::kInt32)}),
      .columns = {{.name = "observation", .leaf = "frame", .rows = 4, .padding = Padding::kFront},
                  {.name = "reward", .leaf = "reward", .rows = 3},
                  {.name = "flags", .leaf = "flags"},
                  {.name = "next", .leaf = "frame", .rows = 4, .padding = Padding::kFront}}};
}

TableOptions FrameTable() {
  return {.name = "frames",
          .items = FrameItems(),
          .items_max = 1000,
          .bytes_max = std::size_t{16} << 20,
          .seed = 5};
}

// A bar that moves over a flat frame, or noise that no compression takes.
std::vector<std::byte> FrameOf(std::int64_t step, bool noise) {
  std::vector<std::byte> frame(70 * 90, std::byte{9});
  Random random = Random::FromSeed(static_cast<std::uint64_t>(step) + 1);
  for (std::size_t i = 0; i < (noise ? frame.size() : 20); ++i) {
    frame[(static_cast<std::size_t>(step) * 7 + i) % frame.size()] =
        static_cast<std::byte>(random.Integers(0, 256));
  }
  return frame;
}

// Writes and draws, and gives all that was drawn, as it is gathered.
std::vector<std::byte> Use(ReplayClient& client, Compression compression) {
  const auto writer = client.NewWriter(
      FrameItems().steps, {.chunk_steps = 16, .history = 6, .compression = compression}, 1);
  for (int i = 0; i < 200; ++i) {
    const std::vector<std::byte> frame = FrameOf(i, i % 48 >= 32);
    const std::uint8_t flags[3] = {static_cast<std::uint8_t>(i), 1, 2};
    const double reward = i * 0.25;
    const std::int32_t unused = -i;
    const std::byte* const leaves[] = {reinterpret_cast<const std::byte*>(flags), frame.data(),
                                       reinterpret_cast<const std::byte*>(&reward),
                                       reinterpret_cast<const std::byte*>(&unused)};
    const std::int64_t t = writer->Append(0, leaves, 1);
    if (t < 5) continue;
    const int rows = i % 20 == 5 ? 2 : 4;  // As at an episode's start.
    writer->Add(0, 0, {}, {{{t - 1 - rows, rows}, {t - 2, 3}, {t, 1}, {t - rows, rows}}});
    writer->Flush(0, Soon());
  }
  writer->Await(Soon());
  const auto sampler = client.NewSampler(0);
  const ItemSpec items = FrameItems();
  BatchGatherer gatherer(items, 300, /*threads=*/2);
  std::vector<std::byte> seen;
  Sample first;  // Kept over the next draws.
  Sample sample;
  sampler->SampleInto({.count = 32, .deadline = Soon()}, first);
  const auto look = [&](const Sample& drawn) {
    const auto count = static_cast<std::size_t>(drawn.size());
    for (const BatchColumn& column : gatherer.Gather(drawn)) {
      seen.insert(seen.end(), column.data, column.data + column.item_bytes * count);
      const auto rows = std::as_bytes(column.rows);
      seen.insert(seen.end(), rows.begin(), rows.end());
    }
  };
  for (const int count : {1, 300, 7, 64}) {
    sampler->SampleInto({.count = count, .deadline = Soon()}, sample);
    look(sample);
  }
  look(first);
  return seen;
}

TEST(SentRowsTest, BatchesAreThoseOfALocalTable) {
  for (const Compression compression : {Compression::kNone, Compression::kAutomatic}) {
    ReplayStore store({.tables = {FrameTable()}});
    LocalReplay local(store);
    Served served({FrameTable()});
    ServedReplay remote({.socket = served.address(Transport::kTcp)});
    EXPECT_EQ(Use(remote, compression), Use(local, compression));
  }
}

TEST(SentRowsTest, EachRowComesOnceHoweverManyItemsShowIt) {
  Served served;
  ServedReplay client({.socket = served.address(Transport::kTcp)});
  const auto writer = client.NewWriter(SmallItems().steps, {.chunk_steps = 100, .history = 10}, 1);
  for (int i = 0; i < 20; ++i) WriteValue(*writer, 0, i);
  writer->Flush(0, Soon());
  writer->Await(Soon());
  ServerLink link(served.address(Transport::kTcp), /*wants_memory=*/true, 1 << 16, Soon());
  link.Begin(
      SampleCall{.count = 5'000, .wait = std::chrono::nanoseconds(Soon().remaining()).count()});
  link.Send();
  const auto reply = PlainReader(link.Answer(std::chrono::seconds(60))).Take<RowsReply>();
  EXPECT_EQ(reply.kind, ReplyKind::kRows);
  EXPECT_EQ(reply.items, 5'000U);
  EXPECT_EQ(reply.runs, 1U);  // All of them were drawn, and they lie side by side.
  EXPECT_EQ(reply.row_bytes, 20 * sizeof(std::int64_t));
  const ItemSpec items = SmallItems();
  RowReceiver receiver(items);
  Sample sample;
  receiver.Receive(link, reply, sample);
  std::vector<std::int64_t> values = LastValues(items, sample);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(static_cast<std::uint64_t>(values[i]) + 1, sample.items()[i].key.number);
  }
  EXPECT_EQ(served.store().chunks().chunks(), 1U);
}

TEST(SentRowsTest, ASampleOutlivesItsConnectionAndReleasesNothingAtTheServer) {
  auto served = std::make_unique<Served>();
  ServedReplay client({.socket = served->address(Transport::kTcp)});
  const auto writer = client.NewWriter(SmallItems().steps, {}, 1);
  WriteValue(*writer, 0, 7);
  writer->Flush(0, Soon());
  writer->Await(Soon());
  const auto sampler = client.NewSampler(0);
  Sample sample;
  sampler->SampleInto({.count = 1, .deadline = Soon()}, sample);
  served.reset();
  EXPECT_EQ(LastValues(SmallItems(), sample), std::vector<std::int64_t>{7});
}

// A server that welcomes and sends `reply` and what follows.
class LyingServer {
 public:
  LyingServer(const RowsReply& reply, std::vector<std::byte> follows)
      : listener_("127.0.0.1:0"), thread_([this, reply, follows = std::move(follows)] {
          std::optional<FileDescriptor> come;
          while (!come) come = listener_.Accept();
          StreamChannel channel(std::move(*come), 1 << 16);
          channel.Receive(Soon());
          channel.Release();
          Say(channel, Welcome{});
          Say(channel, reply);
          EXPECT_TRUE(channel.SendBytes(std::vector<std::span<const std::byte>>{follows}, Soon()));
          EXPECT_THROW(channel.Receive(Soon()), ChannelClosed);
        }) {}
  ~LyingServer() { thread_.join(); }
  LyingServer(const LyingServer&) = delete;
  LyingServer& operator=(const LyingServer&) = delete;

  const std::string& address() const { return listener_.address(); }

 private:
  template <typename Message>
  static void Say(StreamChannel& channel, const Message& message) {
    std::memcpy(channel.Reserve(sizeof message, Soon()).data(), &message, sizeof message);
    EXPECT_TRUE(channel.Drain(Soon()));
  }

  ListeningTcpSocket listener_;
  std::thread thread_;
};

struct Answer {
  RowsReply reply{.items = 1, .slices = 2, .runs = 1, .row_bytes = 16};
  std::vector<Slice> slices = {{0, 0, 1}, {0, 1, 1}};
  std::vector<std::uint16_t> counts = {1, 1};
  std::vector<RowRun> runs = {{.leaf = 0, .rows = 2}};
};

// What went wrong, or nothing.
std::string Received(const std::function<void(Answer& answer)>& change) {
  Answer answer;
  change(answer);
  std::vector<std::byte> follows;
  AppendPlain(SampledItem{}, follows);
  AppendArray(answer.slices, follows);
  AppendArray(answer.counts, follows);
  AppendArray(answer.runs, follows);
  follows.resize(follows.size() + answer.reply.row_bytes % 1'000'000);
  LyingServer server(answer.reply, follows);
  ServerLink link(server.address(), true, 1 << 16, Soon());
  const ItemSpec items = SmallItems();
  RowReceiver receiver(items);
  Sample sample;
  try {
    const auto reply = PlainReader(link.Answer(std::chrono::seconds(60))).Take<RowsReply>();
    receiver.Receive(link, reply, sample);
    EXPECT_EQ(LastValues(items, sample), std::vector<std::int64_t>{0});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.what();
  }
  return "";
}

TEST(SentRowsTest, RowsThatCannotBeThoseOfItsItemsAreDataLoss) {
  EXPECT_EQ(Received([](Answer&) {}), "");
  EXPECT_NE(Received([](Answer& answer) { answer.reply.row_bytes = 32; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.reply.row_bytes = std::uint64_t{1} << 62; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.reply.items = 0xffffffff; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.reply.slices = std::uint64_t{1} << 60; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.reply.runs = 3; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.slices[1].chunk = 1; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.slices[1].offset = 2; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.slices[0].length = 3; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.counts[1] = 2; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.runs[0].leaf = 1; }), "");
  EXPECT_NE(Received([](Answer& answer) { answer.runs[0].rows = 0xffffffff; }), "");
}

}  // namespace
}  // namespace menger
