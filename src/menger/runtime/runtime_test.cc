#include "menger/runtime/runtime.h"

#include <gtest/gtest.h>

#include <numeric>

namespace menger {
namespace {

int Square(int x) { return x * x; }
int Sum(const std::vector<int>& values) { return std::accumulate(values.begin(), values.end(), 0); }
int Throw(int x) { throw std::out_of_range("no " + std::to_string(x)); }
int Fibonacci(Runtime& runtime, int n) {
  if (n < 2) return n;
  const auto a = runtime.Call<Fibonacci>(n - 1);
  const auto b = runtime.Call<Fibonacci>(n - 2);
  return runtime.Get(a) + runtime.Get(b);
}
std::tuple<int, std::string> Both(int x) { return {x, std::to_string(x)}; }

class Counter {
 public:
  explicit Counter(int start) : value_(start) {}
  int Add(int amount) { return value_ += amount; }

 private:
  int value_;
};

class RuntimeTest : public testing::TestWithParam<Isolation> {
 protected:
  Runtime runtime{RuntimeOptions{.workers = 2, .isolation = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Isolations, RuntimeTest,
                         testing::Values(Isolation::kThread, Isolation::kProcess),
                         [](const auto& info) {
                           return info.param == Isolation::kThread ? "threads" : "processes";
                         });

TEST_P(RuntimeTest, CallsAFunction) { EXPECT_EQ(runtime.Get(runtime.Call<Square>(3)), 9); }

TEST_P(RuntimeTest, ReferencesAreArguments) {
  const ObjectRef<int> nine = runtime.Call<Square>(3);
  EXPECT_EQ(runtime.Get(runtime.Call<Square>(nine)), 81);
  EXPECT_EQ(runtime.Get(runtime.Call<Sum>(runtime.Put(std::vector<int>{1, 2, 3}))), 6);
}

TEST_P(RuntimeTest, AnExceptionArrivesAtGet) {
  const auto bad = runtime.Call<Throw>(7);
  try {
    runtime.Get(bad);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), FailureKind::kException);
    EXPECT_EQ(error.failure().type, "std::out_of_range");
    EXPECT_EQ(error.failure().text, "no 7");
  }
  EXPECT_THROW(runtime.Get(runtime.Call<Square>(bad)), TaskError);
}

TEST_P(RuntimeTest, CallsMayCall) { EXPECT_EQ(runtime.Get(runtime.Call<Fibonacci>(10)), 55); }

TEST_P(RuntimeTest, ManyCalls) {
  std::vector<ObjectRef<int>> references;
  for (int i = 0; i < 20'000; ++i) references.push_back(runtime.Call<Square>(i % 100));
  const std::vector<int> values = runtime.Get(references);
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(values[i], (i % 100) * (i % 100));
}

TEST_P(RuntimeTest, ActorsKeepStateAndOrder) {
  const ActorRef<Counter> counter = runtime.CreateActor<Counter>({}, 10);
  std::vector<ObjectRef<int>> values;
  for (int i = 1; i <= 1000; ++i) values.push_back(counter.Call<&Counter::Add>(1));
  const std::vector<int> got = runtime.Get(values);
  for (int i = 1; i <= 1000; ++i) ASSERT_EQ(got[i - 1], 10 + i);
}

std::vector<double> Scale(const std::vector<double>& values, double by) {
  std::vector<double> scaled = values;
  for (double& value : scaled) value *= by;
  return scaled;
}

TEST_P(RuntimeTest, LargeValuesGoThroughSharedMemory) {
  std::vector<double> values(100'000);
  std::iota(values.begin(), values.end(), 0.0);
  for (int round = 0; round < 20; ++round) {
    const ObjectRef<std::vector<double>> put = runtime.Put(values);
    const auto twice = runtime.Call<Scale>(put, 2.0);
    const auto six = runtime.Call<Scale>(twice, 3.0);
    const std::vector<double> got = runtime.Get(six);
    ASSERT_EQ(got.size(), values.size());
    ASSERT_EQ(got[777], 6 * values[777]);
    ASSERT_EQ(runtime.Get(runtime.Call<Scale>(values, 2.0))[12'345], 2 * 12'345.0);
  }
}

TEST_P(RuntimeTest, SeveralResults) {
  const auto [number, text] = runtime.CallSeveral<Both>({}, 5);
  EXPECT_EQ(runtime.Get(number), 5);
  EXPECT_EQ(runtime.Get(text), "5");
}

TEST_P(RuntimeTest, WaitReturnsWhatIsReady) {
  const auto [ready, pending] =
      runtime.Wait(std::vector{runtime.Call<Square>(1), runtime.Call<Square>(2)}, {.count = 2});
  EXPECT_EQ(ready.size(), 2);
  EXPECT_TRUE(pending.empty());
}

}  // namespace
}  // namespace menger
