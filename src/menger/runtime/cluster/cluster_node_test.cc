#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
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

TEST_F(ClusterTest, WrongTokensAndAddressesAreNamed) {
  ClusterNodeOptions options = NodeOptions(head_->address(), 1);
  options.access.token = "another";
  try {
    const ClusterNode node(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_NE(std::string(error.what()).find("token"), std::string::npos) << error.what();
  }
  options = NodeOptions("127.0.0.1:1", 1);
  options.join_max = std::chrono::milliseconds(300);
  try {
    const ClusterNode node(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace menger
