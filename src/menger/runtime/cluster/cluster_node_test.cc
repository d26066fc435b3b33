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
