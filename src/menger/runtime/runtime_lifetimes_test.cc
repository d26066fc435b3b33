#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/file_testing.h"
#include "menger/runtime/testing/isolations.h"

// What outlives a runtime, and what ends with its last reference.
namespace menger {
namespace {

int Same(int x) { return x; }
class Counter {
 public:
  int Add(int amount) { return value_ += amount; }

 private:
  int value_ = 0;
};

class Testator {
 public:
  explicit Testator(std::string path) : path_(std::move(path)) {}
  ~Testator() { std::ofstream(path_) << "everything"; }
  int Ready() { return 1; }

 private:
  std::string path_;
};

class LifetimesTest : public testing::TestWithParam<Isolation> {
 protected:
  std::optional<Runtime> runtime{std::in_place,
                                 RuntimeOptions{.workers = 2, .isolation = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Isolations, LifetimesTest, BothIsolations(), IsolationName);

TEST_P(LifetimesTest, AnActorIsDestroyedWhenNobodyRefersToIt) {
  const testing_files::Folder folder;
  const std::string path = folder / "will";
  ActorRef<Testator> actor = runtime->CreateActor<Testator>({}, path);
  EXPECT_EQ(runtime->Get(actor.Call<&Testator::Ready>()), 1);
  EXPECT_FALSE(std::filesystem::exists(path));
  actor = {};
  const Deadline end = Deadline::After(std::chrono::minutes(1));
  while (!std::filesystem::exists(path) && !end.expired()) std::this_thread::yield();
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_P(LifetimesTest, HandlesOutliveTheirRuntime) {
  ObjectRef<int> number = runtime->Call<Same>(1);
  ObjectRef<int> put = runtime->Put(2);
  ActorRef<Counter> actor = runtime->CreateActor<Counter>({});
  EXPECT_EQ(runtime->Get(actor.Call<&Counter::Add>(3)), 3);
  runtime.reset();
  const ObjectRef<int> copy = put;
  number = ObjectRef<int>();
  EXPECT_TRUE(copy.valid());
  EXPECT_THROW(actor.Call<&Counter::Add>(1), Error);
}

TEST_P(LifetimesTest, PinnedValuesOutliveTheirRuntime) {
  const std::vector<int> values(1'000'000, 7);
  const auto pinned = runtime->Pin(runtime->Put(std::span<const int>(values)));
  runtime.reset();
  EXPECT_EQ((*pinned)[999'999], 7);
}

TEST_P(LifetimesTest, HandlesAreDroppedWhileTheirRuntimeEnds) {
  std::vector<ObjectRef<int>> handles;
  for (int i = 0; i < 20'000; ++i) handles.push_back(runtime->Call<Same>(i));
  std::atomic<bool> begun{false};
  std::thread dropping([&] {
    while (!handles.empty()) {
      handles.pop_back();
      begun = true;
    }
  });
  while (!begun) std::this_thread::yield();
  runtime.reset();
  dropping.join();
}

TEST_P(LifetimesTest, HandlesOfOneRuntimeAfterAnother) {
  const ObjectRef<int> old = runtime->Put(1);
  runtime.reset();
  runtime.emplace(RuntimeOptions{.workers = 1, .isolation = GetParam()});
  EXPECT_EQ(runtime->Get(runtime->Call<Same>(5)), 5);
}

}  // namespace
}  // namespace menger
