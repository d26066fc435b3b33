#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "menger/runtime/driver/local_node.h"
#include "menger/runtime/runtime.h"

// Nodes of one process with workers of their own, and a wire between them.
namespace menger {
namespace {

NodeLife LifeOf(std::uint64_t number) { return {NodeId{Id{.high = 1, .low = number}}, 1}; }

// Two nodes that know each other. The first has the driver, and "far" only the second.
class TwoNodes {
 public:
  explicit TwoNodes(RuntimeOptions options = {.workers = 1}) {
    options.job = 77;
    options.isolation = Isolation::kProcess;
    near_ = New(options, 0);
    options.resources.Set("cpu", 2);
    options.resources.Set("far", 2);
    options.workers = 2;
    far_ = New(options, 1);
    wire_ = Thread({.name = "wire"}, [this] { Carry(); });
    Resources far;
    far.Set("cpu", 2);
    far.Set("far", 2);
    near_->Meet(LifeOf(1), far);
    far_->Meet(LifeOf(0), Resources(1, 0));
  }
  ~TwoNodes() {
    near_->End();
    far_->End();
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    wire_.Join();
  }
  LocalNode& near() { return *near_; }
  LocalNode& far() { return *far_; }

 private:
  struct Parcel {
    std::uint64_t from = 0;
    std::vector<Neighbours::Flying> packets;
  };

  LocalNode* New(const RuntimeOptions& options, std::uint64_t number) {
    return new LocalNode(
        options,
        LocalNode::Membership{.own = LifeOf(number),
                              .post = [this, number](std::vector<Neighbours::Flying> packets) {
                                const std::lock_guard lock(mutex_);
                                parcels_.push_back({number, std::move(packets)});
                                changed_.notify_all();
                              }});
  }
  void Carry() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !parcels_.empty(); });
      if (ended_) return;
      Parcel parcel = std::move(parcels_.front());
      parcels_.pop_front();
      lock.unlock();
      for (Neighbours::Flying& flying : parcel.packets) flying.node = LifeOf(parcel.from);
      (parcel.from == 0 ? *far_ : *near_).Arrive(std::move(parcel.packets));
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Parcel> parcels_;
  bool ended_ = false;
  LocalNode* near_ = nullptr;
  LocalNode* far_ = nullptr;
  Thread wire_;
};

int Square(int x) { return x * x; }
std::vector<double> Ramp(int size) {
  std::vector<double> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), 0.);
  return values;
}
double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.);
}
int Nested(Runtime& runtime, int x) { return runtime.Get(runtime.Call<Square>(x)) + 1; }

CallOptions Far() { return {.resources = {{"far", 1}}}; }

TEST(TwoNodesTest, ACallRunsOnTheOtherNode) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  EXPECT_EQ(runtime.Get(runtime.CallWith<Square>(Far(), 7), std::chrono::seconds(60)), 49);
}

TEST(TwoNodesTest, SoDoManyAndTheirNestedCallsComeHome) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  std::vector<ObjectRef<int>> calls;
  for (int i = 0; i < 200; ++i) calls.push_back(runtime.CallWith<Square>(Far(), i));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(runtime.Get(calls[i], std::chrono::seconds(60)), i * i);
  EXPECT_EQ(runtime.Get(runtime.CallWith<Nested>(Far(), 5), std::chrono::seconds(60)), 26);
}

TEST(TwoNodesTest, LargerValuesGoBothWays) {
  TwoNodes nodes;
  Runtime runtime(nodes.near());
  const auto there = runtime.CallWith<Ramp>(Far(), 400'000);
  const auto sum = runtime.CallWith<Sum>(Far(), there);
  const double expected = 400'000. * 399'999 / 2;
  EXPECT_EQ(runtime.Get(sum, std::chrono::seconds(60)), expected);
  EXPECT_EQ(Sum(runtime.Get(there, std::chrono::seconds(60))), expected);
  const auto here = runtime.Put(Ramp(300'000));
  EXPECT_EQ(runtime.Get(runtime.CallWith<Sum>(Far(), here), std::chrono::seconds(60)),
            300'000. * 299'999 / 2);
}

}  // namespace
}  // namespace menger
