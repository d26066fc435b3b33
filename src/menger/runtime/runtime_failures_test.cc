#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "menger/runtime/testing/isolations.h"

// Every way in which a call can fail, with real threads and processes: what `Get` says then.
namespace menger {
namespace {

using std::chrono::milliseconds;

template <typename T>
TaskFailure FailureOf(Runtime& runtime, const ObjectRef<T>& reference) {
  try {
    runtime.Get(reference, std::chrono::seconds(20));
  } catch (const TaskError& error) {
    return error.failure();
  } catch (const Error& error) {
    ADD_FAILURE() << "no TaskError: " << error.what();
    return {};
  }
  ADD_FAILURE() << "it did not fail";
  return {};
}

// `part`: of what people read.
void ExpectFailure(const TaskFailure& failure, FailureKind kind, std::string_view part) {
  EXPECT_STREQ(FailureKindName(failure.kind), FailureKindName(kind)) << failure.ToString();
  EXPECT_NE(failure.ToString().find(part), std::string::npos) << failure.ToString();
}

int ThrowInteger(int x) { throw x; }
int ThrowError(int x) { throw NotFound("no {}", x); }
int Same(int x) { return x; }
int SleepFor(int duration) {
  std::this_thread::sleep_for(milliseconds(duration));
  return duration;
}
int SleepUntilCancelled(Runtime& runtime) {
  while (!runtime.IsCancelled()) std::this_thread::sleep_for(milliseconds(1));
  return 1;
}

class Account {
 public:
  explicit Account(int start) : value_(start) {
    if (start < 0) throw std::invalid_argument("less than nothing");
  }
  int Add(int amount) { return value_ += amount; }
  int Throw() { throw std::logic_error("never"); }
  int Die() { return std::raise(SIGKILL); }

 private:
  int value_;
};

class FailuresTest : public IsolationTest {};
INSTANTIATE_TEST_SUITE_P(Isolations, FailuresTest, BothIsolations(), IsolationName);

TEST_P(FailuresTest, WhatIsThrown) {
  ExpectFailure(FailureOf(runtime, runtime.Call<ThrowInteger>(3)), FailureKind::kException, "int");
  const TaskFailure failure = FailureOf(runtime, runtime.Call<ThrowError>(3));
  EXPECT_EQ(failure.code, ErrorCode::kNotFound);
  ExpectFailure(failure, FailureKind::kException, "no 3");
  EXPECT_NE(failure.worker.find("worker"), std::string::npos);
}

TEST_P(FailuresTest, AFailedArgument) {
  const ObjectRef<int> bad = runtime.Call<ThrowError>(3);
  ExpectFailure(FailureOf(runtime, runtime.Call<Same>(bad)), FailureKind::kException, "no 3");
}

TEST_P(FailuresTest, AnActorOutlivesWhatItsMethodsThrow) {
  const ActorRef<Account> account = runtime.CreateActor<Account>({}, 5);
  ExpectFailure(FailureOf(runtime, account.Call<&Account::Throw>()), FailureKind::kException,
                "never");
  EXPECT_EQ(runtime.Get(account.Call<&Account::Add>(1)), 6);
}

TEST_P(FailuresTest, AnActorThatCannotBeMade) {
  const ActorRef<Account> account = runtime.CreateActor<Account>({}, -5);
  ExpectFailure(FailureOf(runtime, account.Call<&Account::Add>(1)), FailureKind::kActorDied,
                "less than nothing");
}

TEST_P(FailuresTest, AKilledActor) {
  const ActorRef<Account> account = runtime.CreateActor<Account>({}, 5);
  EXPECT_EQ(runtime.Get(account.Call<&Account::Add>(1)), 6);
  runtime.Kill(account);
  ExpectFailure(FailureOf(runtime, account.Call<&Account::Add>(1)), FailureKind::kActorDied,
                "killed by its user");
}

TEST_P(FailuresTest, CancelledInTheQueue) {
  // Two are done at once; each of the others waits behind one of them.
  std::vector<ObjectRef<int>> busy;
  for (int i = 0; i < 2; ++i) busy.push_back(runtime.Call<SleepFor>(300));
  const ObjectRef<int> queued = runtime.Call<Same>(1);
  const ObjectRef<int> waiting = runtime.Call<Same>(busy.front());
  runtime.Cancel(queued);
  runtime.Cancel(waiting);
  ExpectFailure(FailureOf(runtime, queued), FailureKind::kCancelled, "cancelled");
  ExpectFailure(FailureOf(runtime, waiting), FailureKind::kCancelled, "cancelled");
  EXPECT_EQ(runtime.Get(busy).size(), 2U);
}

TEST_P(FailuresTest, CancelledWhileItRuns) {
  const ObjectRef<int> running = runtime.Call<SleepUntilCancelled>();
  runtime.Wait(std::vector{running}, {.timeout = milliseconds(50)});
  runtime.Cancel(running);
  ExpectFailure(FailureOf(runtime, running), FailureKind::kCancelled, "cancelled");
  // Its worker is free again.
  for (int i = 0; i < 4; ++i) EXPECT_EQ(runtime.Get(runtime.Call<Same>(i)), i);
  runtime.Cancel(running);  // Nothing is left to be cancelled.
}

TEST_P(FailuresTest, CancelledAfterItWasDone) {
  const ObjectRef<int> done = runtime.Call<Same>(1);
  EXPECT_EQ(runtime.Get(done), 1);
  runtime.Cancel(done);
  EXPECT_EQ(runtime.Get(done), 1);
}

// ---- What only processes survive.

int EndBy(const std::string& way) {
  if (way == "exit") std::exit(3);
  if (way == "abort") std::abort();
  std::signal(SIGSEGV, SIG_DFL);  // Sanitizers have handlers of their own.
  std::raise(way == "segmentation fault" ? SIGSEGV : SIGKILL);
  return 0;
}
int DieOnce(const std::string& mark) {
  if (std::filesystem::exists(mark)) return 7;
  std::ofstream(mark) << "x";
  return std::raise(SIGKILL);
}
int Forever() {
  for (;;) std::this_thread::sleep_for(milliseconds(100));
}

class DeathsTest : public testing::Test {
 protected:
  Runtime runtime{RuntimeOptions{.workers = 2}};
};

TEST_F(DeathsTest, OfAWorker) {
  const std::pair<const char*, const char*> ways[] = {{"exit", "exit"},
                                                      {"abort", "SIGABRT"},
                                                      {"segmentation fault", "SIGSEGV"},
                                                      {"kill", "SIGKILL"}};
  for (const auto& [way, said] : ways) {
    const ObjectRef<int> dead = runtime.CallWith<EndBy>({.retries = 0}, std::string(way));
    ExpectFailure(FailureOf(runtime, dead), FailureKind::kWorkerDied, said);
  }
  EXPECT_EQ(runtime.Get(runtime.Call<Same>(1)), 1);
}

TEST_F(DeathsTest, OfAWorkerThatMayBeTriedAgain) {
  const std::string mark = testing::TempDir() + "menger_died_once_" + std::to_string(getpid());
  std::filesystem::remove(mark);
  EXPECT_EQ(runtime.Get(runtime.Call<DieOnce>(mark)), 7);
  std::filesystem::remove(mark);
  ExpectFailure(FailureOf(runtime, runtime.CallWith<EndBy>({.retries = 2}, std::string("kill"))),
                FailureKind::kWorkerDied, "begun 3 times");
}

TEST_F(DeathsTest, OfAnActor) {
  const ActorRef<Account> account = runtime.CreateActor<Account>({}, 5);
  const ObjectRef<int> dying = account.Call<&Account::Die>();
  ExpectFailure(FailureOf(runtime, dying), FailureKind::kActorDied, "SIGKILL");
  ExpectFailure(FailureOf(runtime, account.Call<&Account::Add>(1)), FailureKind::kActorDied,
                "SIGKILL");
}

TEST_F(DeathsTest, OfAnActorThatIsMadeAgain) {
  const ActorRef<Account> account = runtime.CreateActor<Account>({.restarts = 1}, 5);
  EXPECT_EQ(runtime.Get(account.Call<&Account::Add>(1)), 6);
  ExpectFailure(FailureOf(runtime, account.Call<&Account::Die>()), FailureKind::kActorUnavailable,
                "SIGKILL");
  EXPECT_EQ(runtime.Get(account.Call<&Account::Add>(1)), 6);
}

TEST_F(DeathsTest, CallsThatTakeTooLong) {
  const ObjectRef<int> slow = runtime.CallWith<Forever>({.time_limit = milliseconds(50)});
  ExpectFailure(FailureOf(runtime, slow), FailureKind::kDeadline, "0.050 s");
  EXPECT_EQ(runtime.Get(runtime.Call<Same>(1)), 1);
}

TEST_F(DeathsTest, CallsThatAreEndedByForce) {
  const ObjectRef<int> running = runtime.Call<Forever>();
  runtime.Wait(std::vector{running}, {.timeout = milliseconds(50)});
  runtime.Cancel(running, /*force=*/true);
  ExpectFailure(FailureOf(runtime, running), FailureKind::kCancelled, "cancelled");
  EXPECT_EQ(runtime.Get(std::vector{runtime.Call<Same>(1), runtime.Call<Same>(2)}),
            (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace menger
