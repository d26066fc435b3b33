#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/runtime/driver/two_nodes_testing.h"
#include "menger/runtime/runtime.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kPatience(60);

int Square(int x) { return x * x; }
std::vector<double> Ramp(int size) {
  std::vector<double> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), 0.);
  return values;
}
double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.);
}
double SumOfBoth(const std::vector<double>& one, const std::vector<double>& other) {
  return Sum(one) + Sum(other);
}
int Throw(int x) { throw std::out_of_range("no " + std::to_string(x)); }
int Process() { return static_cast<int>(::getpid()); }
// Dies the first time.
int DieOnce(const std::string& mark) {
  if (::access(mark.c_str(), F_OK) == 0) return 7;
  { std::ofstream file(mark); }
  return std::raise(SIGKILL);
}
int Slowly(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return milliseconds;
}
int UntilCancelled(Runtime& runtime) {
  for (int i = 0; i < 60'000 && !runtime.IsCancelled(); ++i) Slowly(1);
  return 1;
}
bool IsCancelled(Runtime& runtime) { return runtime.IsCancelled(); }
void Count(Emitter<std::vector<double>>& emit, int count) {
  for (int i = 0; i < count; ++i) emit(std::vector<double>(20'000, i));
}
std::vector<ObjectRef<int>> References(Runtime& runtime, int count) {
  std::vector<ObjectRef<int>> references;
  for (int i = 0; i < count; ++i) references.push_back(runtime.Put(i));
  return references;
}
class Account {
 public:
  explicit Account(int start) : sum_(start) {}
  int Add(int amount) { return sum_ += amount; }
  int Where() { return Process(); }
  int Die() { return std::raise(SIGKILL); }
  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(sum_);
  }

 private:
  int sum_;
};
// Lets nobody go before all have come.
class Meeting {
 public:
  explicit Meeting(int all) : missing_(all) {}
  int Come() {
    std::unique_lock lock(mutex_);
    --missing_;
    changed_.notify_all();
    return changed_.wait_for(lock, kPatience, [this] { return missing_ <= 0; }) ? 1 : 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};
int Nested(Runtime& runtime, int x) { return runtime.Get(runtime.Call<Square>(x)) + 1; }

CallOptions Far() { return {.resources = {{"far", 1}}}; }

TEST(TwoNodesTest, ACallRunsOnTheOtherNode) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  EXPECT_EQ(runtime.Get(runtime.CallWith<Square>(Far(), 7), kPatience), 49);
}

TEST(TwoNodesTest, SoDoManyAndTheirNestedCallsComeHome) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  std::vector<ObjectRef<int>> calls;
  for (int i = 0; i < 200; ++i) calls.push_back(runtime.CallWith<Square>(Far(), i));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(runtime.Get(calls[i], kPatience), i * i);
  EXPECT_EQ(runtime.Get(runtime.CallWith<Nested>(Far(), 5), kPatience), 26);
}

void GoBothWays(TwoNodes::Options way) {
  TwoNodes nodes({.workers = 1}, std::move(way));
  Runtime runtime(nodes.near());
  const auto there = runtime.CallWith<Ramp>(Far(), 400'000);
  const auto sum = runtime.CallWith<Sum>(Far(), there);
  const double expected = 400'000. * 399'999 / 2;
  EXPECT_EQ(runtime.Get(sum, kPatience), expected);
  EXPECT_EQ(Sum(runtime.Get(there, kPatience)), expected);
  const auto here = runtime.Put(Ramp(300'000));
  EXPECT_EQ(runtime.Get(runtime.CallWith<Sum>(Far(), here), kPatience), 300'000. * 299'999 / 2);
}

TEST(TwoNodesTest, LargerValuesGoBothWays) { GoBothWays({}); }
TEST(TwoNodesTest, LargerValuesAreShownBothWays) { GoBothWays({.beside = true}); }

TEST(TwoNodesTest, WhatComesFromThereSendsOthersToTheDisk) {
  TwoNodes nodes({.workers = 1, .store_bytes_max = 8 << 20});
  Runtime runtime(nodes.near());
  std::vector<ObjectRef<std::vector<double>>> ramps;
  for (int i = 0; i < 8; ++i) ramps.push_back(runtime.CallWith<Ramp>(Far(), 400'000 + i));
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < 8; ++i) EXPECT_EQ(runtime.Get(ramps[i], kPatience).size(), 400'000 + i);
  }
}

void ComeFromTheDiskThere(bool beside) {
  TwoNodes nodes({.workers = 1}, {.beside = beside, .far_store_bytes = 8 << 20});
  Runtime runtime(nodes.near());
  std::vector<ObjectRef<std::vector<double>>> ramps;
  for (int i = 0; i < 8; ++i) ramps.push_back(runtime.CallWith<Ramp>(Far(), 400'000 + i));
  EXPECT_EQ(runtime.Wait(ramps, {.count = 8, .timeout = kPatience}).ready.size(), 8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(runtime.Get(ramps[i], kPatience).size(), 400'000 + i);
}

TEST(TwoNodesTest, WhatWentToTheDiskThereComesHere) { ComeFromTheDiskThere(false); }
TEST(TwoNodesTest, WhatWentToTheDiskThereIsShown) { ComeFromTheDiskThere(true); }

// Each pair fits in, and no two pairs do.
TEST(TwoNodesTest, CallsThatReadWhatWentToTheDiskThereHaveAllOfItAtOnce) {
  TwoNodes nodes({.workers = 1}, {.far_store_bytes = 8 << 20});
  Runtime runtime(nodes.near());
  std::vector<ObjectRef<std::vector<double>>> ramps;
  for (int i = 0; i < 8; ++i) ramps.push_back(runtime.CallWith<Ramp>(Far(), 400'000));
  EXPECT_EQ(runtime.Wait(ramps, {.count = 8, .timeout = kPatience}).ready.size(), 8);
  std::vector<ObjectRef<double>> sums;
  for (int i = 0; i < 8; ++i) {
    sums.push_back(runtime.CallWith<SumOfBoth>(Far(), ramps[i], ramps[(i + 3) % 8]));
  }
  for (const auto& sum : sums) EXPECT_EQ(runtime.Get(sum, kPatience), 400'000. * 399'999);
}

TEST(TwoNodesTest, ACallThatReadsMoreThanTheStoreThereHasFails) {
  TwoNodes nodes({.workers = 1}, {.far_store_bytes = 5 << 20});
  Runtime runtime(nodes.near());
  const auto one = runtime.CallWith<Ramp>(Far(), 400'000);
  const auto other = runtime.CallWith<Ramp>(Far(), 400'000);
  try {
    runtime.Get(runtime.CallWith<SumOfBoth>(Far(), one, other), kPatience);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), FailureKind::kOutOfMemory) << error.what();
  }
}

TEST(TwoNodesTest, WhatIsLargerThanTheStoreHereStaysThereAndIsRefused) {
  TwoNodes nodes({.workers = 1, .store_bytes_max = 8 << 20});
  Runtime runtime(nodes.near());
  const auto large = runtime.CallWith<Ramp>(Far(), 2'000'000);
  try {
    runtime.Get(large, kPatience);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), FailureKind::kOutOfMemory) << error.what();
  }
  EXPECT_EQ(runtime.Get(runtime.CallWith<Sum>(Far(), large), kPatience),
            2'000'000. * 1'999'999 / 2);
}

TEST(TwoNodesTest, WhatFailsThereIsToldHere) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  try {
    runtime.Get(runtime.CallWith<Throw>(Far(), 7), kPatience);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.failure().type, "std::out_of_range");
    EXPECT_EQ(error.failure().text, "no 7");
  }
}

TEST(TwoNodesTest, AWorkerThatDiesThereCostsARun) {
  const std::string mark = testing::TempDir() + "menger_two_nodes_" + std::to_string(::getpid());
  std::filesystem::remove(mark);
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  EXPECT_EQ(runtime.Get(runtime.CallWith<DieOnce>(Far(), mark), kPatience), 7);
  std::filesystem::remove(mark);
}

TEST(TwoNodesTest, ActorsLiveThere) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  const ActorRef<Account> account = runtime.CreateActor<Account>({.resources = {{"far", 1}}}, 100);
  std::vector<ObjectRef<int>> sums;
  for (int i = 0; i < 50; ++i) sums.push_back(account.Call<&Account::Add>(1));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(runtime.Get(sums[i], kPatience), 101 + i);
  EXPECT_NE(runtime.Get(account.Call<&Account::Where>(), kPatience),
            runtime.Get(runtime.Call<Process>(), kPatience));
  EXPECT_THROW(runtime.Get(account.Call<&Account::Die>(), kPatience), TaskError);
}

TEST(TwoNodesTest, AnActorThereDoesAsManyCallsAtOnceAsItMay) {
  constexpr int kCalls = 150;
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  const ActorRef<Meeting> meeting =
      runtime.CreateActor<Meeting>({.resources = {{"far", 1}}, .concurrency = kCalls}, kCalls);
  std::vector<ObjectRef<int>> calls;
  for (int i = 0; i < kCalls; ++i) calls.push_back(meeting.Call<&Meeting::Come>());
  for (const ObjectRef<int>& call : calls) EXPECT_EQ(runtime.Get(call, kPatience), 1);
}

TEST(TwoNodesTest, ACheckpointedActorComesBackThere) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  const ActorRef<Account> account = runtime.CreateActor<Account>(
      {.resources = {{"far", 1}}, .call_retries = 0, .checkpoint_every = 4}, 100);
  for (int i = 0; i < 10; ++i) runtime.Get(account.Call<&Account::Add>(1), kPatience);
  EXPECT_THROW(runtime.Get(account.Call<&Account::Die>(), kPatience), TaskError);
  EXPECT_EQ(runtime.Get(account.Call<&Account::Add>(1), kPatience), 111);
}

TEST(TwoNodesTest, CallsThereAreCancelled) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  const auto waiting = runtime.CallWith<UntilCancelled>(Far());
  const auto quick = runtime.CallWith<Square>(Far(), 2);
  EXPECT_EQ(runtime.Get(quick, kPatience), 4);
  runtime.Cancel(waiting);
  EXPECT_THROW(runtime.Get(waiting, kPatience), TaskError);
  EXPECT_EQ(runtime.Get(runtime.CallWith<Square>(Far(), 3), kPatience), 9);
}

// The next loan's calls are numbered as that one's were.
TEST(TwoNodesTest, ACancelledCallIsNoneOfTheNextLoans) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  for (int round = 0; round < 5; ++round) {
    const auto waiting = runtime.CallWith<UntilCancelled>(Far());
    Slowly(20);
    runtime.Cancel(waiting);
    EXPECT_THROW(runtime.Get(waiting, kPatience), TaskError);
    Slowly(30);  // It goes home.
    for (int i = 0; i < 4; ++i) {
      EXPECT_FALSE(runtime.Get(runtime.CallWith<IsCancelled>(Far()), kPatience)) << round;
    }
    Slowly(30);
  }
}

TEST(TwoNodesTest, StreamsComeFromThere) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  CallOptions options = Far();
  options.stream_ahead = 4;
  ObjectStream<std::vector<double>> stream = runtime.StreamWith<Count>(options, 20);
  double expected = 0;
  for (const auto& item : stream) EXPECT_EQ(runtime.Get(item, kPatience)[7], expected++);
  EXPECT_EQ(expected, 20);
}

TEST(TwoNodesTest, WhatIsPutThereStays) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  const auto references = runtime.Get(runtime.CallWith<References>(Far(), 100), kPatience);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(runtime.Get(references[i], kPatience), i);
}

TEST(TwoNodesTest, TheEndOfTheOtherNodeIsAnErrorForWhatOnlyItCouldDo) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  const auto there = runtime.CallWith<Ramp>(Far(), 400'000);
  EXPECT_EQ(runtime.Wait(std::vector{there}, {.timeout = kPatience}).ready.size(), 1);
  const auto running = runtime.CallWith<Slowly>(Far(), 60'000);
  nodes.near().HearOfEnd(LifeOf(1), "its plug was pulled");
  EXPECT_THROW(runtime.Get(running, kPatience), TaskError);
  EXPECT_THROW(runtime.Get(there, kPatience), TaskError);
  EXPECT_EQ(runtime.Get(runtime.Call<Square>(3), kPatience), 9);
}

}  // namespace
}  // namespace menger
