#include "menger/runtime/cluster/kept_actors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/runtime/cluster/cluster_node.h"
#include "menger/runtime/cluster/keeper.h"
#include "menger/runtime/cluster/name_directory.h"
#include "menger/runtime/runtime.h"

// Keepers in threads of this process, of which those that are stopped leave their actors to others.
namespace menger {
namespace {

using testing::IsEmpty;

constexpr std::chrono::seconds kPatience(60);

class Account {
 public:
  explicit Account(int start) : sum_(start) {}
  Account(const std::vector<double>& first, const std::vector<ObjectRef<int>>& others)
      : sum_(static_cast<int>(first.size())), others_(others) {}
  int Add(int amount) { return sum_ += amount; }
  int Other(Runtime& runtime) { return runtime.Get(others_.front()); }
  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(sum_, others_);
  }

 private:
  int sum_;
  std::vector<ObjectRef<int>> others_;
};

// A keeper that a head has started.
class Keeping {
 public:
  explicit Keeping(KeeperOptions options) {
    options.on_ready = [this](const ForeignName& keeper) { ready_.set_value(Describe(keeper)); };
    options.is_stopped = [this] { return stopped_.load(); };
    thread_ = std::jthread([options] { Keep(options); });
  }
  ~Keeping() { stopped_ = true; }

  std::string AwaitReady() { return ready_.get_future().get(); }
  void Stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::promise<std::string> ready_;
  std::atomic<bool> stopped_{false};
  std::jthread thread_;
};

class KeptActorsTest : public testing::Test {
 protected:
  KeptActorsTest() {
    cache_ = testing::TempDir() + "menger_cluster_cache-" + std::to_string(::getuid());
    ClusterNodeOptions options{.listen = "127.0.0.1:0", .cache_folder = cache_};
    options.runtime.resources = Resources(4, 0);
    options.keep = [this](const NodeRecord& driver) {
      if (keeper_ == nullptr) {
        keeper_ = std::make_unique<Keeping>(KeeperOptions{.access = {.address = head_->address()},
                                                          .program = driver.address,
                                                          .driver = {driver.id, driver.epoch},
                                                          .cache_folder = cache_});
        stands_for_ = keeper_->AwaitReady();
      }
      return stands_for_;
    };
    head_ = std::make_unique<ClusterNode>(options);
  }
  ~KeptActorsTest() override {
    keeper_.reset();
    successor_.reset();
  }

  RuntimeOptions Driver() const { return {.address = head_->address()}; }

  std::vector<KeptActor> Kept() {
    std::vector<KeptActor> kept;
    for (const StoreRecord& record :
         ScanAll(head_->store(), StoreTable::kObjects, "", Deadline::After(kPatience))) {
      kept.push_back(DecodeKeptActor(record.value).value());
    }
    return kept;
  }
  // What the store knows of the only one, once that is so.
  KeptActor AwaitKept(const std::function<bool(const KeptActor&)>& is_so) {
    const Deadline deadline = Deadline::After(kPatience);
    while (!deadline.expired()) {
      const std::vector<KeptActor> kept = Kept();
      if (kept.size() == 1 && is_so(kept.front())) return kept.front();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    throw DeadlineExceeded("the store does not know it");
  }
  std::vector<std::string> Left() {
    return ProgramsWithoutKeeper(head_->store(), head_->reader(), Deadline::After(kPatience));
  }
  void Succeed() {
    keeper_->Stop();
    const std::vector<std::string> left = Left();
    ASSERT_EQ(left.size(), 1);
    successor_ = std::make_unique<Keeping>(KeeperOptions{
        .access = {.address = head_->address()}, .left = left.front(), .cache_folder = cache_});
  }

  std::string cache_;
  std::unique_ptr<Keeping> keeper_;
  std::string stands_for_;
  std::unique_ptr<Keeping> successor_;
  std::unique_ptr<ClusterNode> head_;
};

const ActorOptions kOptions{.name = "account @kept", .detached = true, .checkpoint_every = 2};

TEST_F(KeptActorsTest, AnActorGoesOnFromItsLastCheckpoint) {
  {
    Runtime program(Driver());
    const ActorRef<Account> account = program.CreateActor<Account>(kOptions, 100);
    for (int i = 0; i < 2; ++i) program.Get(account.Call<&Account::Add>(1), kPatience);
    const auto first = AwaitKept([](const KeptActor& kept) { return kept.state.has_value(); });
    for (int i = 0; i < 3; ++i) program.Get(account.Call<&Account::Add>(1), kPatience);
    AwaitKept([&](const KeptActor& kept) { return kept.state && kept.state != first.state; });
  }
  Succeed();
  Runtime other(Driver());
  const ActorRef<Account> found = other.GetActor<Account>(kOptions.name);
  EXPECT_EQ(other.Get(found.Call<&Account::Add>(0), kPatience), 104);
  EXPECT_THAT(Left(), IsEmpty());
  const KeptActor kept = AwaitKept([](const KeptActor& actor) { return actor.lives == 1; });
  EXPECT_EQ(kept.restarts, 65'534);
}

// One whose arguments are a large value and one that another value names; its program drops them.
class KeptValuesTest : public KeptActorsTest {
 protected:
  void MakeIn(Runtime& program) {
    const ActorRef<Account> account = program.CreateActor<Account>(
        kOptions, program.Put(std::vector<double>(100'000, 1.)), std::vector{program.Put(7)});
    EXPECT_EQ(program.Get(account.Call<&Account::Other>(), kPatience), 7);
    EXPECT_EQ(program.Get(account.Call<&Account::Add>(1), kPatience), 100'001);
    AwaitKept([](const KeptActor& kept) { return kept.state.has_value(); });
  }
  void ExpectThere() {
    Runtime other(Driver());
    const ActorRef<Account> found = other.GetActor<Account>(kOptions.name);
    EXPECT_EQ(other.Get(found.Call<&Account::Add>(0), kPatience), 100'001);
    EXPECT_EQ(other.Get(found.Call<&Account::Other>(), kPatience), 7);
  }
};

TEST_F(KeptValuesTest, AreThereWhenTheProgramHasLeft) {
  {
    Runtime program(Driver());
    MakeIn(program);
  }
  Succeed();
  ExpectThere();
}

// Nobody has told it that they are needed: who needed them was the keeper that is gone.
TEST_F(KeptValuesTest, AreThereWhileItsProgramLives) {
  Runtime program(Driver());
  MakeIn(program);
  Succeed();
  ExpectThere();
}

TEST_F(KeptActorsTest, AnotherProgramMayHaveItMadeAgain) {
  Runtime program(Driver());
  const ActorRef<Account> account = program.CreateActor<Account>(kOptions, 100);
  for (int i = 0; i < 3; ++i) program.Get(account.Call<&Account::Add>(1), kPatience);
  Runtime other(Driver());
  const ActorRef<Account> found = other.GetActor<Account>(kOptions.name);
  other.Kill(found, /*may_restart=*/true);
  EXPECT_EQ(other.Get(found.Call<&Account::Add>(0), kPatience), 103);
  other.Kill(found);
  EXPECT_THROW(other.Get(found.Call<&Account::Add>(0), kPatience), Error);
}

// Its owner was gone before he could forget it.
TEST_F(KeptActorsTest, OneThatHasItsNameNoLongerDoesNotComeBack) {
  {
    Runtime program(Driver());
    const ActorRef<Account> account = program.CreateActor<Account>(kOptions, 100);
    program.Get(account.Call<&Account::Add>(1), kPatience);
    AwaitKept([](const KeptActor&) { return true; });
  }
  keeper_->Stop();
  RunBatch(head_->store(), {StoreOperation::Delete(StoreTable::kNames, KeyOfActor(kOptions.name))},
           Deadline::After(kPatience));
  Succeed();
  const Deadline deadline = Deadline::After(kPatience);
  while (!Kept().empty() && !deadline.expired()) std::this_thread::yield();
  EXPECT_THAT(Kept(), IsEmpty());
  Runtime other(Driver());
  EXPECT_THROW(other.GetActor<Account>(kOptions.name), Error);
}

TEST_F(KeptActorsTest, OneWithoutCheckpointsIsMadeAgainAsOftenAsItMayBe) {
  {
    Runtime program(Driver());
    const ActorRef<Account> once =
        program.CreateActor<Account>({.name = "once @kept", .detached = true, .restarts = 1}, 10);
    const ActorRef<Account> never =
        program.CreateActor<Account>({.name = "never @kept", .detached = true}, 20);
    EXPECT_EQ(program.Get(once.Call<&Account::Add>(1), kPatience), 11);
    EXPECT_EQ(program.Get(never.Call<&Account::Add>(1), kPatience), 21);
    AwaitKept([](const KeptActor& kept) { return !kept.state.has_value(); });
  }
  Succeed();
  Runtime other(Driver());
  const ActorRef<Account> found = other.GetActor<Account>("once @kept");
  EXPECT_EQ(other.Get(found.Call<&Account::Add>(1), kPatience), 11);
  EXPECT_THROW(other.GetActor<Account>("never @kept"), Error);
  // Another keeper's end it would not outlive.
  const Deadline deadline = Deadline::After(kPatience);
  while (!Kept().empty() && !deadline.expired()) std::this_thread::yield();
  EXPECT_THAT(Kept(), IsEmpty());
}

TEST_F(KeptActorsTest, OfOneThatHasEndedNothingIsKept) {
  Runtime program(Driver());
  const ActorRef<Account> account = program.CreateActor<Account>(kOptions, 100);
  program.Get(account.Call<&Account::Add>(1), kPatience);
  AwaitKept([](const KeptActor&) { return true; });
  program.Kill(account);
  const Deadline deadline = Deadline::After(kPatience);
  while (!Kept().empty() && !deadline.expired()) std::this_thread::yield();
  EXPECT_THAT(Kept(), IsEmpty());
  keeper_->Stop();
  EXPECT_THAT(Left(), IsEmpty());
}

// Neither does who asks find that there is none, nor gets who makes one of that name it.
TEST_F(KeptActorsTest, ItsNameWaitsForIt) {
  Runtime other(Driver());
  {
    Runtime program(Driver());
    const ActorRef<Account> account = program.CreateActor<Account>(kOptions, 100);
    program.Get(account.Call<&Account::Add>(2), kPatience);
    program.Get(account.Call<&Account::Add>(3), kPatience);
    AwaitKept([](const KeptActor& kept) { return kept.state.has_value(); });
  }
  keeper_->Stop();
  const auto find = [&] { return other.GetActor<Account>(kOptions.name); };
  std::future<ActorRef<Account>> found = std::async(std::launch::async, find);
  EXPECT_EQ(found.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  const ActorRef<Account> another = other.CreateActor<Account>({.name = kOptions.name}, 0);
  const auto sum = another.Call<&Account::Add>(1);
  Succeed();
  EXPECT_EQ(other.Get(found.get().Call<&Account::Add>(0), kPatience), 105);
  EXPECT_THROW(other.Get(sum, kPatience), Error);
}

}  // namespace
}  // namespace menger
