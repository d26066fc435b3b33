#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/runtime.h"

// Actors that do several calls at once.
namespace menger {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

template <typename Condition>
bool BecomesTrue(const Condition& condition) {
  const Deadline deadline = Deadline::After(kPatience);
  while (!condition() && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
  return condition();
}

class Meeting {
 public:
  // Returns when so many calls are here.
  bool Arrive(int count) {
    ++here_;
    return BecomesTrue([&] { return here_ >= count; });
  }
  bool ArriveAgain(int count) {
    ++again_;
    return BecomesTrue([&] { return again_ >= count; });
  }
  int Add(int amount) { return sum_ += amount; }
  bool Opposite(bool value) { return !value; }
  // The same actor must answer while this waits.
  int AskItself(Runtime& runtime, const ActorRef<Meeting>& self) {
    return runtime.Get(self.Call<&Meeting::Add>(1));
  }
  int MostAtOnce() { return most_; }
  void ComeAndGo() {
    const int now = ++running_;
    int before = most_;
    while (before < now && !most_.compare_exchange_weak(before, now)) {
    }
    std::this_thread::sleep_for(milliseconds(1));
    --running_;
  }
  std::size_t Length(const std::string& text) { return text.size(); }
  std::string Repeat(char letter, std::size_t count) { return std::string(count, letter); }
  void Count(Emitter<int>& emit, int first, int count) {
    for (int i = 0; i < count; ++i) emit(first + i);
  }
  bool AwaitCancel(Runtime& runtime) {
    ++here_;
    return BecomesTrue([&] { return runtime.IsCancelled(); });
  }
  int Process() { return getpid(); }
  int Die() { return std::raise(SIGKILL); }

 private:
  std::atomic<int> here_ = 0;
  std::atomic<int> again_ = 0;
  std::atomic<int> sum_ = 0;
  std::atomic<int> running_ = 0;
  std::atomic<int> most_ = 0;
};

// Says in a file that it was destroyed.
class Farewell {
 public:
  explicit Farewell(std::string file) : file_(std::move(file)) {}
  ~Farewell() { std::ofstream(file_) << "gone"; }
  int Nap(int duration) {
    ++naps_;
    std::this_thread::sleep_for(milliseconds(duration));
    return duration;
  }
  int Naps() { return naps_; }

 private:
  const std::string file_;
  std::atomic<int> naps_ = 0;
};

// As Meeting, and all who come stand before its door by then.
class LateMeeting : public Meeting {
 public:
  LateMeeting() { std::this_thread::sleep_for(milliseconds(300)); }
  bool Bring(const std::string& /*luggage*/, int count) { return Arrive(count); }
};

class ConcurrencyTest : public testing::Test {
 protected:
  ActorRef<Meeting> Make(int concurrency, ActorOptions options = {}) {
    options.concurrency = concurrency;
    return runtime.CreateActor<Meeting>(options);
  }

  Runtime runtime{RuntimeOptions{.workers = 2}};
};

TEST_F(ConcurrencyTest, CallsMeet) {
  const ActorRef<Meeting> meeting = Make(4);
  std::vector<ObjectRef<bool>> met;
  for (int i = 0; i < 4; ++i) met.push_back(meeting.Call<&Meeting::Arrive>(4));
  EXPECT_THAT(runtime.Get(met, kPatience), testing::Each(true));
}

// All begin before any of them is finished, though the way to the worker holds no more than half.
TEST_F(ConcurrencyTest, MoreCallsMeetThanTheWayToTheWorkerHolds) {
  constexpr int kCalls = 300;
  const std::string luggage(60'000, 'x');
  const auto meeting = runtime.CreateActor<LateMeeting>({.concurrency = kCalls});
  std::vector<ObjectRef<bool>> met;
  for (int i = 0; i < kCalls; ++i) {
    met.push_back(meeting.Call<&LateMeeting::Bring>(luggage, kCalls));
  }
  EXPECT_THAT(runtime.Get(met, kPatience), testing::Each(true));
}

TEST_F(ConcurrencyTest, ACallMayWaitForAnotherOfItsActor) {
  const ActorRef<Meeting> meeting = Make(2);
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(runtime.Get(meeting.Call<&Meeting::AskItself>(meeting), kPatience), i);
  }
}

TEST_F(ConcurrencyTest, NoMoreCallsRunAtOnceThanAreAllowed) {
  const ActorRef<Meeting> meeting = Make(3);
  std::vector<ObjectRef<void>> calls;
  for (int i = 0; i < 200; ++i) calls.push_back(meeting.Call<&Meeting::ComeAndGo>());
  runtime.Get(calls, kPatience);
  EXPECT_LE(runtime.Get(meeting.Call<&Meeting::MostAtOnce>()), 3);
}

// The node keeps a call's place, however many come and go behind it.
TEST_F(ConcurrencyTest, ACallThatWaitsDoesNotStopTheOthers) {
  const ActorRef<Meeting> meeting = Make(2);
  const auto waits = meeting.Call<&Meeting::Arrive>(2);
  for (int i = 1; i <= 3000; ++i) {
    ASSERT_EQ(runtime.Get(meeting.Call<&Meeting::Add>(1), kPatience), i);
  }
  EXPECT_TRUE(runtime.Get(meeting.Call<&Meeting::Arrive>(2), kPatience));
  EXPECT_TRUE(runtime.Get(waits, kPatience));
}

// What the argument waits for may come after it.
TEST_F(ConcurrencyTest, ACallWhoseArgumentIsNotThereHoldsNoneBack) {
  const ActorRef<Meeting> meeting = Make(2);
  const auto waits = meeting.Call<&Meeting::Arrive>(2);
  std::vector<ObjectRef<bool>> opposites;
  for (int i = 0; i < 3; ++i) opposites.push_back(meeting.Call<&Meeting::Opposite>(waits));
  EXPECT_EQ(runtime.Get(meeting.Call<&Meeting::Add>(5), kPatience), 5);
  runtime.Cancel(opposites[1]);
  EXPECT_THROW(runtime.Get(opposites[1], kPatience), Error);
  EXPECT_TRUE(runtime.Get(meeting.Call<&Meeting::Arrive>(2), kPatience));
  EXPECT_FALSE(runtime.Get(opposites[0], kPatience));
  EXPECT_FALSE(runtime.Get(opposites[2], kPatience));
}

TEST_F(ConcurrencyTest, CallsThatWaitForArgumentsFailWhenItDies) {
  const ActorRef<Meeting> meeting = Make(2);
  const ActorRef<Meeting> other = Make(2);
  const auto waits = other.Call<&Meeting::Arrive>(2);
  const auto opposite = meeting.Call<&Meeting::Opposite>(waits);
  EXPECT_THROW(runtime.Get(meeting.Call<&Meeting::Die>(), kPatience), Error);
  EXPECT_THROW(runtime.Get(opposite, kPatience), Error);
  other.Call<&Meeting::Arrive>(2);
  EXPECT_TRUE(runtime.Get(waits, kPatience));
}

TEST_F(ConcurrencyTest, ManyCallsLargeAndSmall) {
  const ActorRef<Meeting> meeting = Make(8);
  std::vector<ObjectRef<int>> sums;
  for (int i = 0; i < 5000; ++i) sums.push_back(meeting.Call<&Meeting::Add>(1));
  runtime.Get(sums, kPatience);
  EXPECT_EQ(runtime.Get(meeting.Call<&Meeting::Add>(0)), 5000);
  std::vector<ObjectRef<std::size_t>> lengths;
  for (std::size_t i = 0; i < 50; ++i) {
    const auto text = meeting.Call<&Meeting::Repeat>('x', 200'000 + i);
    lengths.push_back(meeting.Call<&Meeting::Length>(text));
  }
  const std::vector<std::size_t> all = runtime.Get(lengths, kPatience);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(all[i], 200'000 + i);
}

TEST_F(ConcurrencyTest, StreamsAreToldApart) {
  const ActorRef<Meeting> meeting = Make(3);
  std::vector<ObjectStream<int>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(meeting.Stream<&Meeting::Count>(1000 * i, 300));
  for (int i = 0; i < 3; ++i) {
    int expected = 1000 * i;
    for (const ObjectRef<int>& item : streams[static_cast<std::size_t>(i)]) {
      ASSERT_EQ(runtime.Get(item, kPatience), expected++);
    }
    EXPECT_EQ(expected, 1000 * i + 300);
  }
}

// Both threads are busy until they hear of it; then all are there for others.
TEST_F(ConcurrencyTest, CancelledCallsAreTold) {
  const ActorRef<Meeting> meeting = Make(3);
  const auto other = meeting.Call<&Meeting::Arrive>(3);
  const auto first = meeting.Call<&Meeting::AwaitCancel>();
  const auto second = meeting.Call<&Meeting::AwaitCancel>();
  EXPECT_TRUE(runtime.Get(other, kPatience));
  runtime.Cancel(first);
  runtime.Cancel(second);
  EXPECT_THROW(runtime.Get(first, kPatience), TaskError);
  EXPECT_THROW(runtime.Get(second, kPatience), TaskError);
  std::vector<ObjectRef<bool>> met;
  for (int i = 0; i < 3; ++i) met.push_back(meeting.Call<&Meeting::ArriveAgain>(3));
  EXPECT_THAT(runtime.Get(met, kPatience), testing::Each(true));
}

TEST_F(ConcurrencyTest, AllThatRanFailWhenItDies) {
  const ActorRef<Meeting> meeting = Make(4, {.restarts = 1});
  std::vector<ObjectRef<bool>> waiting;
  for (int i = 0; i < 2; ++i) waiting.push_back(meeting.Call<&Meeting::Arrive>(1000));
  EXPECT_EQ(runtime.Get(meeting.Call<&Meeting::Add>(1)), 1);
  EXPECT_THROW(runtime.Get(meeting.Call<&Meeting::Die>()), TaskError);
  for (const auto& call : waiting) EXPECT_THROW(runtime.Get(call, kPatience), TaskError);
  const ObjectRef<bool> first = meeting.Call<&Meeting::Arrive>(2);  // It is concurrent again.
  EXPECT_TRUE(runtime.Get(meeting.Call<&Meeting::Arrive>(2), kPatience));
  EXPECT_TRUE(runtime.Get(first, kPatience));
}

TEST_F(ConcurrencyTest, CallsThatMayBeRetriedRunAgainWhenItDies) {
  const ActorRef<Meeting> meeting = Make(4, {.restarts = 1, .call_retries = 1});
  const int process = runtime.Get(meeting.Call<&Meeting::Process>());
  std::vector<ObjectRef<bool>> met;
  for (int i = 0; i < 2; ++i) met.push_back(meeting.Call<&Meeting::Arrive>(3));
  kill(process, SIGKILL);
  met.push_back(meeting.Call<&Meeting::Arrive>(3));
  EXPECT_THAT(runtime.Get(met, kPatience), testing::Each(true));
}

TEST_F(ConcurrencyTest, WithoutHandlesItEnds) {
  ActorRef<Meeting> meeting = Make(4);
  std::vector<ObjectRef<bool>> met;
  for (int i = 0; i < 3; ++i) met.push_back(meeting.Call<&Meeting::Arrive>(3));
  runtime.Get(met, kPatience);
  const int process = runtime.Get(meeting.Call<&Meeting::Process>());
  meeting = ActorRef<Meeting>();
  EXPECT_TRUE(BecomesTrue([&] { return kill(process, 0) != 0; }));
}

// So many are offered at the most; the others wait at the node.
TEST_F(ConcurrencyTest, MoreCallsThanCanBeUnderWayTakeTurns) {
  const ActorRef<Meeting> meeting = Make(20'000);
  std::vector<ObjectRef<void>> calls;
  for (int i = 0; i < 3000; ++i) calls.push_back(meeting.Call<&Meeting::ComeAndGo>());
  runtime.Get(calls, kPatience);
  EXPECT_LE(runtime.Get(meeting.Call<&Meeting::MostAtOnce>()), 1024);
}

TEST_F(ConcurrencyTest, WhatCannotBeIsRefused) {
  const auto refusal = [this](int concurrency, ActorOptions options) {
    try {
      Make(concurrency, std::move(options));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(0, {}), HasSubstr("is 0; it must lie between 1 and 65535"));
  EXPECT_THAT(refusal(65'536, {}), HasSubstr("between 1 and 65535"));
  Runtime threads({.workers = 1, .isolation = Isolation::kThread});
  const auto actor = threads.CreateActor<Meeting>({.concurrency = 2});
  try {
    threads.Get(actor.Call<&Meeting::Add>(1), kPatience);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_THAT(error.what(), HasSubstr("needs Isolation::kProcess"));
  }
}

TEST_F(ConcurrencyTest, AnActorEndsAfterACallThatWasCancelled) {
  const std::string file = testing::TempDir() + "farewell";
  std::filesystem::remove(file);
  {
    const ActorRef<Farewell> actor =
        runtime.CreateActor<Farewell>(ActorOptions{.concurrency = 2}, file);
    const ObjectRef<int> nap = actor.Call<&Farewell::Nap>(300);
    EXPECT_TRUE(BecomesTrue([&] { return runtime.Get(actor.Call<&Farewell::Naps>()) == 1; }));
    runtime.Cancel(nap);
  }
  // Its process waits for the call, and destroys the actor then.
  EXPECT_TRUE(BecomesTrue([&] { return std::filesystem::exists(file); }));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace menger
