#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "menger/runtime/cluster/cluster_node.h"
#include "menger/runtime/runtime.h"

// Clusters of this machine: nodes in this process, whose workers are processes of this program.
namespace menger {
namespace {

constexpr std::chrono::seconds kPatience(60);

ClusterNodeOptions NodeOptions(const std::string& head, double cpus, const std::string& own = "") {
  ClusterNodeOptions options;
  options.access.address = head;
  options.runtime.resources = Resources(cpus, 0);
  if (!own.empty()) options.runtime.resources.Set(own, cpus);
  if (head.empty()) options.listen = "127.0.0.1:0";
  options.cache_folder = testing::TempDir() + "menger_cluster_cache-" + std::to_string(::getuid());
  return options;
}

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() : head_(std::make_unique<ClusterNode>(NodeOptions("", 1, "first"))) {}

  RuntimeOptions Driver() const { return {.address = head_->address()}; }

  std::unique_ptr<ClusterNode> head_;
};

int Square(int x) { return x * x; }
int Process() { return static_cast<int>(::getpid()); }
std::string Node() { return std::getenv(kNodeIdVariable); }
int Nested(Runtime& runtime, int x) { return runtime.Get(runtime.Call<Square>(x)) + 1; }
std::vector<double> Ramp(int size) {
  std::vector<double> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), 0.);
  return values;
}
double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.);
}
// Which process has made it.
std::vector<double> Marked(int size) {
  return std::vector<double>(static_cast<std::size_t>(size), static_cast<double>(::getpid()));
}
class Account {
 public:
  explicit Account(int start) : sum_(start) {}
  int Add(int amount) { return sum_ += amount; }
  int Where() { return Process(); }
  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(sum_);
  }

 private:
  int sum_;
};
int Slowly(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return milliseconds;
}

TEST_F(ClusterTest, ADriverThatJoinsHasItsCallsDone) {
  Runtime runtime(Driver());
  EXPECT_EQ(runtime.Get(runtime.Call<Square>(7), kPatience), 49);
  EXPECT_EQ(runtime.Get(runtime.Call<Nested>(5), kPatience), 26);
}

TEST_F(ClusterTest, ANodeThatJoinsLaterDoesWhatOnlyItCan) {
  Runtime runtime(Driver());
  const auto there = runtime.CallWith<Ramp>({.resources = {{"second", 1}}}, 300'000);
  const ClusterNode second(NodeOptions(head_->address(), 2, "second"));
  const auto sum = runtime.CallWith<Sum>({.resources = {{"first", 1}}}, there);
  EXPECT_EQ(runtime.Get(sum, kPatience), 300'000. * 299'999 / 2);
  EXPECT_EQ(Sum(runtime.Get(there, kPatience)), 300'000. * 299'999 / 2);
}

TEST_F(ClusterTest, ANodeThatLeavesCostsARun) {
  Runtime runtime(Driver());
  auto second = std::make_unique<ClusterNode>(NodeOptions(head_->address(), 4, "second"));
  std::vector<ObjectRef<int>> calls;
  for (int i = 0; i < 8; ++i) calls.push_back(runtime.Call<Slowly>(300 + i));
  runtime.Get(runtime.CallWith<Square>({.resources = {{"second", 1}}}, 1), kPatience);
  second.reset();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(runtime.Get(calls[i], kPatience), 300 + i);
}

TEST_F(ClusterTest, CallsAreSpreadOverNodesOrPreferOneWhileItIsThere) {
  Runtime runtime(Driver());
  auto second = std::make_unique<ClusterNode>(NodeOptions(head_->address(), 2, "second"));
  const auto where = [&](const CallOptions& options) {
    return runtime.Get(runtime.CallWith<Node>(options), kPatience);
  };
  const std::string there = where({.resources = {{"second", 1}}});
  std::map<std::string, int> spread;
  for (int i = 0; i < 6; ++i) ++spread[where({.spread = true})];
  EXPECT_EQ(spread.size(), 2);
  EXPECT_EQ(spread[there], 3);
  const CallOptions options{.preferred = {{"second", 1}}};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(where(options), there);
  second.reset();
  EXPECT_NE(where(options), there);
}

// Nothing may run again here: so what is right was done once, and nothing made anew.
TEST_F(ClusterTest, ADrainedNodeLeavesAndNothingIsLost) {
  Runtime runtime(Driver());
  auto leaving = std::make_unique<ClusterNode>(NodeOptions(head_->address(), 3, "either"));
  const CallOptions once{.resources = {{"either", 1}}, .retries = 0};
  const ActorRef<Account> account = runtime.CreateActor<Account>(
      {.resources = {{"either", 0.5}}, .restarts = 0, .call_retries = 0, .checkpoint_every = 1000},
      100);
  const int before = runtime.Get(account.Call<&Account::Where>(), kPatience);
  const auto value = runtime.CallWith<Marked>(once, 300'000);
  const auto maker = runtime.CallWith<Process>(once);
  runtime.Get(maker, kPatience);
  EXPECT_EQ(runtime.Wait(std::vector{value}, {.timeout = kPatience}).ready.size(), 1);
  std::vector<ObjectRef<int>> calls;
  for (int i = 0; i < 40; ++i) calls.push_back(runtime.CallWith<Slowly>(once, 50 + i));
  std::vector<ObjectRef<int>> sums;
  for (int i = 0; i < 40; ++i) sums.push_back(account.Call<&Account::Add>(1));
  runtime.Get(calls[0], kPatience);
  const ClusterNode staying(NodeOptions(head_->address(), 2, "either"));
  leaving->Drain();
  const Deadline deadline = Deadline::After(kPatience);
  while (!leaving->HowFarDrained().done() && !deadline.expired()) Slowly(5);
  EXPECT_TRUE(leaving->HowFarDrained().done());
  EXPECT_GE(leaving->HowFarDrained().values, 1);
  leaving.reset();
  for (int i = 0; i < 40; ++i) EXPECT_EQ(runtime.Get(calls[i], kPatience), 50 + i);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(runtime.Get(sums[i], kPatience), 101 + i);
  EXPECT_EQ(runtime.Get(account.Call<&Account::Add>(1), kPatience), 141);
  EXPECT_NE(runtime.Get(account.Call<&Account::Where>(), kPatience), before);
  EXPECT_EQ(runtime.Get(value, kPatience).size(), 300'000);
}

TEST_F(ClusterTest, TwoDriversHaveWorkersOfTheirOwn) {
  Runtime one(Driver());
  Runtime other(Driver());
  const int first = one.Get(one.Call<Process>(), kPatience);
  const int second = other.Get(other.Call<Process>(), kPatience);
  EXPECT_NE(first, second);
}

// ---- What workers print.

int Print(int x) {
  fmt::print("x is {}\n", x);
  std::fflush(stdout);
  return x;
}

class Speaker {
 public:
  int Say(int x) { return Print(x); }
};

int PrintMany(int lines) {
  for (int i = 0; i < lines; ++i) fmt::print("{:*>99}\n", i);
  std::fflush(stdout);
  return lines;
}

int PrintAndDie(int x) {
  Print(x);
  std::abort();
}

// What a driver is told, as "node|name|text".
class Heard {
 public:
  RuntimeOptions Of(RuntimeOptions options) {
    options.on_line = [this](const WorkerLine& line) {
      const std::lock_guard lock(mutex_);
      if (line.process == 0) ++left_out_;
      lines_.push_back(fmt::format("{}|{}|{}", line.node, line.name, line.text));
    };
    return options;
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  int left_out() {
    const std::lock_guard lock(mutex_);
    return left_out_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
  int left_out_ = 0;
};

TEST_F(ClusterTest, WhatWorkersPrintIsToldToTheDriverAlsoIfItLeavesAtOnce) {
  ClusterNodeOptions options = NodeOptions(head_->address(), 2, "second");
  options.name = "workshop";
  const ClusterNode second(options);
  Heard heard;
  ActorRef<Speaker>
      actor;  // It lives as long as the runtime: nobody knows the name of one that has ended.
  testing::internal::CaptureStderr();
  {
    Runtime runtime(heard.Of(Driver()));
    runtime.Get(runtime.CallWith<Print>({.resources = {{"first", 1}}}, 5), kPatience);
    actor = runtime.CreateActor<Speaker>({.resources = {{"second", 1}}, .name = "press"});
    runtime.Get(actor.Call<&Speaker::Say>(6), kPatience);
  }
  EXPECT_THAT(heard.lines(), testing::UnorderedElementsAre(
                                 testing::MatchesRegex("[0-9a-f]+\\|worker [0-9]+\\|x is 5"),
                                 "workshop|press|x is 6"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(testing::HasSubstr("x is")));
}

TEST_F(ClusterTest, AWorkerThatPrintsALotLosesLinesAndKeepsNobodyWaiting) {
  constexpr int kLines = 100'000;  // Ten times what may wait and go in the time that it takes.
  Heard heard;
  {
    Runtime runtime(heard.Of(Driver()));
    const ClusterNode second(NodeOptions(head_->address(), 2, "second"));
    const auto many = runtime.CallWith<PrintMany>({.resources = {{"second", 1}}}, kLines);
    for (int i = 0; i < 20; ++i) {
      const auto call = runtime.CallWith<Square>({.resources = {{"second", 1}}}, i);
      EXPECT_EQ(runtime.Get(call, kPatience), i * i);
    }
    EXPECT_EQ(runtime.Get(many, kPatience), kLines);
    runtime.Get(runtime.CallWith<Print>({.resources = {{"first", 1}}}, 5), kPatience);
    const Deadline deadline = Deadline::After(kPatience);
    while (heard.left_out() == 0 && !deadline.expired()) std::this_thread::yield();
  }
  EXPECT_GT(heard.left_out(), 0);
  EXPECT_LT(heard.lines().size(), static_cast<std::size_t>(kLines));
  EXPECT_THAT(heard.lines(),
              testing::Contains(testing::HasSubstr("lines of workers were left out")));
  EXPECT_THAT(heard.lines(), testing::Contains(testing::HasSubstr("x is 5")));
}

TEST_F(ClusterTest, AWorkerThatDiesIsNamedWithItsNodeAndItsLastWordsCome) {
  Heard heard;
  {
    Runtime runtime(heard.Of(Driver()));
    try {
      runtime.Get(runtime.CallWith<PrintAndDie>({.retries = 0}, 5), kPatience);
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::ContainsRegex(
                                    "worker [0-9]+, process [0-9]+, node [0-9a-f]{8}: its worker "
                                    "was killed by SIGABRT"));
    }
  }
  EXPECT_THAT(heard.lines(), testing::Contains(testing::HasSubstr("x is 5")));
}

// ---- How long somebody waits.

TEST_F(ClusterTest, CallsWaitForANodeAsLongAsTheyAreToldTo) {
  RuntimeOptions options = Driver();
  options.node_wait_seconds = 0.2;
  Runtime runtime(options);
  const auto nowhere = runtime.CallWith<Square>({.resources = {{"nowhere", 1}}}, 3);
  try {
    runtime.Get(nowhere, kPatience);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(error.what(), testing::HasSubstr("no node has what it needs"));
  }
}

TEST(RuntimeOptionsTest, WaitsThatNobodyMeansAreNamed) {
  const auto why = [](const RuntimeOptions& options) -> std::string {
    try {
      CheckOptions(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why({.join_seconds = 0.5, .node_wait_seconds = 86'400}), "");
  EXPECT_EQ(why({.join_seconds = -1}),
            "RuntimeOptions::join_seconds is -1; it must lie between 0.001 and 31536000 seconds");
  EXPECT_THAT(why({.node_wait_seconds = 0}), testing::HasSubstr("node_wait_seconds is 0;"));
  EXPECT_THAT(why({.node_wait_seconds = std::numeric_limits<double>::quiet_NaN()}),
              testing::HasSubstr("node_wait_seconds is nan"));
}

// It does not join, with this code and these words.
void ExpectRefused(const ClusterNodeOptions& options, ErrorCode code, const std::string& words) {
  try {
    const ClusterNode node(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), testing::HasSubstr(words));
  }
}

TEST_F(ClusterTest, WrongTokensAndAddressesAreNamed) {
  ClusterNodeOptions options = NodeOptions(head_->address(), 1);
  options.access.token = "another";
  ExpectRefused(options, ErrorCode::kFailedPrecondition, "token");
  options = NodeOptions("127.0.0.1:1", 1);
  options.runtime.join_seconds = 0.3;
  ExpectRefused(options, ErrorCode::kUnavailable, "127.0.0.1:1");
}

TEST_F(ClusterTest, WhoIsToldToEndJoinsNoLonger) {
  ClusterNodeOptions options = NodeOptions("127.0.0.1:1", 1);
  options.runtime.join_seconds = 300;
  int asked = 0;
  options.is_stopped = [&asked] { return ++asked == 3; };
  ExpectRefused(options, ErrorCode::kCancelled, "127.0.0.1:1");
}

TEST_F(ClusterTest, WhoWaitsForAClusterIsToldOnceWhyItIsNotReached) {
  ClusterNodeOptions options = NodeOptions("127.0.0.1:1", 1);
  options.runtime.join_seconds = 4;
  testing::internal::CaptureStderr();
  EXPECT_THROW(const ClusterNode node(options), Error);
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string line = "the cluster at 127.0.0.1:1 is not reached yet: ";
  EXPECT_THAT(log, testing::HasSubstr(line));
  EXPECT_EQ(log.find(line), log.rfind(line)) << log;
}

TEST_F(ClusterTest, NamesThatCannotBeHadAreNamedWithTheReason) {
  ClusterNodeOptions options = NodeOptions(head_->address(), 1);
  options.runtime.join_seconds = 0.5;
  const auto why = [&options](const std::string& name) -> std::string {
    options.name = name;
    try {
      const ClusterNode node(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  options.name = "a name";
  const ClusterNode named(options);
  EXPECT_EQ(why("a name"), "there is a node 'a name' in the cluster already");
  EXPECT_EQ(why("two\nlines"), "'two\nlines' is no name of a node: it has a control character");
  EXPECT_THAT(why(std::string(101, 'x')), testing::HasSubstr("it has more than 100 bytes"));
  EXPECT_EQ(why(std::string(100, 'x')), "");
}

}  // namespace
}  // namespace menger
