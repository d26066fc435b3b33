#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "menger/runtime/testing/isolations.h"

// Waiting for objects, making them in place, and what happens when there are too many.
namespace menger {
namespace {

using std::chrono::milliseconds;

class ObjectsTest : public IsolationTest {};
INSTANTIATE_TEST_SUITE_P(Isolations, ObjectsTest, BothIsolations(), IsolationName);

int SleepFor(int duration) {
  std::this_thread::sleep_for(milliseconds(duration));
  return duration;
}

int WaitForFile(const std::string& path) {
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(milliseconds(1));
  return 0;
}
int WaitThenSleep(const std::string& path, int duration) {
  WaitForFile(path);
  return SleepFor(duration);
}
int MakeFile(const std::string& path, int value) {
  std::fclose(std::fopen(path.c_str(), "w"));
  return value;
}

// Of two that run side by side the one that ends first is the first, wherever it stands.
std::vector<int> ThoseReady(Runtime& runtime, const std::string& path) {
  std::filesystem::remove(path);
  const ObjectRef<int> there = runtime.Put(0);
  const auto slow = runtime.Call<WaitThenSleep>(path, 120);
  const auto quick = runtime.Call<MakeFile>(path, 10);
  return runtime.Get(runtime.Wait(std::vector{slow, there, quick}, {.count = 3}).ready);
}

TEST_P(ObjectsTest, WaitReturnsTheFirstThatFinished) {
  const std::string path = testing::TempDir() + "menger_quick_" + std::to_string(getpid());
  const std::vector<int> expected = {0, 10, 120};
  EXPECT_EQ(ThoseReady(runtime, path), expected);
  EXPECT_EQ(runtime.Get(runtime.Call<ThoseReady>(path)), expected);
  std::filesystem::remove(path);
}

TEST_P(ObjectsTest, WaitGivesWhatIsPendingInItsOrder) {
  const std::vector references = {runtime.Call<SleepFor>(150), runtime.Call<SleepFor>(5),
                                  runtime.Call<SleepFor>(150)};
  const auto [ready, pending] = runtime.Wait(references, {.count = 1});
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].id(), references[1].id());
  ASSERT_EQ(pending.size(), 2U);
  EXPECT_EQ(pending[0].id(), references[0].id());
}

TEST_P(ObjectsTest, TheSameReferenceTwice) {
  const ObjectRef<int> slow = runtime.Call<SleepFor>(20);
  EXPECT_EQ(runtime.Wait(std::vector{slow, slow}, {.count = 2}).ready.size(), 2U);
  EXPECT_EQ(runtime.Get(std::vector{slow, slow}), (std::vector<int>{20, 20}));
}

// ---- Objects made in place.

double SumOf(const TensorView& tensor) {
  const std::span<const double> values = tensor.values<double>();
  return std::accumulate(values.begin(), values.end(), 0.0);
}
ObjectRef<TensorView> Ramp(Runtime& runtime, int size) {
  Allocation<double> allocation = runtime.Allocate<double>({size});
  std::iota(allocation.values().begin(), allocation.values().end(), 0.0);
  return allocation.Seal();
}

TEST_P(ObjectsTest, SealedTensorsAreRead) {
  for (const int size : {0, 1, 1000, 1'000'000}) {
    const double sum = size * (size - 1.0) / 2;
    const ObjectRef<TensorView> mine = Ramp(runtime, size);
    EXPECT_EQ(runtime.Get(runtime.Call<SumOf>(mine)), sum);
    const ObjectRef<TensorView> theirs = runtime.Get(runtime.Call<Ramp>(size));
    const auto pinned = runtime.Pin(theirs);
    EXPECT_EQ(SumOf(*pinned), sum);
    EXPECT_EQ(pinned->shape, Shape({size}));
  }
}

TEST_P(ObjectsTest, ATensorIsSealedOnce) {
  Allocation<double> allocation = runtime.Allocate<double>({3});
  allocation.Seal();
  EXPECT_THROW(allocation.Seal(), Error);
  EXPECT_THROW(runtime.Allocate<double>({-3}), Error);
}

void AllocateAndDrop(Runtime& runtime, int count) {
  for (int i = 0; i < count; ++i) runtime.Allocate<double>({1'000'000});
}

// 8 MB each: the store would be full after four.
TEST(SmallStoreTest, TensorsThatAreNotSealedAreFreed) {
  Runtime runtime({.workers = 1, .store_bytes_max = 40'000'000});
  AllocateAndDrop(runtime, 50);
  runtime.Get(runtime.Call<AllocateAndDrop>(50));
  // What is read stays in memory.
  const auto last = runtime.Pin(Ramp(runtime, 4'000'000));
  EXPECT_THROW(runtime.Allocate<double>({4'000'000}), TaskError);
}

// ---- A driver that runs ahead.

int Nothing(int x) { return x; }
int CallMany(Runtime& runtime, int count) {
  std::vector<ObjectRef<int>> references;
  for (int i = 0; i < count; ++i) references.push_back(runtime.Call<Nothing>(i));
  return static_cast<int>(runtime.Get(references).size());
}

class BackPressureTest : public testing::TestWithParam<Isolation> {};
INSTANTIATE_TEST_SUITE_P(Isolations, BackPressureTest, BothIsolations(), IsolationName);

// Whether a driver makes more than `calls` calls while nothing can run.
void ExpectSlowed(Runtime& runtime, std::size_t bytes, int calls) {
  const std::string path = testing::TempDir() + "menger_go_" + std::to_string(getpid());
  std::filesystem::remove(path);
  const auto gate = runtime.Call<WaitForFile>(path);
  std::atomic<int> made{0};
  std::thread driver([&] {
    std::vector<ObjectRef<int>> references;
    const std::string name(bytes, 'x');
    for (int i = 0; i < 4 * calls; ++i) {
      references.push_back(runtime.CallWith<Nothing>({.name = name}, i));
      ++made;
    }
    runtime.Get(references);
  });
  for (int i = 0; i < 20'000 && made < calls / 2; ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_GE(made, calls / 2);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_LT(made, 2 * calls);
  std::fclose(std::fopen(path.c_str(), "w"));
  driver.join();
  EXPECT_EQ(made, 4 * calls);
  runtime.Get(gate);
  std::filesystem::remove(path);
}

TEST_P(BackPressureTest, ByTheNumberOfCalls) {
  Runtime runtime({.workers = 1, .isolation = GetParam(), .waiting_calls_max = 1000});
  ExpectSlowed(runtime, 0, 1000);
}

TEST_P(BackPressureTest, ByTheirBytes) {
  Runtime runtime({.workers = 1, .isolation = GetParam(), .waiting_bytes_max = 1'000'000});
  ExpectSlowed(runtime, 700, 830);  // About 1200 bytes each.
}

// Nested calls never wait: that could be for themselves.
TEST_P(BackPressureTest, NotOfCallsThatCallsMake) {
  Runtime runtime({.workers = 1, .isolation = GetParam(), .waiting_calls_max = 100});
  EXPECT_EQ(runtime.Get(runtime.Call<CallMany>(5000)), 5000);
}

}  // namespace
}  // namespace menger
