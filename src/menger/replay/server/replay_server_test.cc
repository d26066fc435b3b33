#include "menger/replay/server/replay_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/replay/client/local_replay.h"
#include "menger/replay/server/serving_testing.h"

namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

void Until(auto reached) {
  const Deadline deadline = Soon();
  while (!reached() && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(reached());
}

// What a training loop does, with whatever client: writes, draws, updates by what it drew. All that
// it saw.
std::vector<std::int64_t> Use(ReplayClient& client) {
  std::vector<std::int64_t> seen;
  const int table = client.Find("small");
  const ItemSpec& items = client.table(table).items;
  const auto writer = client.NewWriter(items.steps, {.chunk_steps = 4, .history = 4}, 3);
  const auto sampler = client.NewSampler(table);
  Sample sample;
  for (int round = 0; round < 50; ++round) {
    for (int stream = 0; stream < 3; ++stream) {
      for (int step = 0; step < 5; ++step) {
        WriteValue(*writer, stream, 1000 * stream + 5 * round + step);
      }
      writer->Flush(stream, Soon());
    }
    writer->Await(Soon());
    sampler->SampleInto({.count = 7, .deadline = Soon()}, sample);
    for (const std::int64_t value : LastValues(items, sample)) seen.push_back(value);
    std::vector<PriorityUpdate> updates;
    for (const SampledItem& item : sample.items()) {
      seen.push_back(static_cast<std::int64_t>(item.key.number));
      seen.push_back(item.times_sampled);
      updates.push_back({.key = item.key, .priority = 1.0 + static_cast<double>(seen.size() % 9)});
    }
    seen.push_back(client.UpdatePriorities(table, updates).found);
    sample.Release();
  }
  seen.push_back(client.info(table).items);
  return seen;
}

// The same over rings and over TCP.
class ReplayServerTest : public testing::TestWithParam<Transport> {
 protected:
  // At the same address each time.
  std::unique_ptr<Served> Serve(const std::vector<TableOptions>& tables = {ServedTable()}) {
    auto served = std::make_unique<Served>(tables, folder_ / "socket", DurabilityOptions{},
                                           ReplayServerOptions{.listen = listen_});
    listen_ = served->server().listens_at();
    address_ = served->address(GetParam());
    return served;
  }
  const std::string& address() const { return address_; }

 private:
  const testing_files::Folder folder_;
  std::string listen_ = "127.0.0.1:0";
  std::string address_;
};

INSTANTIATE_TEST_SUITE_P(Transports, ReplayServerTest,
                         testing::Values(Transport::kRings, Transport::kTcp), NameOfTransport);

TEST_P(ReplayServerTest, AServedTableGivesTheBitsOfALocalOne) {
  TableOptions table = ServedTable();
  table.sampler = {.kind = SelectorKind::kPrioritised, .exponent = 0.5};
  table.items_max = 200;
  ReplayStore store({.tables = {table}});
  LocalReplay local(store);
  const auto served = Serve({table});
  ServedReplay remote({.socket = address()});
  EXPECT_EQ(Use(remote), Use(local));
}

TEST_P(ReplayServerTest, WhatAClientHoldsGoesWithItsConnection) {
  const auto served = Serve();
  {
    ServedReplay client({.socket = address()});
    const auto writer = client.NewWriter(client.table(0).items.steps, {.chunk_steps = 4}, 1);
    for (int i = 0; i < 20; ++i) WriteValue(*writer, 0, i);
    writer->Flush(0, Soon());
    writer->Await(Soon());
    const auto sampler = client.NewSampler(0);
    Sample sample;
    sampler->SampleInto({.count = 5, .deadline = Soon()}, sample);
    for (std::uint64_t i = 0; i < 20; ++i) {
      served->table().Delete({{{.number = i + 1, .slot = static_cast<std::uint32_t>(i)}}});
    }
    EXPECT_EQ(served->table().info().items, 0);
    EXPECT_GT(served->store().chunks().chunks(), 0U);
    EXPECT_EQ(LastValues(client.table(0).items, sample).size(), 5U);
  }
  Until([&] { return served->store().chunks().chunks() == 0; });
  Until([&] { return served->server().info().connections == 0; });
}

TEST_P(ReplayServerTest, DeadlinesAreTheTablesAndSayWhy) {
  const auto served = Serve();
  ServedReplay client({.socket = address()});
  const auto sampler = client.NewSampler(0);
  Sample sample;
  const std::string text = ErrorText(ErrorCode::kDeadlineExceeded, [&] {
    sampler->SampleInto({.count = 1, .deadline = Deadline::After(milliseconds(20))}, sample);
  });
  EXPECT_THAT(text, HasSubstr("table 'small'"));
  EXPECT_THAT(text, HasSubstr("min size 1"));
  EXPECT_EQ(sample.size(), 0);
}

TEST_P(ReplayServerTest, AWholeBatchIsDrawnAtOnceOrNotAtAll) {
  TableOptions table = ServedTable();
  table.rate_limiter = {.samples_per_insert = 1, .min_size = 1, .min_diff = 0};
  const auto served = Serve({table});
  ServedReplay client({.socket = address()});
  const auto writer = client.NewWriter(SmallItems().steps, {.history = 4}, 1);
  const auto sampler = client.NewSampler(0);
  Sample sample;
  for (int i = 0; i < 2; ++i) WriteValue(*writer, 0, i);
  writer->Flush(0, Soon());
  writer->Await(Soon());
  SampleRequest request{.count = 3, .whole = true, .deadline = Deadline::After({})};
  EXPECT_THAT(
      ErrorText(ErrorCode::kDeadlineExceeded, [&] { sampler->SampleInto(request, sample); }),
      HasSubstr("3 items could not be sampled"));
  EXPECT_EQ(client.info(0).samples, 0);
  WriteValue(*writer, 0, 2);
  writer->Flush(0, Soon());
  request.deadline = Soon();
  sampler->SampleInto(request, sample);
  EXPECT_EQ(sample.size(), 3);
}

TEST_P(ReplayServerTest, AWaitOfAClientThatHasGoneEnds) {
  const auto served = Serve();
  auto link = std::make_unique<ServerLink>(address(), true, 1 << 16, Soon());
  link->Begin(SampleCall{.count = 1, .wait = std::chrono::nanoseconds(seconds(3600)).count()});
  link->Send();
  Until([&] { return served->table().info().samples_waiting == 1; });
  link.reset();
  Until([&] { return served->table().info().samples_waiting == 0; });
  Until([&] { return served->server().info().connections == 0; });
}

TEST_P(ReplayServerTest, AServerThatComesBackIsFoundAndWhatWasNotAcknowledgedIsSentAgain) {
  TableOptions table = ServedTable();
  table.sampler = {.kind = SelectorKind::kFifo};
  table.times_sampled_max = 1;
  auto served = Serve({table});
  ServedReplay client({.socket = address()});
  const ItemSpec& items = client.table(0).items;
  constexpr int kStreams = 3;
  const auto writer = client.NewWriter(items.steps, {.chunk_steps = 4, .history = 8}, kStreams);
  const auto sampler = client.NewSampler(0);
  const auto write = [&](int first, int last) {
    for (int stream = 0; stream < kStreams; ++stream) {
      for (int i = first; i <= last; ++i) WriteValue(*writer, stream, 100 * stream + i);
    }
  };
  const auto flush = [&] {
    for (int stream = 0; stream < kStreams; ++stream) writer->Flush(stream, Soon());
    writer->Await(Soon());
  };
  Sample before;
  write(0, 9);
  flush();
  sampler->SampleInto({.count = 4, .deadline = Soon()}, before);
  write(10, 12);
  served.reset();
  write(13, 14);
  served = Serve({table});
  flush();
  EXPECT_THAT(LastValues(items, before), ElementsAre(0, 1, 2, 3));  // Of the server that has gone.
  Sample after;
  sampler->SampleInto({.count = 15, .deadline = Soon()}, after);
  EXPECT_THAT(LastValues(items, after),
              ElementsAre(10, 11, 12, 13, 14, 110, 111, 112, 113, 114, 210, 211, 212, 213, 214));
  EXPECT_EQ(client.info(0).inserts, 15);
}

TEST_P(ReplayServerTest, WhoWaitsWhenItsServerStopsWaitsAtTheNextOne) {
  auto served = Serve();
  ServedReplay client({.socket = address()});
  std::vector<std::int64_t> drawn;
  std::thread waiting([&] {
    const auto sampler = client.NewSampler(0);
    Sample sample;
    sampler->SampleInto({.count = 1, .deadline = Soon()}, sample);
    drawn = LastValues(client.table(0).items, sample);
  });
  Until([&] { return served->table().info().samples_waiting == 1; });
  served->server().Stop(Deadline::After(milliseconds(10)));
  served.reset();
  served = Serve();
  const auto writer = client.NewWriter(SmallItems().steps, {}, 1);
  WriteValue(*writer, 0, 5);
  writer->Flush(0, Soon());
  writer->Await(Soon());
  waiting.join();
  EXPECT_THAT(drawn, ElementsAre(5));
}

TEST_P(ReplayServerTest, AServerThatStopsAnswersWhatHasCome) {
  const auto served = Serve();
  ServerLink link(address(), /*wants_memory=*/false, 1 << 16, Soon());
  constexpr int kQuestions = 100;
  for (int i = 0; i < kQuestions; ++i) link.Begin(TableRequest{});
  link.Send();
  served->server().Stop(Soon());
  for (int i = 0; i < kQuestions; ++i) {
    EXPECT_FALSE(link.Answer(seconds(1)).empty());
    link.Release();
  }
  EXPECT_THROW(link.Answer(seconds(1)), ServerGone);
}

// Twice the same, as a writer does that was not answered.
TEST_P(ReplayServerTest, WhatIsSentAgainIsTakenOnce) {
  const auto served = Serve();
  for (int life = 0; life < 2; ++life) {
    ServerLink link(address(), /*wants_memory=*/false, 1 << 16, Soon());
    const std::string streams = EncodeStreams(
        {.streams = {{.index = 0, .id = 77}}, .steps = SmallItems().steps, .options = {}});
    const std::span<std::byte> room = link.Begin(RequestKind::kStreams, streams.size());
    std::memcpy(room.data(), streams.data(), streams.size());
    for (std::int64_t i = 0; i < 5; ++i) {
      std::memcpy(link.Begin(AppendRequest{}, sizeof i).data(), &i, sizeof i);
      const StepRange ranges[] = {{.first = i, .count = 1}, {.first = i, .count = 1}};
      std::memcpy(
          link.Begin(AddRequest{.sequence = static_cast<std::uint64_t>(i + 1)}, sizeof ranges)
              .data(),
          ranges, sizeof ranges);
    }
    link.Begin(FlushRequest{.wait = 1'000'000'000});
    link.Send();
    for (int answer = 0; answer < 2; ++answer) {  // kStreams, kFlush.
      EXPECT_FALSE(ErrorIn(link.Answer(seconds(10))).has_value());
      link.Release();
    }
  }
  EXPECT_EQ(served->table().info().items, 5);
  EXPECT_EQ(served->table().info().repeated, 5);
}

TEST(ReplayServerAddressTest, TwoServersDoNotShareASocketAndALeftOverOneIsReplaced) {
  const testing_files::Folder folder;
  const std::string socket = folder / "socket";
  Served first({ServedTable()}, socket);
  EXPECT_THAT(
      ErrorText(ErrorCode::kFailedPrecondition, [&] { Served second({ServedTable()}, socket); }),
      HasSubstr("another process listens"));
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] {
                          Served second({ServedTable()}, folder / "other", {},
                                        ReplayServerOptions{.listen = first.server().listens_at()});
                        }),
              HasSubstr("another process listens at '127.0.0.1:"));
}

TEST(ReplayServerAddressTest, NobodyThereIsSaidWithThePath) {
  EXPECT_THAT(
      ErrorText(ErrorCode::kUnavailable,
                [] { ServedReplay({.socket = "/nowhere/x", .patience = milliseconds(1)}); }),
      HasSubstr("/nowhere/x"));
}

}  // namespace
}  // namespace menger
