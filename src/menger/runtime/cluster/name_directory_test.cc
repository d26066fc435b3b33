#include "menger/runtime/cluster/name_directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/file_testing.h"
#include "menger/runtime/calls/client.h"
#include "menger/runtime/cluster/kept_actor.h"
#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/control/store_log.h"
#include "menger/runtime/control/store_testing.h"

namespace menger {
namespace {

using Kind = NameQuestion::Kind;

NamedActor ActorNumber(std::uint64_t number) {
  return {.object = {.object = ObjectId{Id{7, number}}, .node = NodeId{Id{9, number}}, .epoch = 3},
          .actor = ActorId{Id{8, number}},
          .actor_class = 5,
          .construction = {.module = 6, .offset = number}};
}

// A store that does what it is told, and loses so many of its answers.
class ForgetfulStore final : public ControlStore {
 public:
  explicit ForgetfulStore(ControlStore& store) : store_(&store) {}

  void Submit(std::vector<StoreOperation> batch, Deadline deadline,
              Completion completion) override {
    const std::lock_guard lock(mutex_);
    if (lost-- <= 0) return store_->Submit(std::move(batch), deadline, std::move(completion));
    store_->Submit(std::move(batch), deadline, [completion](std::vector<StoreResult> results) {
      for (StoreResult& result : results) {
        result = {.outcome = StoreResult::Outcome::kFailed, .error = Unavailable("cut off")};
      }
      completion(std::move(results));
    });
  }
  void Scan(StoreTable, std::string, std::string, int, Deadline, PageCompletion) override {}
  [[nodiscard]] std::unique_ptr<StoreWatch> Watch(StoreTable, std::string,
                                                  std::function<void()>) override {
    return nullptr;
  }

  // By another, which has what `change` leaves there.
  void FailOver(const std::function<ControlStore&()>& change) {
    const std::lock_guard lock(mutex_);
    store_ = &change();
  }

  std::atomic<int> lost{0};

 private:
  std::mutex mutex_;
  ControlStore* store_;
};

class NameDirectoryTest : public testing::Test {
 protected:
  struct Program {
    Program(ControlStore& store, LeaseEpoch own_lease,
            std::chrono::nanoseconds successor_max = std::chrono::seconds(60))
        : lease(own_lease),
          directory(
              store,
              {.on_answer =
                   [this](const NameQuestion& question, const NameAnswer& answer) {
                     const MutexLock lock(mutex);
                     answers.emplace_back(question, answer);
                     changed.notify_all();
                   },
               .on_lost =
                   [this](const NamedActor& actor) { lost = static_cast<int>(actor.actor.low); },
               .lease = [this] { return lease.load(); },
               .is_member = [this](const NodeLife&) { return members.load(); },
               .has_met = [this](const NodeLife&) { return met.load() && met-- > 0; },
               .find_keeper = [this]() -> std::optional<ForeignName> {
                 if (keeper_starts-- > 0) return std::nullopt;
                 return ActorNumber(9).object;
               }},
              {.look_every = std::chrono::milliseconds(5),
               .try_max = std::chrono::milliseconds(300),
               .successor_max = successor_max}) {}
    // Whose it says the name is: the number of an actor, 0 for nobody's, -1 where it cannot say.
    int Ask(Kind kind, const std::string& name, std::uint64_t number = 0) {
      directory.Ask({.kind = kind, .name = name, .actor = ActorNumber(number)});
      if (kind == Kind::kRelease) return 0;
      MutexLock lock(mutex);
      changed.wait(lock.native(), [this] { return !answers.empty(); });
      const NameAnswer answer = answers.front().second;
      answers.clear();
      if (answer.error) return -1;
      return answer.holder ? static_cast<int>(answer.holder->actor.low) : 0;
    }

    Mutex mutex;
    std::condition_variable changed;
    std::vector<std::pair<NameQuestion, NameAnswer>> answers;
    std::atomic<int> met{1'000'000};  // So often it has met whom it is asked for, and then not.
    std::atomic<int> keeper_starts{0};
    std::atomic<LeaseEpoch> lease;
    std::atomic<bool> members{false};  // All are.
    std::atomic<int> lost{0};          // The actor that has lost its name.
    NameDirectory directory;
  };

  LeaseEpoch Lease(const std::string& owner) {
    return testing_stores::Do(store_, StoreOperation::Acquire(owner, std::chrono::seconds(10)))
        .record.version;
  }

  std::atomic<std::int64_t> now_{1000};
  EmbeddedStore store_{{.now = [this] { return now_.load(); }}};
};

TEST_F(NameDirectoryTest, ANameIsWhoseItWasFirst) {
  Program one(store_, Lease("one"));
  Program two(store_, Lease("two"));
  EXPECT_EQ(one.Ask(Kind::kLookUp, "a @b"), 0);
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  EXPECT_EQ(two.Ask(Kind::kClaim, "a @b", 2), 1);
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 1);
  EXPECT_EQ(two.Ask(Kind::kClaim, "a @c", 2), 2);
  // Not by who does not have it.
  two.Ask(Kind::kRelease, "a @b", 2);
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 1);
  one.Ask(Kind::kRelease, "a @b", 1);
  EXPECT_EQ(one.Ask(Kind::kLookUp, "a @b"), 0);
  EXPECT_EQ(two.Ask(Kind::kClaim, "a @b", 3), 3);
}

TEST_F(NameDirectoryTest, TheNamesOfAProcessAreFreeWithItsLease) {
  Program one(store_, Lease("one"));
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  now_ += std::chrono::nanoseconds(std::chrono::seconds(11)).count();
  Program two(store_, Lease("two"));
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 0);
  EXPECT_EQ(two.Ask(Kind::kClaim, "a @b", 2), 2);
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 3), 2);
  // It may claim nothing any longer.
  EXPECT_EQ(one.Ask(Kind::kClaim, "c @b", 3), -1);
}

TEST_F(NameDirectoryTest, AClaimWhoseAnswerIsLostIsOnesOwn) {
  ForgetfulStore forgetful(store_);
  Program one(forgetful, Lease("one"));
  forgetful.lost = 1;
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  forgetful.lost = 100;
  EXPECT_EQ(one.Ask(Kind::kLookUp, "a @b"), -1);
  forgetful.lost = 0;
  EXPECT_EQ(one.Ask(Kind::kLookUp, "a @b"), 1);
}

TEST_F(NameDirectoryTest, WhoIsFoundHasBeenMet) {
  Program one(store_, Lease("one"));
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  Program two(store_, Lease("two"));
  two.met = 0;
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 0);
  two.met = 1;
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 1);
  EXPECT_EQ(NamesIn(
                store_, [](const NodeLife&) { return false; }, testing_stores::Soon()),
            std::vector<std::string>{"a @b"});
}

// ---- Fail-overs of the store, which know no lease and may have forgotten names.

class NameFailOverTest : public NameDirectoryTest {
 protected:
  // `change`: done to the store's records by somebody else before anyone sees them.
  void FailOver(const std::vector<StoreOperation>& change = {}) {
    switched_.FailOver([&]() -> ControlStore& {
      kept_.emplace(options_);
      RunBatch(*kept_, change, testing_stores::Soon());
      return *kept_;
    });
  }
  LeaseEpoch NextLease(const std::string& owner) {
    return testing_stores::Do(switched_, StoreOperation::Acquire(owner, std::chrono::hours(1)))
        .record.version;
  }
  StoreRecord Record() {
    return testing_stores::Do(switched_,
                              StoreOperation::Get(StoreTable::kNames, KeyOfActor("a @b")))
        .record;
  }
  static bool Eventually(const std::function<bool()>& is_so) {
    const Deadline deadline = testing_stores::Soon();
    while (!is_so() && !deadline.expired())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return is_so();
  }

  const testing_files::Folder folder_;
  const EmbeddedStoreOptions options_{
      .journal = KeepInLog({.folder = folder_ / "store", .sync_every = {}})};
  std::optional<EmbeddedStore> kept_{options_};
  ForgetfulStore switched_{*kept_};
};

TEST_F(NameFailOverTest, ANameIsItsOwnersWhileHeIsAMember) {
  Program one(switched_, NextLease("one"));
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  FailOver();
  Program two(switched_, NextLease("two"));
  two.members = true;
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 1);
  EXPECT_EQ(two.Ask(Kind::kClaim, "a @b", 2), 1);
  one.lease = NextLease("one");
  one.members = true;
  EXPECT_TRUE(Eventually([&] { return Record().lease == one.lease; }));
  two.members = false;
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 1);
}

TEST_F(NameFailOverTest, ANameOfWhoIsGoneIsFree) {
  {
    Program one(switched_, NextLease("one"));
    EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  }
  FailOver();
  Program two(switched_, NextLease("two"));
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 0);
  EXPECT_EQ(two.Ask(Kind::kClaim, "a @b", 2), 2);
}

TEST_F(NameFailOverTest, AForgottenNameIsWrittenAgain) {
  Program one(switched_, NextLease("one"));
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  FailOver({StoreOperation::Delete(StoreTable::kNames, KeyOfActor("a @b"))});
  one.lease = NextLease("one");
  EXPECT_TRUE(Eventually([&] { return Record().version != 0; }));
  EXPECT_EQ(one.lost, 0);
}

TEST_F(NameFailOverTest, AClaimWaitsForALeaseThatTheStoreKnows) {
  Program one(switched_, NextLease("one"));
  FailOver();
  std::thread renewal([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    one.lease = NextLease("one");
  });
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  renewal.join();
}

TEST_F(NameFailOverTest, ALookUpWaitsUntilALeaseThatTheStoreKnowsTellsWhatCounts) {
  Program one(switched_, NextLease("one"));
  Program two(switched_, NextLease("two"));
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  two.members = true;
  FailOver();
  std::thread renewal([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    two.lease = NextLease("two");
  });
  EXPECT_EQ(two.Ask(Kind::kLookUp, "a @b"), 1);
  renewal.join();
}

TEST_F(NameFailOverTest, OfTwoWhoHaveANameTheYoungerKeepsIt) {
  Program one(switched_, NextLease("one"));
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
  NamedActor older = ActorNumber(2);
  older.object.epoch = 2;
  FailOver({StoreOperation::Put(StoreTable::kNames, KeyOfActor("a @b"), Encode(older))});
  one.lease = NextLease("one");
  EXPECT_TRUE(Eventually([&] { return Record().value == Encode(ActorNumber(1)); }));
  NamedActor younger = ActorNumber(3);
  younger.object.epoch = 4;
  FailOver({StoreOperation::Put(StoreTable::kNames, KeyOfActor("a @b"), Encode(younger))});
  one.lease = NextLease("one");
  EXPECT_TRUE(Eventually([&] { return one.lost == 1; }));
  EXPECT_EQ(Record().value, Encode(younger));
}

TEST_F(NameDirectoryTest, TheKeeperIsFoundOnceItIsThere) {
  Program one(store_, Lease("one"));
  one.keeper_starts = 2;
  one.directory.Ask({.kind = Kind::kLookUp, .name = Client::kKeeperName});
  MutexLock lock(one.mutex);
  one.changed.wait(lock.native(), [&one] { return !one.answers.empty(); });
  const NameAnswer& answer = one.answers.front().second;
  ASSERT_TRUE(answer.holder.has_value());
  EXPECT_EQ(answer.holder->object.object, ActorNumber(9).object.object);
  EXPECT_EQ(one.keeper_starts, -1);
}

// Whose owner is gone, and who is to be `next` at another.
class KeptNameTest : public NameDirectoryTest {
 protected:
  KeptNameTest() {
    Program gone(store_, Lease("gone"));
    EXPECT_EQ(gone.Ask(Kind::kClaim, "a @b", 1), 1);
    now_ += std::chrono::nanoseconds(std::chrono::seconds(11)).count();
    const KeptOwner owner{{NodeId{Id{9, 2}}, 3}, "program", ActorNumber(2).actor};
    testing_stores::Do(store_, StoreOperation::Put(StoreTable::kActors, key_, Encode(owner)));
  }

  const std::string key_ = ToString(ActorNumber(1).actor);
};

TEST_F(KeptNameTest, IsHisWhoSucceedsTheOwner) {
  Program one(store_, Lease("one"));
  Program successor(store_, Lease("successor"));
  one.directory.Ask({.kind = Kind::kLookUp, .name = "a @b"});
  one.directory.Ask({.kind = Kind::kClaim, .name = "a @b", .actor = ActorNumber(3)});
  one.directory.Ask({.kind = Kind::kLookUp, .name = "a @b"});
  EXPECT_EQ(successor.Ask(Kind::kClaim, "a @b", 2), 2);
  MutexLock lock(one.mutex);
  one.changed.wait(lock.native(), [&one] { return one.answers.size() == 3; });
  for (const auto& [question, answer] : one.answers) {
    ASSERT_TRUE(answer.holder.has_value());
    EXPECT_EQ(answer.holder->actor, ActorNumber(2).actor);
  }
  EXPECT_EQ(one.answers[1].first.kind, Kind::kClaim);
}

TEST_F(KeptNameTest, IsOneOfThoseThatThereAre) {
  const auto names = [this] {
    return NamesIn(
        store_, [](const NodeLife&) { return false; }, testing_stores::Soon());
  };
  EXPECT_EQ(names(), std::vector<std::string>{"a @b"});
  testing_stores::Do(store_, StoreOperation::Delete(StoreTable::kActors, key_));
  EXPECT_TRUE(names().empty());
}

// What was asked later of the same name is done later, too.
TEST_F(KeptNameTest, QuestionsKeepTheirOrderMeanwhile) {
  Program one(store_, Lease("one"));
  one.directory.Ask({.kind = Kind::kClaim, .name = "a @b", .actor = ActorNumber(3)});
  one.directory.Ask({.kind = Kind::kRelease, .name = "a @b", .actor = ActorNumber(3)});
  EXPECT_EQ(one.Ask(Kind::kLookUp, "c @b"), 0);  // Others need not wait.
  testing_stores::Do(store_, StoreOperation::Delete(StoreTable::kActors, key_));
  MutexLock lock(one.mutex);
  one.changed.wait(lock.native(), [&one] { return one.answers.size() == 1; });
  EXPECT_EQ(one.answers.front().second.holder->actor, ActorNumber(3).actor);
  lock.Unlock();
  one.answers.clear();
  EXPECT_EQ(one.Ask(Kind::kLookUp, "a @b"), 0);
}

TEST_F(KeptNameTest, IsFreeWhereNobodyDoesInTime) {
  Program one(store_, Lease("one"), std::chrono::milliseconds(100));
  EXPECT_EQ(one.Ask(Kind::kLookUp, "a @b"), 0);
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 3), 3);
}

TEST_F(NameDirectoryTest, ARecordThatIsNoneIsNobodys) {
  testing_stores::Do(store_, StoreOperation::Put(StoreTable::kNames, KeyOfActor("a @b"), "what?"));
  Program one(store_, Lease("one"));
  EXPECT_EQ(one.Ask(Kind::kLookUp, "a @b"), 0);
  EXPECT_EQ(one.Ask(Kind::kClaim, "a @b", 1), 1);
}

TEST_F(NameDirectoryTest, AnActorIsReadAsItWasWritten) {
  const NamedActor actor = ActorNumber(4);
  const std::optional<NamedActor> read = DecodeNamedActor(Encode(actor));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->object.object, actor.object.object);
  EXPECT_EQ(read->object.node, actor.object.node);
  EXPECT_EQ(read->object.epoch, actor.object.epoch);
  EXPECT_EQ(read->actor, actor.actor);
  EXPECT_EQ(read->actor_class, actor.actor_class);
  EXPECT_EQ(read->construction, actor.construction);
  EXPECT_FALSE(DecodeNamedActor(Encode(actor) + "x").has_value());
}

}  // namespace
}  // namespace menger
