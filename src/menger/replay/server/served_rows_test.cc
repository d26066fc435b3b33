#include "menger/replay/client/served_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/replay/open_testing.h"
#include "menger/replay/server/serving_testing.h"

namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

TableOptions OpenQueue(int size = 100) {
  TableOptions queue = OpenTable();
  queue.times_sampled_max = 1;
  queue.rate_limiter = RateLimiterOptions::Queue(size);
  return queue;
}

void Write(ServedRows& rows, std::uint32_t column, const std::string& text) {
  const std::int64_t row = rows.Append(column, BytesOf(text));
  const RowRange range{.first = row, .count = 1, .column = column};
  rows.Add(0, 1.0, {&range, 1});
}

std::vector<std::string> Draw(ServedReplay& client, int count) {
  const auto sampler = client.NewSampler(0);
  Sample sample;
  sampler->SampleInto({.count = count, .deadline = Soon()}, sample);
  std::vector<std::string> texts;
  for (int i = 0; i < sample.size(); ++i) texts.push_back(TextOf(sample, i));
  return texts;
}

TEST(ServedRowsTest, ItemsOfSeveralColumnsArriveInTheirOrder) {
  Served served({OpenQueue()});
  ServedReplay client({.socket = served.socket()});
  const auto rows = client.NewRows({});
  const std::uint32_t a = rows->AddColumn({.row_bytes = 2, .chunk_rows = 2, .history = 4});
  const std::uint32_t b = rows->AddColumn({.row_bytes = 3, .chunk_rows = 1, .history = 1});
  for (int i = 0; i < 4; ++i) rows->Append(a, BytesOf("a" + std::to_string(i)));
  rows->Append(b, BytesOf("bbb"));
  const std::vector<RowRange> both = {{.first = 0, .count = 1, .column = b},
                                      {.first = 1, .count = 3, .column = a},
                                      {.first = 0, .count = 1, .column = a}};
  rows->Add(0, 2.0, both);
  Write(*rows, a, "a4");
  rows->Await(0, Soon());
  EXPECT_EQ(rows->pending(), 0);
  EXPECT_THAT(Draw(client, 2), ElementsAre("bbba1a2a3a0", "a4"));
  EXPECT_EQ(client.table(0).items.notes, "notes");
}

TEST(ServedRowsTest, AFullTableHoldsNobodyButWhoAwaits) {
  Served served({OpenQueue(2)});
  ServedReplay client({.socket = served.socket()});
  const auto rows = client.NewRows({});
  const std::uint32_t column = rows->AddColumn({.row_bytes = 1, .chunk_rows = 4, .history = 1});
  for (int i = 0; i < 9; ++i) Write(*rows, column, std::to_string(i));
  rows->Await(7, Soon());
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded,
                        [&] { rows->Await(6, Deadline::After(milliseconds(20))); }),
              HasSubstr("7 items are not known to be inserted"));
  std::vector<std::string> drawn;
  while (drawn.size() < 9) {
    for (const std::string& text : Draw(client, 1)) drawn.push_back(text);
  }
  EXPECT_THAT(drawn, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8"));
  rows->Await(0, Soon());
}

TEST(ServedRowsTest, AServerThatComesBackGetsWhatWasNotAcknowledgedOnce) {
  const testing_files::Folder folder;
  const std::string socket = folder / "socket";
  const DurabilityOptions kept{
      .kind = Durability::kJournal, .folder = folder / "kept", .loss_max = milliseconds(100)};
  auto served = std::make_unique<Served>(std::vector{OpenQueue(3)}, socket, kept);
  ServedReplay client({.socket = socket});
  const auto rows = client.NewRows({});
  const std::uint32_t column = rows->AddColumn({.row_bytes = 1, .chunk_rows = 2, .history = 2});
  for (int i = 0; i < 8; ++i) Write(*rows, column, std::to_string(i));
  while (served->table().info().items < 3) std::this_thread::sleep_for(milliseconds(1));
  served.reset();
  served = std::make_unique<Served>(std::vector{OpenQueue(3)}, socket, kept);
  std::vector<std::string> drawn;
  while (drawn.size() < 8) {
    for (const std::string& text : Draw(client, 1)) drawn.push_back(text);
  }
  EXPECT_THAT(drawn, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  rows->Await(0, Soon());
  EXPECT_EQ(served->table().info().items, 0);
}

TEST(ServedRowsTest, ARowLargerThanTheRingBeforeIsSent) {
  Served served({OpenQueue()});
  ServedReplay client({.socket = served.socket()});
  const auto rows = client.NewRows({});
  Write(*rows, rows->AddColumn({.row_bytes = 1, .chunk_rows = 1, .history = 1}), "a");
  rows->Await(0, Soon());
  const std::string large(200'000, 'x');
  Write(*rows, rows->AddColumn({.row_bytes = 200'000, .chunk_rows = 1, .history = 1}), large);
  rows->Await(0, Soon());
  EXPECT_THAT(Draw(client, 2), ElementsAre("a", large));
}

TEST(ServedRowsTest, WhatTheServerRefusesIsSaidAndTheNextItemGoes) {
  TableOptions small = OpenQueue();
  small.bytes_max = 64;
  Served served({small, ServedTable()});
  ServedReplay client({.socket = served.socket()});
  const auto rows = client.NewRows({});
  Write(*rows, rows->AddColumn({.row_bytes = 65, .chunk_rows = 1, .history = 1}),
        std::string(65, 'x'));
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { rows->Await(0, Soon()); }),
              HasSubstr("its chunks take 128 bytes; bytes_max is 64"));
  Write(*rows, rows->AddColumn({.row_bytes = 1, .chunk_rows = 1, .history = 1}), "y");
  rows->Await(0, Soon());
  EXPECT_THAT(Draw(client, 1), ElementsAre("y"));
}

TEST(ServedRowsTest, WhatCannotBeIsRefusedBeforeItIsSent) {
  Served served({OpenQueue(), ServedTable()});
  ServedReplay client({.socket = served.socket()});
  const auto rows = client.NewRows({.bytes_max = 10});
  const std::uint32_t column = rows->AddColumn({.row_bytes = 4, .chunk_rows = 1, .history = 2});
  rows->Append(column, BytesOf("abcd"));
  rows->Append(column, BytesOf("efgh"));
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { rows->Append(column, BytesOf("ijkl")); }),
              HasSubstr("bytes_max is 10"));
  const auto why = [&](int table, const std::vector<RowRange>& ranges, double priority = 1.0) {
    return ErrorText(ErrorCode::kInvalidArgument, [&] { rows->Add(table, priority, ranges); });
  };
  const RowRange good{.first = 0, .count = 2, .column = column};
  EXPECT_THAT(why(1, {good}), HasSubstr("table 'small' has items of steps"));
  EXPECT_THAT(why(2, {good}), HasSubstr("table 2 of 2"));
  EXPECT_THAT(why(0, {}), HasSubstr("has no rows"));
  EXPECT_THAT(why(0, {good}, -1), HasSubstr("priority -1"));
  EXPECT_THAT(why(0, {{.first = 1, .count = 2, .column = column}}), HasSubstr("0 .. 1 can be had"));
  EXPECT_THAT(why(0, {{.first = 0, .count = 1, .column = 5}}), HasSubstr("column 5 of 1"));
  EXPECT_EQ(rows->pending(), 0);
}

TEST(ServedRowsTest, RowsOfTheHistoryCanBeReadBack) {
  Served served({OpenQueue()});
  ServedReplay client({.socket = served.socket()});
  const auto rows = client.NewRows({});
  const std::uint32_t column = rows->AddColumn({.row_bytes = 1, .chunk_rows = 1, .history = 2});
  for (const char* const text : {"a", "b", "c"}) rows->Append(column, BytesOf(text));
  std::byte row{};
  rows->Read(column, 2, {&row, 1});
  EXPECT_EQ(row, std::byte{'c'});
  EXPECT_THROW(rows->Read(column, 0, {&row, 1}), Error);
  EXPECT_THROW(rows->Read(column, 3, {&row, 1}), Error);
}

TEST(ServedRowsTest, AWriterThatGoesWhileItsItemsWaitHoldsNobodyUp) {
  Served served({OpenQueue(1)});
  ServedReplay client({.socket = served.socket()});
  {
    const auto rows = client.NewRows({});
    const std::uint32_t column = rows->AddColumn({.row_bytes = 1, .chunk_rows = 1, .history = 1});
    for (int i = 0; i < 5; ++i) Write(*rows, column, std::to_string(i));
    while (served.table().info().inserts_waiting == 0) std::this_thread::yield();
  }
  client.Reset(0);
  EXPECT_LE(client.info(0).items, 1);
}

// ---- Requests that nobody sends who means well

class HostileRowsTest : public testing::Test {
 protected:
  std::unique_ptr<ServerLink> Link() {
    return std::make_unique<ServerLink>(served_.socket(), /*wants_memory=*/false, 1 << 16, Soon());
  }
  static std::string Flush(ServerLink& link) {
    link.Begin(WaitRequest{.kind = RequestKind::kFlushRows, .wait = 1'000'000});
    link.Send();
    const std::optional<Error> error = ErrorIn(link.Answer(seconds(60)));
    link.Release();
    return error ? error->what() : "";
  }
  // The connection ends.
  static void ExpectDropped(ServerLink& link) {
    link.Send();
    EXPECT_THROW(
        {
          link.Begin(RequestKind::kServer);
          link.Answer(seconds(60));
          link.Release();
          link.Answer(seconds(60));
        },
        ServerGone);
  }

  Served served_{{OpenQueue()}};
};

TEST_F(HostileRowsTest, WhatFailsIsSaidByTheNextFlushUntilItBeginsAnew) {
  const auto link = Link();
  link->Begin(BeginRowsRequest{.stream = 9});
  link->Begin(AddRowsRequest{.table = 0, .ranges = 0, .sequence = 1});
  EXPECT_THAT(Flush(*link), HasSubstr("has 0 slices"));
  link->Begin(ColumnRequest{.column = 0, .options = {.row_bytes = 1}});
  EXPECT_THAT(Flush(*link), HasSubstr("has 0 slices"));
  link->Begin(BeginRowsRequest{.stream = 9});
  EXPECT_EQ(Flush(*link), "");
}

TEST_F(HostileRowsTest, ColumnsAndRowsThatCannotBeAreRefused) {
  for (const ColumnRequest& request :
       {ColumnRequest{.column = 1'000'000, .options = {.row_bytes = 1}},
        ColumnRequest{.column = 0, .options = {.row_bytes = -1}},
        ColumnRequest{.column = 0, .options = {.row_bytes = std::int64_t{1} << 62}},
        ColumnRequest{.column = 0, .options = {.row_bytes = 1, .chunk_rows = 0}}}) {
    const auto link = Link();
    link->Begin(BeginRowsRequest{.stream = 9});
    link->Begin(request);
    EXPECT_NE(Flush(*link), "");
  }
  const auto link = Link();  // A chunk larger than the store.
  link->Begin(BeginRowsRequest{.stream = 9});
  link->Begin(ColumnRequest{.column = 0, .options = {.row_bytes = 1 << 20, .chunk_rows = 65'535}});
  const std::span<std::byte> row = link->Begin(RowRequest{.bytes = 5}, 5);
  std::memset(row.data(), 1, row.size());
  EXPECT_THAT(Flush(*link), HasSubstr("a row of 5 bytes for column 0"));
}

TEST_F(HostileRowsTest, WhatIsNoRequestEndsTheConnection) {
  const auto before = Link();
  before->Begin(ColumnRequest{.column = 0, .options = {.row_bytes = 1}});
  ExpectDropped(*before);
  const auto longer = Link();
  longer->Begin(BeginRowsRequest{});
  longer->Begin(RowRequest{.column = 0, .bytes = std::uint64_t{1} << 63});
  ExpectDropped(*longer);
  const auto table = Link();
  table->Begin(BeginRowsRequest{});
  table->Begin(AddRowsRequest{.table = 5});
  ExpectDropped(*table);
  const auto ranges = Link();
  ranges->Begin(BeginRowsRequest{});
  ranges->Begin(AddRowsRequest{.table = 0, .ranges = 0xffffffff});
  ExpectDropped(*ranges);
}

}  // namespace
}  // namespace menger
