#include "menger/runtime/cluster/store_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/cluster/remote_store_testing.h"
#include "menger/runtime/control/store_testing.h"
#include "menger/runtime/net/frame_queue.h"

namespace menger {
namespace {

using Operation = StoreOperation;
using testing::HasSubstr;
using testing_stores::Do;
using testing_stores::Soon;

constexpr StoreTable kTable = StoreTable::kActors;

// A client that says what it is told to, and reads when it is told to.
class RawClient {
 public:
  explicit RawClient(const std::string& address) : end_(address) {
    Handshake handshake = ConnectorGreeting(7);
    end_.Greet(handshake);
  }

  void Say(std::span<const std::byte> frame) {
    const FrameHead head = FrameHead::For(frame.size());
    end_.Say(std::as_bytes(std::span(&head, 1)));
    end_.Say(frame);
  }
  void Say(const StoreRequest& request) { Say(EncodeStoreRequest(request)); }

  StoreAnswer Hear() {
    for (;;) {
      FrameHead head;
      const std::vector<std::byte> bytes = end_.Hear(sizeof head);
      if (bytes.size() < sizeof head) throw Unavailable("the server has closed the stream");
      std::memcpy(&head, bytes.data(), sizeof head);
      if (head.bytes > 0) return DecodeStoreAnswer(end_.Hear(head.bytes));  // Otherwise a beat.
    }
  }

 private:
  RawEnd end_;
};

StoreRequest ScanOf(std::uint64_t number) {
  return {.number = number,
          .kind = StoreRequest::Kind::kScan,
          .remaining = std::chrono::minutes(1),
          .table = kTable,
          .limit = 100};
}
StoreRequest WatchOf(std::uint64_t number) {
  return {.number = number, .kind = StoreRequest::Kind::kWatch, .table = kTable};
}

TEST(StoreServerTest, WhatIsNoRequestEndsItsStream) {
  EmbeddedStore store;
  StoreHead head(store);
  std::size_t times = 0;
  for (const auto& [frame, said] :
       {std::pair(BytesOf("no request"), "kind"),
        {EncodeStoreRequest({.batch = std::vector(kStoreBatchMax + 1, Operation{})}), "batch"}}) {
    RawClient client(head.address());
    client.Say(frame);
    const auto why = head.WaitEnded(times++);
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(why->what(), HasSubstr(said));
  }
  RawClient client(head.address());
  client.Say(WatchOf(1));
  client.Say(WatchOf(1));
  EXPECT_THAT(head.WaitEnded(times).value().what(), HasSubstr("which another has"));
}

TEST(StoreServerTest, WhoAsksMoreThanHeMayIsRefused) {
  EmbeddedStore store;
  HeldStore held(store);
  StoreHead head(held, "127.0.0.1:0", {.requests_max = 2});
  RawClient client(head.address());
  for (std::uint64_t number = 1; number <= 3; ++number) {
    client.Say(ScanOf(number));
  }
  client.Say({.number = 4, .batch = {Operation::Get(kTable, "a"), Operation{}}});
  const StoreAnswer page = client.Hear();
  EXPECT_EQ(page.number, 3u);
  EXPECT_EQ(page.page.error.value().code(), ErrorCode::kUnavailable);
  const StoreAnswer results = client.Hear();
  EXPECT_EQ(results.number, 4u);
  ASSERT_EQ(results.results.size(), 2u);
  EXPECT_EQ(results.results[1].error.value().code(), ErrorCode::kUnavailable);
  ASSERT_TRUE(held.WaitHeld(2));
  held.Release(/*from_now_on=*/true);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(client.Hear().page.error);
  client.Say(ScanOf(5));
  EXPECT_FALSE(client.Hear().page.error);
}

TEST(StoreServerTest, WhoWatchesMoreThanHeMayIsRefused) {
  EmbeddedStore store;
  StoreHead head(store, "127.0.0.1:0", {.watches_max = 1});
  RawClient client(head.address());
  for (const std::uint64_t number : {1, 2}) {
    client.Say(WatchOf(number));
  }
  EXPECT_EQ(client.Hear().kind, StoreAnswer::Kind::kHint);
  const StoreAnswer refused = client.Hear();
  EXPECT_EQ(refused.number, 2u);
  EXPECT_EQ(refused.error.value().code(), ErrorCode::kUnavailable);
  client.Say({.number = 1, .kind = StoreRequest::Kind::kUnwatch});
  client.Say(WatchOf(3));
  EXPECT_EQ(client.Hear().kind, StoreAnswer::Kind::kHint);
}

// A head whose streams have little room, and a record that is most of a frame.
class NarrowHead {
 public:
  explicit NarrowHead(std::size_t waiting_bytes_max)
      : head_(store_, "127.0.0.1:0",
              {.frame_bytes_max = kRoom, .waiting_bytes_max = waiting_bytes_max}, Narrow()) {
    Do(store_, Operation::Put(kTable, "a", std::string(900'000, 'x')));
  }

  StoreHead& head() { return head_; }

  static constexpr std::size_t kRoom = std::size_t{1} << 20;
  // The answers to so many scans are more than any system takes for itself.
  static constexpr std::uint64_t kScans = 100;

 private:
  static PeerStreamOptions Narrow() {
    PeerStreamOptions options = OptionsOfNode(1);
    options.frame_bytes_max = options.queue_bytes_max = kRoom;
    return options;
  }

  EmbeddedStore store_;
  StoreHead head_;
};

TEST(StoreServerTest, AnswersThatHaveNoRoomComeLaterAndManyHintsAsOne) {
  NarrowHead narrow(/*waiting_bytes_max=*/std::size_t{256} << 20);
  RawClient client(narrow.head().address());
  for (std::uint64_t number = 1; number <= NarrowHead::kScans; ++number) {
    client.Say(ScanOf(number));
  }
  client.Say(WatchOf(NarrowHead::kScans + 1));
  StoreClient other(narrow.head().address());
  for (int i = 0; i < 1'000; ++i) Do(other.store(), Operation::Put(kTable, "b", ""));
  for (std::uint64_t number = 1; number <= NarrowHead::kScans; ++number) {
    const StoreAnswer answer = client.Hear();
    ASSERT_EQ(answer.number, number);
    EXPECT_EQ(answer.page.records.at(0).value.size(), 900'000u);
  }
  EXPECT_EQ(client.Hear().kind, StoreAnswer::Kind::kHint);
  client.Say(ScanOf(1));
  EXPECT_EQ(client.Hear().kind, StoreAnswer::Kind::kPage);
}

TEST(StoreServerTest, WhoReadsNoAnswersLosesHisStreamAndNobodyElseHis) {
  NarrowHead narrow(/*waiting_bytes_max=*/NarrowHead::kRoom);
  StoreClient other(narrow.head().address());
  RawClient client(narrow.head().address());
  for (std::uint64_t number = 1; number <= NarrowHead::kScans; ++number) {
    client.Say(ScanOf(number));
  }
  const auto why = narrow.head().WaitEnded();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), ErrorCode::kCancelled);  // By the server.
  EXPECT_TRUE(Do(other.store(), Operation::Put(kTable, "b", "")).done());
}

TEST(StoreServerTest, AStreamThatEndsTakesItsWatchesWithIt) {
  // Whose watches are counted.
  class CountingWatches final : public ControlStore {
   public:
    void Submit(std::vector<StoreOperation>, Deadline, Completion) override {}
    void Scan(StoreTable, std::string, std::string, int, Deadline, PageCompletion) override {}
    [[nodiscard]] std::unique_ptr<StoreWatch> Watch(StoreTable, std::string,
                                                    std::function<void()>) override {
      return std::make_unique<Counted>(count);
    }
    std::atomic<int> count{0};

   private:
    struct Counted final : StoreWatch {
      explicit Counted(std::atomic<int>& all) : count(all) { ++count; }
      ~Counted() override { --count; }
      std::atomic<int>& count;
    };
  };
  CountingWatches store;
  StoreHead head(store);
  {
    RawClient client(head.address());
    client.Say(WatchOf(1));
    client.Say(WatchOf(2));
    ASSERT_TRUE(WaitUntil([&] { return store.count == 2; }));
  }
  EXPECT_TRUE(WaitUntil([&] { return store.count == 0; }));
}

TEST(StoreServerTest, OptionsAreCheckedByName) {
  EmbeddedStore store;
  for (const auto& [options, name] :
       {std::pair(StoreServerOptions{.frame_bytes_max = 1}, "frame_bytes_max"),
        {StoreServerOptions{.waiting_bytes_max = 1}, "waiting_bytes_max"}}) {
    try {
      const StoreServer server(store, options);
      FAIL() << "they were taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

}  // namespace
}  // namespace menger
