#include "menger/runtime/cluster/store_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "menger/runtime/net/random_changes_testing.h"

namespace menger {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;
using Operation = StoreOperation;
using Outcome = StoreResult::Outcome;
using Bytes = std::vector<std::byte>;

constexpr StoreTable kTable = StoreTable::kObjects;

StoreRequest FullBatch() {
  return {.number = 1,
          .remaining = std::chrono::seconds(5),
          .batch = {Operation::Get(kTable, std::string("\0\xff", 2)),
                    Operation::PutIf(kTable, "key", ~std::uint64_t{0}, "value").BoundTo(7),
                    Operation::DeleteIf(StoreTable::kEvents, "key", 0),
                    Operation::Acquire("owner", std::chrono::hours(1)),
                    Operation::Renew(9, nanoseconds(0))}};
}

StoreRequest FullScan() {
  return {.number = ~std::uint64_t{0},
          .kind = StoreRequest::Kind::kScan,
          .remaining = nanoseconds(1),
          .table = StoreTable::kNames,
          .prefix = "a/",
          .after = "a/1",
          .limit = 256};
}

StoreRecord FullRecord() {
  return {
      .key = "key", .value = std::string("val\0ue", 6), .version = 3, .lease = 4, .expired = true};
}

StoreAnswer FullResults() {
  return {.number = 2,
          .results = {{.record = FullRecord()},
                      {.outcome = Outcome::kConflict, .record = {.version = 8}},
                      {.outcome = Outcome::kFailed, .error = FailedPrecondition("it is over")}}};
}

StoreAnswer FullPage() {
  return {.number = 3,
          .kind = StoreAnswer::Kind::kPage,
          .page = {.records = {FullRecord(), {}},
                   .next = "key",
                   .newest = 5,
                   .error = Unavailable("not all")}};
}

void ExpectSame(const Error& a, const Error& b) {
  EXPECT_EQ(a.code(), b.code());
  EXPECT_STREQ(a.what(), b.what());
}

void ExpectSame(const StoreRecord& a, const StoreRecord& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.lease, b.lease);
  EXPECT_EQ(a.expired, b.expired);
}

TEST(StoreCodecTest, RequestsComeBackAsTheyWere) {
  const StoreRequest batch = DecodeStoreRequest(EncodeStoreRequest(FullBatch()));
  EXPECT_EQ(batch.number, 1u);
  EXPECT_EQ(batch.kind, StoreRequest::Kind::kSubmit);
  EXPECT_EQ(batch.remaining, std::chrono::seconds(5));
  const std::vector<Operation> sent = FullBatch().batch;
  ASSERT_EQ(batch.batch.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(batch.batch[i].kind, sent[i].kind);
    EXPECT_EQ(batch.batch[i].table, sent[i].table);
    EXPECT_EQ(batch.batch[i].key, sent[i].key);
    EXPECT_EQ(batch.batch[i].value, sent[i].value);
    EXPECT_EQ(batch.batch[i].expected, sent[i].expected);
    EXPECT_EQ(batch.batch[i].lease, sent[i].lease);
    EXPECT_EQ(batch.batch[i].duration, sent[i].duration);
  }
  const StoreRequest scan = DecodeStoreRequest(EncodeStoreRequest(FullScan()));
  EXPECT_EQ(scan.number, ~std::uint64_t{0});
  EXPECT_EQ(scan.kind, StoreRequest::Kind::kScan);
  EXPECT_EQ(scan.remaining, nanoseconds(1));
  EXPECT_EQ(scan.table, StoreTable::kNames);
  EXPECT_EQ(scan.prefix, "a/");
  EXPECT_EQ(scan.after, "a/1");
  EXPECT_EQ(scan.limit, 256);
  const StoreRequest watch = DecodeStoreRequest(EncodeStoreRequest(
      {.number = 4, .kind = StoreRequest::Kind::kWatch, .table = kTable, .prefix = "b"}));
  EXPECT_EQ(watch.kind, StoreRequest::Kind::kWatch);
  EXPECT_EQ(watch.table, kTable);
  EXPECT_EQ(watch.prefix, "b");
  const StoreRequest unwatch =
      DecodeStoreRequest(EncodeStoreRequest({.number = 4, .kind = StoreRequest::Kind::kUnwatch}));
  EXPECT_EQ(unwatch.number, 4u);
  EXPECT_EQ(unwatch.kind, StoreRequest::Kind::kUnwatch);
}

TEST(StoreCodecTest, AnswersComeBackAsTheyWere) {
  const StoreAnswer results = DecodeStoreAnswer(EncodeStoreAnswer(FullResults()));
  EXPECT_EQ(results.number, 2u);
  const std::vector<StoreResult> sent = FullResults().results;
  ASSERT_EQ(results.results.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(results.results[i].outcome, sent[i].outcome);
    ExpectSame(results.results[i].record, sent[i].record);
    ASSERT_EQ(results.results[i].error.has_value(), sent[i].error.has_value());
    if (sent[i].error) ExpectSame(*results.results[i].error, *sent[i].error);
  }
  const StoreAnswer page = DecodeStoreAnswer(EncodeStoreAnswer(FullPage()));
  EXPECT_EQ(page.number, 3u);
  ASSERT_EQ(page.page.records.size(), 2u);
  ExpectSame(page.page.records[0], FullRecord());
  EXPECT_EQ(page.page.next, "key");
  EXPECT_EQ(page.page.newest, 5u);
  ExpectSame(page.page.error.value(), FullPage().page.error.value());
  EXPECT_EQ(
      DecodeStoreAnswer(EncodeStoreAnswer({.number = 6, .kind = StoreAnswer::Kind::kHint})).number,
      6u);
  const StoreAnswer no_watch{
      .number = 7, .kind = StoreAnswer::Kind::kNoWatch, .error = Unavailable("too many")};
  ExpectSame(DecodeStoreAnswer(EncodeStoreAnswer(no_watch)).error.value(), *no_watch.error);
}

TEST(StoreCodecTest, LengthsAreKnownBefore) {
  const StoreRequest watch{
      .number = 4, .kind = StoreRequest::Kind::kWatch, .table = kTable, .prefix = "b"};
  const StoreRequest unwatch{.number = 4, .kind = StoreRequest::Kind::kUnwatch};
  for (const StoreRequest& request : {FullBatch(), StoreRequest{}, FullScan(), watch, unwatch}) {
    EXPECT_EQ(EncodedBytes(request), EncodeStoreRequest(request).size());
  }
  const std::size_t none = EncodeStoreAnswer({}).size();
  for (const StoreResult& result : FullResults().results) {
    EXPECT_EQ(EncodedBytes(result), EncodeStoreAnswer({.results = {result}}).size() - none);
  }
}

TEST(StoreCodecTest, TimesAreBounded) {
  const auto sent = [](nanoseconds time) {
    return DecodeStoreRequest(
               EncodeStoreRequest({.remaining = time, .batch = {Operation::Acquire("a", time)}}))
        .batch.at(0)
        .duration;
  };
  EXPECT_EQ(sent(nanoseconds(-5)), nanoseconds(0));
  EXPECT_GT(sent(nanoseconds::max()), std::chrono::hours(24 * 365 * 100));
  EXPECT_LT(sent(nanoseconds::max()), nanoseconds::max() / 2 + nanoseconds(2));
}

std::string WhyNot(const Bytes& request) {
  try {
    (void)DecodeStoreRequest(request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}
std::string WhyNoAnswer(const Bytes& answer) {
  try {
    (void)DecodeStoreAnswer(answer);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}

TEST(StoreCodecTest, WhatIsCutAnywhereIsRefused) {
  for (const StoreRequest& request : {FullBatch(), FullScan()}) {
    const Bytes bytes = EncodeStoreRequest(request);
    // In a buffer of its own, so that AddressSanitizer sees who reads on.
    for (auto end = bytes.begin(); end != bytes.end(); ++end) {
      EXPECT_THAT(WhyNot(Bytes(bytes.begin(), end)), HasSubstr("a request to a control store"));
    }
    Bytes longer = bytes;
    longer.push_back({});
    EXPECT_THAT(WhyNot(longer), HasSubstr("1 bytes behind its end"));
  }
  for (const StoreAnswer& answer : {FullResults(), FullPage()}) {
    const Bytes bytes = EncodeStoreAnswer(answer);
    for (auto end = bytes.begin(); end != bytes.end(); ++end) {
      EXPECT_THAT(WhyNoAnswer(Bytes(bytes.begin(), end)),
                  HasSubstr("an answer of a control store"));
    }
  }
}

TEST(StoreCodecTest, WhatIsWrongIsNamed) {
  const auto changed = [](Bytes bytes, std::size_t at, int value) {
    bytes[at] = static_cast<std::byte>(value);
    return bytes;
  };
  // Number (8), kind (1), remaining (8), count (4); then of the first operation kind, table, key's
  // length (4).
  const Bytes batch = EncodeStoreRequest({.batch = {Operation::Get(kTable, "")}});
  EXPECT_THAT(WhyNot(changed(batch, 8, 4)), HasSubstr("4 as 'kind'"));
  EXPECT_THAT(WhyNot(changed(batch, 16, 255)), HasSubstr("as 'remaining'"));
  EXPECT_THAT(WhyNot(changed(batch, 18, 255)), HasSubstr("elements in 'batch'"));
  EXPECT_THAT(WhyNot(changed(batch, 21, 5)), HasSubstr("5 as 'operation.kind'"));
  EXPECT_THAT(WhyNot(changed(batch, 22, 8)), HasSubstr("8 as 'table'"));
  EXPECT_THAT(WhyNot(changed(batch, 22, 5)), HasSubstr("5 as 'table'"));
  EXPECT_THAT(WhyNot(changed(batch, 26, 255)), HasSubstr("ends in 'operation.key'"));
  EXPECT_THAT(WhyNot(changed(batch, 31, 2)), HasSubstr("2 as 'operation.expects'"));
  EXPECT_THAT(WhyNot(changed(batch, batch.size() - 1, 255)), HasSubstr("'operation.duration'"));
  const Bytes many = EncodeStoreRequest({.batch = std::vector(kStoreBatchMax + 1, Operation{})});
  EXPECT_THAT(WhyNot(many), HasSubstr("16385 elements in 'batch'"));
  const Bytes scan = EncodeStoreRequest(FullScan());
  EXPECT_THAT(WhyNot(changed(scan, scan.size() - 1, 255)), HasSubstr("as 'limit'"));
  EXPECT_THAT(WhyNot(changed(scan, scan.size() - 3, 0)), HasSubstr("0 as 'limit'"));

  const Bytes results = EncodeStoreAnswer({.results = {{}}});
  EXPECT_THAT(WhyNoAnswer(changed(results, 8, 4)), HasSubstr("4 as 'kind'"));
  EXPECT_THAT(WhyNoAnswer(changed(results, 11, 255)), HasSubstr("elements in 'results'"));
  EXPECT_THAT(WhyNoAnswer(changed(results, 13, 3)), HasSubstr("3 as 'result.outcome'"));
  EXPECT_THAT(WhyNoAnswer(changed(results, 13, 2)), HasSubstr("'error.code'"));  // There is none.
  const Bytes no_watch =
      EncodeStoreAnswer({.kind = StoreAnswer::Kind::kNoWatch, .error = Unavailable("too many")});
  EXPECT_THAT(WhyNoAnswer(changed(no_watch, no_watch.size() - 1, 0)), HasSubstr("a zero byte"));
  EXPECT_THAT(WhyNoAnswer(changed(no_watch, 9, 8)), HasSubstr("8 as 'error.code'"));
}

TEST(StoreCodecTest, RandomChangesAreReadOrRefused) {
  EXPECT_GT(CountRefusedChanges(13, EncodeStoreRequest(FullBatch()), WhyNot), 0);
  EXPECT_GT(CountRefusedChanges(14, EncodeStoreAnswer(FullPage()), WhyNoAnswer), 0);
}

}  // namespace
}  // namespace menger
