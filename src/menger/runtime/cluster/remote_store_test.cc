#include "menger/runtime/cluster/remote_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/runtime/cluster/remote_store_testing.h"
#include "menger/runtime/control/control_store_testing.h"
#include "menger/runtime/control/store_testing.h"

namespace menger::testing_stores {
namespace {

using testing::Each;
using Operation = StoreOperation;

constexpr std::chrono::milliseconds kShort{30};

struct RemoteWorld {
  static constexpr int kRandomOperations = 2'000;
  static constexpr int kAdditions = 100;

  ControlStore& store() { return client.store(); }

  std::atomic<std::int64_t> now{1000};
  EmbeddedStore embedded{{.now = [this] { return now.load(); }}};
  StoreHead head{embedded};
  StoreClient client{head.address()};
};
INSTANTIATE_TYPED_TEST_SUITE_P(Remote, ControlStoreTest, RemoteWorld);

class RemoteStoreTest : public testing::Test {
 protected:
  // The process that has it goes, and comes at the same address.
  void Restart() {
    const std::string address = head_->address();
    head_.reset();
    head_.emplace(held_, address);
  }

  EmbeddedStore embedded_;
  HeldStore held_{embedded_};
  std::optional<StoreHead> head_{std::in_place, held_};
  StoreClient client_{head_->address()};
  ControlStore& store_ = client_.store();
};

TEST_F(RemoteStoreTest, AnotherProcessAtTheAddressIsFound) {
  held_.Release(/*from_now_on=*/true);
  ASSERT_TRUE(Do(store_, Operation::Put(kTable, "a", "1")).done());
  const std::string address = head_->address();
  head_.reset();
  ASSERT_TRUE(WaitUntil([&] { return client_.store().last_failure().has_value(); }));
  Asked asked;
  store_.Submit({Operation::Put(kTable, "a", "2")}, Soon(), asked.results());
  EXPECT_FALSE(asked.completed());
  head_.emplace(held_, address);
  EXPECT_TRUE(asked.Wait().at(0).done());
  EXPECT_EQ(ValueOf(embedded_, kTable, "a"), "2");
  EXPECT_FALSE(client_.store().last_failure());
}

TEST_F(RemoteStoreTest, WhatWasUnderWayWhenTheStreamEndedMayHaveBeenMade) {
  Asked put;
  Asked scan;
  store_.Submit({Operation::Put(kTable, "a", "1"), Operation::Get(kTable, "a")}, Soon(),
                put.results());
  store_.Scan(kTable, "", "", 10, Soon(), scan.page());
  ASSERT_TRUE(held_.WaitHeld(2));
  head_->CutStreams();
  const std::vector<StoreResult> results = put.Wait();
  ASSERT_EQ(results.size(), 2u);
  for (const StoreResult& result : results) {
    EXPECT_EQ(result.error->code(), ErrorCode::kUnavailable);
    EXPECT_THAT(result.error->what(), HasSubstr("may have been made"));
    EXPECT_THAT(result.error->what(), HasSubstr(head_->address()));
  }
  EXPECT_EQ(scan.WaitError().code(), ErrorCode::kUnavailable);
  held_.Release(/*from_now_on=*/true);  // Nobody is there to be told.
  EXPECT_EQ(ValueOf(store_, kTable, "a"), "1");
}

TEST_F(RemoteStoreTest, TheStoreMayCompleteWhenItsServerHasGone) {
  Asked asked;
  store_.Submit({Operation::Put(kTable, "a", "1")}, Soon(), asked.results());
  ASSERT_TRUE(held_.WaitHeld(1));
  head_.reset();
  EXPECT_EQ(asked.WaitError().code(), ErrorCode::kUnavailable);
  held_.Release();
  EXPECT_EQ(ValueOf(embedded_, kTable, "a"), "1");
}

TEST_F(RemoteStoreTest, AnAnswerAfterTheDeadlineIsNobodys) {
  Asked asked;
  store_.Submit({Operation::Get(kTable, "a")}, Deadline::After(kShort), asked.results());
  const Error why = asked.WaitError();
  EXPECT_EQ(why.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(why.what(), HasSubstr(head_->address()));
  held_.Release(/*from_now_on=*/true);
  EXPECT_TRUE(Do(store_, Operation::Get(kTable, "a")).done());
}

TEST_F(RemoteStoreTest, ADeadlineMayBeOverBecauseNobodyWaitsAnyLonger) {
  std::atomic<bool> nobody_waits{false};
  Asked asked;
  store_.Submit({Operation::Get(kTable, "a")}, Soon().OrWhen(nobody_waits), asked.results());
  ASSERT_TRUE(held_.WaitHeld(1));
  nobody_waits = true;
  EXPECT_EQ(asked.WaitError().code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(RemoteStoreTest, WhatWaitedForAStreamIsDoneInItsOrder) {
  held_.Release(/*from_now_on=*/true);
  const std::string address = head_->address();
  head_.reset();
  ASSERT_TRUE(WaitUntil([&] { return client_.store().last_failure().has_value(); }));
  std::list<Asked> asked;
  for (int i = 0; i < 100; ++i) {
    store_.Submit({Operation::Put(kTable, "a", std::to_string(i))}, Soon(),
                  asked.emplace_back().results());
  }
  head_.emplace(held_, address);
  StoreVersion last = 0;
  for (Asked& each : asked) {
    const StoreResult result = each.Wait().at(0);
    ASSERT_TRUE(result.done());
    EXPECT_GT(result.record.version, last);
    last = result.record.version;
  }
  EXPECT_EQ(ValueOf(embedded_, kTable, "a"), "99");
}

TEST_F(RemoteStoreTest, MoreThanMayWaitIsRefusedAtOnce) {
  StoreClient modest(head_->address(), {.requests_max = 2});
  Asked first;
  Asked second;
  Asked third;
  for (Asked* asked : {&first, &second, &third}) {
    modest.store().Submit({Operation::Get(kTable, "a")}, Soon(), asked->results());
  }
  ASSERT_TRUE(third.completed());
  EXPECT_EQ(third.WaitError().code(), ErrorCode::kUnavailable);
  ASSERT_TRUE(held_.WaitHeld(2));
  held_.Release();
  EXPECT_TRUE(first.Wait().at(0).done() && second.Wait().at(0).done());
}

TEST_F(RemoteStoreTest, ABatchThatIsNoFrameIsRefused) {
  held_.Release(/*from_now_on=*/true);
  const std::string large(std::size_t{9} << 20, 'x');
  const auto results = RunBatch(
      store_, {Operation::Put(kTable, "a", large), Operation::Put(kTable, "b", "")}, Soon());
  ASSERT_EQ(results.size(), 2u);
  for (const StoreResult& result : results) {
    EXPECT_EQ(result.error->code(), ErrorCode::kInvalidArgument);
  }
  const std::vector many(kStoreBatchMax + 1, Operation::Get(kTable, "a"));
  EXPECT_EQ(RunBatch(store_, many, Soon()).back().error->code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(RunBatch(store_, {many.begin() + 1, many.end()}, Soon()).back().done());
}

TEST_F(RemoteStoreTest, WhatNoAnswerHasRoomForIsSaidToBeTooMuch) {
  held_.Release(/*from_now_on=*/true);
  const std::string large(std::size_t{5} << 20, 'x');
  ASSERT_TRUE(Do(store_, Operation::Put(kTable, "a", large)).done());
  const auto results = RunBatch(store_,
                                {Operation::Get(kTable, "a"), Operation::Put(kTable, "b", "1"),
                                 Operation::Get(kTable, "a"), Operation::Get(kTable, "b")},
                                Soon());
  EXPECT_TRUE(results[0].record.value == large);
  EXPECT_TRUE(results[1].done());
  EXPECT_EQ(results[2].error->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(results[3].record.value, "1");
  Do(embedded_, Operation::Put(kTable, "c", large + large));
  EXPECT_EQ(Do(store_, Operation::Get(kTable, "c")).error->code(), ErrorCode::kInvalidArgument);
  try {
    ScanAll(store_, kTable, "", Soon());
    FAIL() << "no page has room for it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
}

TEST_F(RemoteStoreTest, ALargeTableIsReadInPages) {
  held_.Release(/*from_now_on=*/true);
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) {
    keys.push_back(std::to_string(100 + i));
    Do(embedded_,
       Operation::Put(kTable, keys.back(),
                      std::string(std::size_t{1} << 20, static_cast<char>('a' + i % 26))));
  }
  const StorePage page = RunScan(store_, kTable, "", "", 1000, Soon());
  EXPECT_LT(page.records.size(), 8u);
  EXPECT_GT(page.records.size(), 5u);
  EXPECT_EQ(page.next, page.records.back().key);
  const std::vector<StoreRecord> records = ScanAll(store_, kTable, "", Soon());
  ASSERT_EQ(Keys(records), keys);
  EXPECT_TRUE(records[27].value == std::string(std::size_t{1} << 20, 'b'));
}

TEST_F(RemoteStoreTest, ManySmallRecordsAreReadInPages) {
  held_.Release(/*from_now_on=*/true);
  std::vector<Operation> puts;
  for (int i = 0; i < 1'000; ++i) {
    puts.push_back(Operation::Put(kTable, std::to_string(i), std::to_string(i)));
  }
  for (const StoreResult& result : RunBatch(store_, puts, Soon())) EXPECT_TRUE(result.done());
  EXPECT_LE(RunScan(store_, kTable, "", "", 1'000'000, Soon()).records.size(), 256u);
  EXPECT_EQ(Contents(store_, kTable), Contents(embedded_, kTable));
}

TEST_F(RemoteStoreTest, MoreThanTheStreamHasRoomForIsSentWhenItHas) {
  held_.Release(/*from_now_on=*/true);
  PeerStreamOptions narrow = OptionsOfNode(3);
  narrow.frame_bytes_max = narrow.queue_bytes_max = std::size_t{1} << 20;
  StoreClient client(head_->address(), {}, narrow);
  std::list<Asked> asked;
  for (int i = 0; i < 100; ++i) {
    client.store().Submit({Operation::Put(kTable, "a", std::string(500'000, 'x')),
                           Operation::Put(kTable, "b", std::to_string(i))},
                          Soon(), asked.emplace_back().results());
  }
  for (Asked& each : asked) EXPECT_TRUE(each.Wait().at(1).done());
  EXPECT_EQ(ValueOf(embedded_, kTable, "b"), "99");
  // Longer than its streams' frames, which its own options do not know.
  EXPECT_EQ(
      Do(client.store(), Operation::Put(kTable, "a", std::string(2'000'000, 'x'))).error->code(),
      ErrorCode::kInvalidArgument);
}

TEST_F(RemoteStoreTest, AWatchBeginsWithAHintAndHintsUntilItGoes) {
  StoreClient other(head_->address());
  held_.Release(/*from_now_on=*/true);
  Hints hints;
  Hints others;
  auto watch = store_.Watch(kTable, "a/", hints.Counted());
  const auto of_others = store_.Watch(kTable, "b/", others.Counted());
  ASSERT_TRUE(hints.WaitMore(0) && others.WaitMore(0));
  Do(other.store(), Operation::Put(kTable, "a/1", ""));
  ASSERT_TRUE(hints.WaitMore(1));
  watch.reset();
  Do(other.store(), Operation::Put(kTable, "a/1", ""));
  Do(other.store(), Operation::Put(kTable, "b/1", ""));
  ASSERT_TRUE(others.WaitMore(1));
  EXPECT_EQ(hints.count(), 2);
  EXPECT_EQ(others.count(), 2);
}

TEST_F(RemoteStoreTest, WatchesHintAgainAtANewStream) {
  held_.Release(/*from_now_on=*/true);
  Hints hints;
  const auto watch = store_.Watch(kTable, "a/", hints.Counted());
  ASSERT_TRUE(hints.WaitMore(0));
  Restart();
  ASSERT_TRUE(hints.WaitMore(1));
  Do(embedded_, Operation::Put(kTable, "a/1", ""));
  EXPECT_TRUE(hints.WaitMore(2));
}

TEST_F(RemoteStoreTest, WhoGoesLeavesNoRequestUncompleted) {
  std::list<Asked> asked;
  {
    StoreClient leaving(head_->address());
    for (int i = 0; i < 10; ++i) {
      leaving.store().Submit({Operation::Get(kTable, "a")}, Soon(), asked.emplace_back().results());
      leaving.store().Scan(kTable, "", "", 1, Soon(), asked.emplace_back().page());
    }
    ASSERT_TRUE(held_.WaitHeld(20));
    leaving.store().Stop();
    for (Asked& each : asked) ASSERT_TRUE(each.completed());
    leaving.store().Submit({Operation::Get(kTable, "a")}, Soon(), asked.emplace_back().results());
    EXPECT_TRUE(asked.back().completed());
  }
  for (Asked& each : asked) EXPECT_EQ(each.WaitError().code(), ErrorCode::kUnavailable);
  held_.Release();
}

TEST_F(RemoteStoreTest, ManyMayComeAndGoAtOnce) {
  held_.Release(/*from_now_on=*/true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 10; ++turn) {
        std::list<Asked> asked;
        {
          StoreClient client(head_->address(), {}, OptionsOfNode(10 + static_cast<unsigned>(i)));
          Hints hints;
          const auto watch = client.store().Watch(kTable, "", hints.Counted());
          for (int put = 0; put < 5; ++put) {
            client.store().Submit({Operation::Put(kTable, std::to_string(put), "")}, Soon(),
                                  asked.emplace_back().results());
          }
          if (turn % 2 == 0) asked.back().Wait();
        }
        asked.pop_back();
        for (Asked& each : asked) ASSERT_TRUE(each.completed());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RemoteStoreTest, OneOfTwoProcessesWinsEachVersion) {
  held_.Release(/*from_now_on=*/true);
  StoreClient other(head_->address(), {}, OptionsOfNode(3));
  Do(embedded_, Operation::Put(kTable, "sum", "0"));
  std::vector<std::thread> threads;
  for (ControlStore* store : {&store_, static_cast<ControlStore*>(&other.store())}) {
    threads.emplace_back([store] {
      for (int added = 0; added < 200;) {
        const StoreRecord now = Do(*store, Operation::Get(kTable, "sum")).record;
        const std::string next = std::to_string(std::stoi(now.value) + 1);
        added += Do(*store, Operation::PutIf(kTable, "sum", now.version, next)).done() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ValueOf(embedded_, kTable, "sum"), "400");
}

// ---- Without a server

TEST(RemoteStoreAloneTest, ARequestFailsAtItsDeadlineWhereNobodyListens) {
  const std::string address = FreeAddress();
  StoreClient client(address);
  Asked get;
  Asked scan;
  client.store().Submit({Operation::Get(kTable, "a")}, Deadline::After(kShort), get.results());
  client.store().Scan(kTable, "", "", 1, Deadline::After(kShort), scan.page());
  for (const Error& why : {get.WaitError(), scan.WaitError()}) {
    EXPECT_EQ(why.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(why.what(), HasSubstr(address));
  }
  ASSERT_TRUE(WaitUntil([&] { return client.store().last_failure().has_value(); }));
  EXPECT_THAT(client.store().last_failure()->what(), HasSubstr("nobody listens"));
}

TEST(RemoteStoreAloneTest, WhoGoesBeforeThereIsAStreamLeavesNoRequestUncompleted) {
  std::list<Asked> asked;
  {
    StoreClient client(FreeAddress());
    for (int i = 0; i < 10; ++i) {
      client.store().Submit({Operation::Get(kTable, "a")}, Soon(), asked.emplace_back().results());
    }
  }
  for (Asked& each : asked) ASSERT_TRUE(each.completed());
}

TEST(RemoteStoreAloneTest, AWrongTokenIsToldAtOnceUntilItIsRight) {
  EmbeddedStore embedded;
  std::optional<StoreHead> head(std::in_place, embedded, "127.0.0.1:0", StoreServerOptions{},
                                OptionsOfNode(1, "right"));
  const std::string address = head->address();
  StoreClient client(address, {}, OptionsOfNode(2, "wrong"));
  Asked asked;
  client.store().Submit({Operation::Get(kTable, "a")}, Soon(), asked.results());
  const Error why = asked.WaitError();
  EXPECT_EQ(why.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(why.what(), HasSubstr("another cluster token"));
  ASSERT_TRUE(client.store().last_failure());
  EXPECT_EQ(client.store().last_failure()->code(), ErrorCode::kFailedPrecondition);
  Asked later;
  client.store().Submit({Operation::Get(kTable, "a")}, Soon(), later.results());
  EXPECT_TRUE(later.completed());

  head.reset();
  head.emplace(embedded, address, StoreServerOptions{}, OptionsOfNode(1, "wrong"));
  EXPECT_TRUE(WaitUntil([&] { return Do(client.store(), Operation::Get(kTable, "a")).done(); }));
}

TEST(RemoteStoreAloneTest, WhatIsNoAddressIsRefused) {
  EXPECT_THROW(StoreClient("nowhere"), Error);
  EXPECT_THROW(StoreClient("127.0.0.1:1", {.pause_min = std::chrono::milliseconds(0)}), Error);
}

// Answers each request by what it is given.
class WrongHead final : public RecordingOwner {
 public:
  explicit WrongHead(StoreAnswer answer) : answer_(std::move(answer)) {}

 protected:
  void OnFrame(PeerStream& stream, std::span<const std::byte> frame) override {
    answer_.number = DecodeStoreRequest(frame).number;
    stream.TrySend(EncodeStoreAnswer(answer_));
  }

 private:
  StoreAnswer answer_;
};

TEST(RemoteStoreAloneTest, AnAnswerThatIsNoneEndsTheStream) {
  for (const StoreAnswer& answer :
       {StoreAnswer{.kind = StoreAnswer::Kind::kPage}, StoreAnswer{.results = {{}, {}}},
        StoreAnswer{.kind = StoreAnswer::Kind::kHint}}) {
    WrongHead head(answer);
    PeerStreams service(OptionsOfNode(1));
    StoreClient client(service.Listen("127.0.0.1:0", head));
    Asked asked;
    client.store().Submit({Operation::Get(kTable, "a")}, Soon(), asked.results());
    const Error why = asked.WaitError();
    EXPECT_EQ(why.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(why.what(), HasSubstr("no answer to it"));
  }
}

}  // namespace
}  // namespace menger::testing_stores
