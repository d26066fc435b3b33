#include "menger/runtime/redis/redis_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>

#include "menger/runtime/control/control_store_testing.h"
#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/control/store_testing.h"
#include "menger/runtime/redis/redis_testing.h"

namespace menger::testing_stores {
namespace {

using std::chrono::milliseconds;
using testing_redis::Eventually;
using testing_redis::RedisSentinel;
using testing_redis::RedisServer;

EmbeddedStoreOptions Kept(const RedisAddress& address, const std::string& head = "the first",
                          milliseconds head_lease = milliseconds(60'000)) {
  return {.journal = KeepInRedis({.address = address, .head = head, .head_lease = head_lease})};
}

struct RedisWorld {
  static constexpr int kRandomOperations = 3'000;
  static constexpr int kAdditions = 50;

  ControlStore& store() { return kept; }

  std::atomic<std::int64_t> now{1000};
  RedisServer server;
  EmbeddedStore kept{
      {.journal = Kept(server.address()).journal, .now = [this] { return now.load(); }}};
};
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, ControlStoreTest, RedisWorld);

std::string WhyFailed(ControlStore& store, StoreOperation operation) {
  const StoreResult result = Do(store, std::move(operation));
  return result.error ? result.error->what() : "it has not failed";
}

template <typename Function>
std::string WhyThrown(ErrorCode code, Function function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

TEST(RedisJournalTest, TheNextHeadKnowsAllRecordsAndNoLease) {
  const RedisServer server;
  StoreVersion version = 0;
  LeaseEpoch lease = 0;
  const std::string value("\0\xff 1 2\r\n", 8);
  {
    EmbeddedStore store(Kept(server.address()));
    lease = Do(store, StoreOperation::Acquire("n", std::chrono::hours(1))).record.version;
    Do(store, StoreOperation::Put(kTable, "bound", "x").BoundTo(lease));
    Do(store, StoreOperation::Put(kTable, "gone", "x"));
    Do(store, StoreOperation::Delete(kTable, "gone"));
    Do(store, StoreOperation::Put(kOther, value, value));
    version = Do(store, StoreOperation::Put(kTable, "empty", "")).record.version;
  }
  EmbeddedStore store(Kept(server.address(), "the second"));
  EXPECT_EQ(Contents(store, kTable),
            (std::map<std::string, std::string>{{"bound", "x"}, {"empty", ""}}));
  EXPECT_EQ(ValueOf(store, kOther, value), value);
  EXPECT_EQ(Do(store, StoreOperation::Get(kTable, "empty")).record.version, version);
  const StoreRecord bound = Do(store, StoreOperation::Get(kTable, "bound")).record;
  EXPECT_EQ(bound.lease, lease);
  EXPECT_TRUE(bound.expired);
  const StoreVersion next = Do(store, StoreOperation::Put(kTable, "empty", "")).record.version;
  EXPECT_EQ(FailOversOf(next), FailOversOf(version) + 1);
  EXPECT_EQ(RunScan(store, kTable, "", "", 1, Soon()).newest, next);
}

TEST(RedisJournalTest, ManyLargeRecordsAreKept) {
  const RedisServer server;
  std::map<std::string, std::string> contents;
  {
    EmbeddedStore store(Kept(server.address()));
    std::vector<StoreOperation> batch;
    for (int i = 0; i < 3000; ++i) {
      const std::string key = std::to_string(i);
      contents[key] = std::string(static_cast<std::size_t>(i), 'x');
      batch.push_back(StoreOperation::Put(kTable, key, contents[key]));
    }
    contents["large"] = std::string(kStoreValueBytesMax, 'y');
    batch.push_back(StoreOperation::Put(kTable, "large", contents["large"]));
    for (const StoreResult& result : RunBatch(store, batch, Soon())) EXPECT_TRUE(result.done());
  }
  EmbeddedStore store(Kept(server.address()));
  EXPECT_EQ(Contents(store, kTable), contents);
}

// ---- Two heads.

TEST(RedisJournalTest, AHeadThatGoesOnIsNotSucceeded) {
  const RedisServer server;
  const EmbeddedStore store(Kept(server.address()));
  RedisJournalOptions options{
      .address = server.address(), .head = "the second", .open_max = milliseconds(100)};
  EXPECT_THAT(WhyThrown(ErrorCode::kFailedPrecondition,
                        [&] { const EmbeddedStore second({.journal = KeepInRedis(options)}); }),
              HasSubstr("has a head already, which goes on: \"the first\""));
}

TEST(RedisJournalTest, AHeadThatIsNotHeardOfIsSucceeded) {
  const RedisServer server;
  server.Ask({"SET", "menger:head", "who was killed", "PX", "300"});
  EmbeddedStore store(Kept(server.address()));
  EXPECT_TRUE(Do(store, StoreOperation::Put(kTable, "a", "1")).done());
}

TEST(RedisJournalTest, WhatNoHeadHasWrittenAsItsNameIsQuoted) {
  const RedisServer server;
  server.Ask({"SET", "menger:head", "\n\x1b[2Jrubbish"});
  EXPECT_THAT(WhyThrown(ErrorCode::kFailedPrecondition,
                        [&] { const EmbeddedStore store(Kept(server.address())); }),
              HasSubstr(R"(is "\n\x1b[2Jrubbish", which has no time to live)"));
}

TEST(RedisJournalTest, AHeadThatWasSucceededSaysNothingAnyMore) {
  const RedisServer server;
  EmbeddedStore first(Kept(server.address()));
  Do(first, StoreOperation::Put(kTable, "a", "1"));
  server.Ask({"DEL", "menger:head"});  // As if it had been silent for too long.
  EmbeddedStore second(Kept(server.address(), "the second"));
  EXPECT_THAT(WhyFailed(first, StoreOperation::Put(kTable, "a", "2")),
              HasSubstr("another head has taken"));
  EXPECT_THAT(WhyFailed(first, StoreOperation::Get(kTable, "a")),
              HasSubstr("another head has taken"));
  EXPECT_THAT(
      WhyThrown(ErrorCode::kUnavailable, [&] { RunScan(first, kTable, "", "", 1, Soon()); }),
      HasSubstr("another head"));
  Do(second, StoreOperation::Put(kTable, "b", "3"));
  EXPECT_EQ(Contents(second, kTable), (std::map<std::string, std::string>{{"a", "1"}, {"b", "3"}}));
}

// ---- What Redis loses.

// What the server itself has.
std::string InRedis(const RedisServer& server, const std::string& key) {
  return server.Ask({"HGET", "menger:actors", key}).text;
}

TEST(RedisJournalTest, WhatRedisHasForgottenIsWrittenAgain) {
  const RedisServer server;
  EmbeddedStore store(Kept(server.address()));
  Do(store, StoreOperation::Put(kTable, "before", "1"));
  server.Ask({"FLUSHALL"});
  EXPECT_TRUE(Do(store, StoreOperation::Put(kTable, "after", "2")).done());
  EXPECT_THAT(InRedis(server, "before"), testing::EndsWith(" 0 1"));
  EXPECT_THAT(InRedis(server, "after"), testing::EndsWith(" 0 2"));
}

TEST(RedisJournalTest, WhatWaitsWhileRedisIsGoneIsSafeOnceItIsBack) {
  RedisServer server;
  EmbeddedStore store(Kept(server.address()));
  Do(store, StoreOperation::Put(kTable, "before", "1"));
  server.Kill();
  std::atomic<bool> done{false};
  store.Submit({StoreOperation::Put(kTable, "meanwhile", "2")}, Soon(),
               [&](const std::vector<StoreResult>& results) { done = results[0].done(); });
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_FALSE(done);
  EXPECT_EQ(ValueOf(store, kTable, "meanwhile"), "2");
  server.Start();
  EXPECT_TRUE(Eventually([&] { return done.load(); }));
  EXPECT_THAT(InRedis(server, "before"), testing::EndsWith(" 0 1"));
  EXPECT_THAT(InRedis(server, "meanwhile"), testing::EndsWith(" 0 2"));
}

TEST(RedisJournalTest, AStoreWhoseRedisIsGoneForTooLongIsClosedUntilItIsBack) {
  RedisServer server;
  EmbeddedStore store(Kept(server.address(), "the first", milliseconds(500)));
  server.Kill();
  EXPECT_THAT(WhyFailed(store, StoreOperation::Put(kTable, "a", "1")),
              HasSubstr("cannot be reached"));
  EXPECT_THAT(WhyFailed(store, StoreOperation::Get(kTable, "a")), HasSubstr("is not there"));
  server.Start();
  EXPECT_TRUE(Eventually([&] { return Do(store, StoreOperation::Get(kTable, "a")).done(); }));
  EXPECT_TRUE(Eventually([&] { return !InRedis(server, "a").empty(); }));
}

TEST(RedisJournalTest, AServerThatSaysNothingIsGivenUpInTime) {
  RedisServer server;
  EmbeddedStore store(Kept(server.address(), "the first", milliseconds(500)));
  server.Signal(SIGSTOP);
  EXPECT_THAT(WhyFailed(store, StoreOperation::Put(kTable, "a", "1")),
              HasSubstr("does not answer"));
  server.Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] { return Do(store, StoreOperation::Get(kTable, "a")).done(); }));
}

// ---- A primary that ends.

TEST(RedisJournalTest, AReplicaThatIsMadePrimaryHasAllInTheEnd) {
  RedisServer primary;
  const RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(primary.port())});
  ASSERT_TRUE(Eventually([&] { return primary.Ask({"WAIT", "1", "100"}).number == 1; }));
  const RedisSentinel sentinel(primary);
  std::map<std::string, std::string> contents;
  // The sentinel has found the replica.
  ASSERT_TRUE(Eventually([&] { return sentinel.replicas() == 1; }));
  EmbeddedStore store(Kept(sentinel.address()));
  for (int i = 0; i < 2000; ++i) {
    if (i == 1000) primary.Kill();
    const std::string key = std::to_string(i);
    contents[key] = key;
    ASSERT_TRUE(Do(store, StoreOperation::Put(kTable, key, key)).done());
  }
  std::map<std::string, std::string> kept;
  const RedisReply fields = replica.Ask({"HGETALL", "menger:actors"});
  for (std::size_t i = 0; i + 1 < fields.list.size(); i += 2) {
    const std::string& value = fields.list[i + 1].text;
    kept[fields.list[i].text] = value.substr(value.rfind(' ') + 1);
  }
  EXPECT_EQ(kept, contents);
}

// ---- Who is refused.

TEST(RedisJournalTest, WhatRedisRefusesIsSaid) {
  const RedisServer server({"--requirepass", "right"});
  RedisAddress address = server.address();
  EXPECT_THAT(
      WhyThrown(ErrorCode::kFailedPrecondition, [&] { const EmbeddedStore store(Kept(address)); }),
      HasSubstr("NOAUTH"));
  address.password = "wrong";
  EXPECT_THAT(
      WhyThrown(ErrorCode::kFailedPrecondition, [&] { const EmbeddedStore store(Kept(address)); }),
      HasSubstr("WRONGPASS"));
  address.password = "right";
  address.database = 99;
  EXPECT_THAT(
      WhyThrown(ErrorCode::kFailedPrecondition, [&] { const EmbeddedStore store(Kept(address)); }),
      HasSubstr("DB index"));
  address.database = 3;
  EmbeddedStore store(Kept(address));
  EXPECT_TRUE(Do(store, StoreOperation::Put(kTable, "a", "1")).done());
}

TEST(RedisJournalTest, WhereNobodyIsNothingIsOpened) {
  RedisJournalOptions options{.address = {.hosts = {{"127.0.0.1", testing_redis::FreePort()}}},
                              .open_max = milliseconds(10)};
  EXPECT_THAT(WhyThrown(ErrorCode::kUnavailable,
                        [&] { const EmbeddedStore store({.journal = KeepInRedis(options)}); }),
              HasSubstr("cannot be reached"));
}

TEST(RedisJournalTest, AReplicaIsNoPrimary) {
  const RedisServer primary;
  const RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(primary.port())});
  RedisJournalOptions options{.address = replica.address(), .open_max = milliseconds(10)};
  EXPECT_THAT(WhyThrown(ErrorCode::kUnavailable,
                        [&] { const EmbeddedStore store({.journal = KeepInRedis(options)}); }),
              HasSubstr("is a replica"));
}

TEST(RedisJournalTest, WhatIsNoRecordIsNamed) {
  const RedisServer server;
  server.Ask({"HSET", "menger:nodes", "some\nkey", "1 what an operator wrote"});
  EXPECT_THAT(
      WhyThrown(ErrorCode::kDataLoss, [&] { const EmbeddedStore store(Kept(server.address())); }),
      HasSubstr(R"(field "some\nkey" of 'menger:nodes')"));
}

TEST(RedisJournalTest, AKeyThatSomebodyElseHasWrittenIsNamed) {
  const RedisServer server;
  server.Ask({"SET", "menger:nodes", "of an operator"});
  EXPECT_THAT(WhyThrown(ErrorCode::kUnavailable,
                        [&] { const EmbeddedStore store(Kept(server.address())); }),
              HasSubstr("it is that of menger:nodes"));
}

TEST(RedisJournalTest, AStoreOfAnotherFormatIsLeftAlone) {
  const RedisServer server;
  server.Ask({"HSET", "menger:about", "format", "7"});
  EXPECT_THAT(WhyThrown(ErrorCode::kFailedPrecondition,
                        [&] { const EmbeddedStore store(Kept(server.address())); }),
              HasSubstr("format \"7\""));
}

}  // namespace
}  // namespace menger::testing_stores
