#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "menger/base/clock.h"
#include "menger/base/file_testing.h"
#include "menger/runtime/testing/isolations.h"

// Getting and waiting for several objects, of which some fail, or many are ready.
namespace menger {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Ints = std::vector<ObjectRef<int>>;

int Throw(const std::string& text) { throw InvalidArgument("{}", text); }
void MakeFile(const std::string& path) { std::ofstream(path) << '1'; }
int AwaitFile(const std::string& path) {
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(milliseconds(1));
  return 0;
}
int ThrowLater(const std::string& text) {
  std::this_thread::sleep_for(milliseconds(50));
  return Throw(text);
}
int AwaitFileAndThrow(const std::string& path, const std::string& text) {
  AwaitFile(path);
  return Throw(text);
}

std::string FailureOf(Runtime& runtime, const Ints& references, std::chrono::nanoseconds timeout) {
  try {
    runtime.Get(references, timeout);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

class WaitingTest : public IsolationTest {
 protected:
  std::string Path(const std::string& name) { return folder.path() + "/" + name; }

  const testing_files::Folder folder;
};
INSTANTIATE_TEST_SUITE_P(Isolations, WaitingTest, BothIsolations(), IsolationName);

// What Get says of two calls, of which the first goes on until the file is there.
std::string FailureBesideAnEndlessCall(Runtime& runtime, const std::string& path) {
  const ObjectRef<int> bad = runtime.Call<ThrowLater>("the second");
  const Ints both = {runtime.Call<AwaitFile>(path), bad};
  const std::string failure = FailureOf(runtime, both, seconds(20));
  const bool waits = runtime.Wait(Ints{both[0]}, {.timeout = milliseconds(0)}).ready.empty();
  MakeFile(path);
  runtime.Get(both[0]);
  return waits ? failure : "it waited for the first";
}

TEST_P(WaitingTest, GetOfSeveralThrowsAsSoonAsOneHasFailed) {
  EXPECT_THAT(FailureBesideAnEndlessCall(runtime, Path("driver")), HasSubstr("the second"));
  EXPECT_THAT(runtime.Get(runtime.Call<FailureBesideAnEndlessCall>(Path("worker"))),
              HasSubstr("the second"));
}

std::string FailureBehindAnEndlessCall(Runtime& runtime, const std::string& path) {
  const Ints both = {runtime.Call<AwaitFile>(path), runtime.Call<Throw>("the second")};
  const std::string failure = FailureOf(runtime, both, seconds(20));
  MakeFile(path);
  runtime.Get(both[0]);
  return failure;
}

// Both were so short before that one worker is given them ahead, and the other one waits for them.
TEST_P(WaitingTest, WhatLiesBehindACallThatTurnsOutToBeEndlessGoesToAWorkerThatStandsIn) {
  MakeFile(Path("there"));
  for (int i = 0; i < 50; ++i) {
    runtime.Get(runtime.Call<AwaitFile>(Path("there")));
    EXPECT_THAT(FailureOf(runtime, {runtime.Call<Throw>("before")}, kNoTimeout),
                HasSubstr("before"));
  }
  EXPECT_THAT(runtime.Get(runtime.Call<FailureBehindAnEndlessCall>(Path("worker"))),
              HasSubstr("the second"));
}

std::string FailureOfTwo(Runtime& runtime) {
  const Ints both = {runtime.Call<Throw>("the first"), runtime.Call<Throw>("the second")};
  runtime.Wait(both, {.count = 2});
  return FailureOf(runtime, both, kNoTimeout);
}

TEST_P(WaitingTest, OfThoseThatHaveFailedAlreadyTheFirstIsTold) {
  EXPECT_THAT(FailureOfTwo(runtime), HasSubstr("the first"));
  EXPECT_THAT(runtime.Get(runtime.Call<FailureOfTwo>()), HasSubstr("the first"));
}

TEST_P(WaitingTest, TheDeadlineOfAGetOfSeveralHolds) {
  const Ints both = {runtime.Put(1), runtime.Call<AwaitFile>(Path("late"))};
  EXPECT_THAT(FailureOf(runtime, both, milliseconds(20)), HasSubstr("in time"));
  MakeFile(Path("late"));
  EXPECT_EQ(FailureOf(runtime, both, kNoTimeout), "none");
}

// ---- Waiting for one after the other.

int Sum(Runtime& runtime, const Ints& references) {
  int sum = 0;
  for (const int value : runtime.Get(references)) sum += value;
  return sum;
}

// The values of what each Wait said, in order.
std::vector<int> OneByOne(Runtime& runtime, int count) {
  Ints left;
  for (int i = 0; i < count; ++i) left.push_back(runtime.Put(i));
  std::vector<int> values;
  while (!left.empty()) {
    auto [ready, pending] = runtime.Wait(std::move(left));
    EXPECT_EQ(ready.size(), 1U);
    values.push_back(Sum(runtime, ready));
    left = std::move(pending);
  }
  return values;
}

TEST_P(WaitingTest, WhatIsReadyComesOneByOneInItsOrder) {
  std::vector<int> expected(300);
  for (int i = 0; i < 300; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(OneByOne(runtime, 300), expected);
  EXPECT_EQ(runtime.Get(runtime.Call<OneByOne>(300)), expected);
}

// Places of what is ready, and of what is pending, of six of which the third and the fifth wait.
std::vector<std::vector<int>> Split(Runtime& runtime, const std::string& path, std::size_t count,
                                    bool moved) {
  std::filesystem::remove(path);
  Ints six;
  for (int i = 0; i < 6; ++i) {
    six.push_back(i == 2 || i == 4 ? runtime.Call<AwaitFile>(path) : runtime.Put(i));
  }
  const Ints copy = six;
  const WaitOptions options{.count = count, .timeout = milliseconds(0)};
  const auto waited = moved ? runtime.Wait(std::move(six), options) : runtime.Wait(copy, options);
  MakeFile(path);
  runtime.Get(copy);
  const auto places = [&](const Ints& references) {
    std::vector<int> found;
    for (const ObjectRef<int>& reference : references) {
      for (int i = 0; i < 6; ++i) {
        if (copy[static_cast<std::size_t>(i)].id() == reference.id()) found.push_back(i);
      }
    }
    return found;
  };
  return {places(waited.ready), places(waited.pending)};
}

TEST_P(WaitingTest, OnlySoManyAreTakenAsAreWaitedForMovedOrCopied) {
  const std::vector<std::vector<std::vector<int>>> expected = {
      {{}, {0, 1, 2, 3, 4, 5}}, {{0}, {1, 2, 3, 4, 5}}, {{0, 1}, {2, 3, 4, 5}},
      {{0, 1, 3}, {2, 4, 5}},   {{0, 1, 3, 5}, {2, 4}}, {{0, 1, 3, 5}, {2, 4}}};
  const std::string path = Path("split");
  for (std::size_t count = 0; count < expected.size(); ++count) {
    for (const bool moved : {false, true}) {
      EXPECT_EQ(Split(runtime, path, count, moved), expected[count]) << count << moved;
      EXPECT_EQ(runtime.Get(runtime.Call<Split>(path, count, moved)), expected[count])
          << count << moved;
    }
  }
}

// Of what is ready and known to be so, what comes before it is asked about once more.
std::vector<int> ReadyLater(Runtime& runtime, const std::string& path) {
  const ObjectRef<int> late = runtime.Call<AwaitFile>(path);
  const ObjectRef<int> there = runtime.Put(1);
  const Ints both = {late, there};
  const bool second = runtime.Wait(both).ready[0].id() == there.id();
  MakeFile(path);
  runtime.Get(late);
  const bool first = runtime.Wait(both).ready[0].id() == late.id();
  return {second, first};
}

TEST_P(WaitingTest, WhatBecameReadySinceComesInItsOrder) {
  EXPECT_EQ(ReadyLater(runtime, Path("driver")), (std::vector<int>{1, 1}));
  EXPECT_EQ(runtime.Get(runtime.Call<ReadyLater>(Path("worker"))), (std::vector<int>{1, 1}));
}

double SecondsOfWaits(Runtime& runtime, int count) {
  Ints left;
  for (int i = 0; i < count; ++i) left.push_back(runtime.Put(i));
  const Stopwatch watch;
  while (!left.empty()) left = runtime.Wait(std::move(left)).pending;
  return watch.seconds();
}

double SecondsOfGets(Runtime& runtime, int count) {
  Ints all;
  for (int i = 0; i < count; ++i) all.push_back(runtime.Put(i));
  const Stopwatch watch;
  for (const ObjectRef<int>& one : all) runtime.Get(one);
  return watch.seconds();
}

// Each Wait costs what it takes to move the references by a place, which is some of what a Get
// costs; a question about each would be a thousand of these.
TEST_P(WaitingTest, SlowManyThatAreReadyAreSoonWaitedFor) {
  constexpr int kCount = 10'000;
  EXPECT_LT(SecondsOfWaits(runtime, kCount), 100 * SecondsOfGets(runtime, kCount));
  EXPECT_LT(runtime.Get(runtime.Call<SecondsOfWaits>(kCount)),
            100 * runtime.Get(runtime.Call<SecondsOfGets>(kCount)));
}

// ---- A further run of a method is told the same.

class Chooser {
 public:
  // Of two calls the second fails first; when a further run asks both have failed.
  std::string FirstFailure(Runtime& runtime, const std::string& folder) {
    const ObjectRef<int> bad = runtime.Call<ThrowLater>("the second");
    const Ints both = {runtime.Call<AwaitFileAndThrow>(folder + "/gate", "the first"), bad};
    told_ += FailureOf(runtime, both, timeout_);
    MakeFile(folder + "/gate");
    told_ += FailureOf(runtime, {both[0]}, kNoTimeout);
    if (!std::filesystem::exists(folder + "/died")) {
      MakeFile(folder + "/died");
      raise(SIGKILL);
    }
    return told_;
  }
  void SetTimeout(double timeout) {
    timeout_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(timeout));
  }

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(told_);
  }

 private:
  std::string told_;
  std::chrono::nanoseconds timeout_ = kNoTimeout;
};

std::string TwoFailures(Runtime& runtime, const std::string& folder, double timeout) {
  const auto chooser = runtime.CreateActor<Chooser>({.checkpoint_every = 10});
  if (timeout > 0) chooser.Call<&Chooser::SetTimeout>(timeout);
  return runtime.Get(chooser.Call<&Chooser::FirstFailure>(folder));
}

TEST(WaitingAgainTest, AFurtherRunIsToldOfTheSameFailure) {
  Runtime runtime({.workers = 2});
  for (const double timeout : {0.0, 1000.0}) {
    const testing_files::Folder folder;
    const std::string told = TwoFailures(runtime, folder.path(), timeout);
    EXPECT_LT(told.find("the second"), told.find("the first")) << told;
    EXPECT_NE(told.find("the first"), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace menger
