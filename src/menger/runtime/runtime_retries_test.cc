#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "menger/runtime/driver/local_node.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/testing/isolations.h"

// Calls that run again, are dropped or cancelled, and what becomes of the calls that they made.
namespace menger {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::chrono::seconds kPatience{60};

// How often this was called for that file, this time included.
int Strike(const std::string& path) {
  std::ofstream(path, std::ios::app) << 'x';
  return static_cast<int>(std::filesystem::file_size(path));
}

bool Exists(const std::string& path) {
  for (int i = 0; i < 1000 && !std::filesystem::exists(path); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  return std::filesystem::exists(path);
}

class RetriesTest : public IsolationTest {
 protected:
  RetriesTest() {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("menger-retries-{}", getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~RetriesTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(std::string_view name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};
INSTANTIATE_TEST_SUITE_P(Isolations, RetriesTest, BothIsolations(), IsolationName);

int Flaky(const std::string& path, int fails) {
  if (Strike(path) <= fails) throw std::runtime_error("not yet");
  return 42;
}
int AsksFlaky(Runtime& runtime, const std::string& path) {
  return runtime.Get(runtime.Call<Flaky>(path, 2));
}

TEST_P(RetriesTest, ARetryGetsPastANestedFailure) {
  const CallOptions options{.retries = 2, .retry_errors = true};
  EXPECT_EQ(runtime.Get(runtime.CallWith<AsksFlaky>(options, Path("flaky")), kPatience), 42);
  EXPECT_EQ(std::filesystem::file_size(Path("flaky")), 3u);
}

int Double(int x) { return 2 * x; }
// What it makes first is in each run something else.
int InAnyOrder(Runtime& runtime, const std::string& path) {
  const int run = Strike(path);
  std::vector<ObjectRef<int>> made;
  for (int i = 0; i < run; ++i) made.push_back(runtime.Put(-i));
  if (run % 2 == 0) made.push_back(runtime.Call<Double>(1000));
  const ObjectRef<int> put = runtime.Put(run);
  const ObjectRef<int> doubled = runtime.Call<Double>(put);
  if (run < 4) throw std::runtime_error("once more");
  return runtime.Get(doubled) + runtime.Get(put);
}

TEST_P(RetriesTest, ARunMeetsNothingOfTheRunsBeforeIt) {
  const CallOptions options{.retries = 5, .retry_errors = true};
  EXPECT_EQ(runtime.Get(runtime.CallWith<InAnyOrder>(options, Path("order")), kPatience), 12);
}

double Draws(Runtime& runtime, const std::string& path) {
  runtime.Put(1);
  const double drawn = runtime.Random().Uniform(0, 1);
  if (Strike(path) == 1) {
    std::ofstream(path + ".first") << fmt::format("{:.17g}", drawn);
    throw std::runtime_error("once more");
  }
  return drawn;
}

TEST_P(RetriesTest, EachRunDrawsTheSame) {
  const CallOptions options{.retries = 1, .retry_errors = true};
  const double drawn = runtime.Get(runtime.CallWith<Draws>(options, Path("draws")), kPatience);
  double first = 0;
  std::ifstream(Path("draws.first")) >> first;
  EXPECT_EQ(drawn, first);
}

// ---- Cancelling.

int WaitsToBeCancelled(Runtime& runtime, const ObjectRef<int>& never, const std::string& path) {
  std::ofstream(path + ".begun").put('x');
  try {
    return runtime.Get(never);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) std::ofstream(path + ".woken").put('x');
    throw;
  }
}
int Sleeps(Runtime& runtime, const std::string& path) {
  std::ofstream(path + ".begun").put('x');
  for (int i = 0; i < 6000 && !runtime.IsCancelled(); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  if (runtime.IsCancelled()) std::ofstream(path + ".cancelled").put('x');
  return 0;
}
int Tree(Runtime& runtime, const std::string& path, int depth) {
  if (depth == 0) return runtime.Get(runtime.Call<Sleeps>(path));
  const auto left = runtime.Call<Tree>(path + "l", depth - 1);
  const auto right = runtime.Call<Tree>(path + "r", depth - 1);
  return runtime.Get(left) + runtime.Get(right);
}

TEST_P(RetriesTest, ACancelledCallWaitsNoLonger) {
  const ObjectRef<int> never = runtime.CallWith<Sleeps>({.cpus = 0}, Path("never"));
  const auto waits = runtime.Call<WaitsToBeCancelled>(std::vector{never}.front(), Path("waits"));
  ASSERT_TRUE(Exists(Path("waits.begun")));
  runtime.Cancel(waits, /*force=*/false, /*recursive=*/false);
  EXPECT_TRUE(Exists(Path("waits.woken")));
  EXPECT_THROW(runtime.Get(waits, kPatience), TaskError);
  ASSERT_TRUE(Exists(Path("never.begun")));  // Before that it would never run.
  runtime.Cancel(never);
  EXPECT_TRUE(Exists(Path("never.cancelled")));
}

TEST_P(RetriesTest, CancellingReachesTheCallsOfACall) {
  const auto tree = runtime.Call<Tree>(Path("t"), 1);
  for (const char* const leaf : {"tl", "tr"}) ASSERT_TRUE(Exists(Path(leaf) + ".begun"));
  runtime.Cancel(tree);
  EXPECT_THROW(runtime.Get(tree, kPatience), TaskError);
  for (const char* const leaf : {"tl", "tr"}) EXPECT_TRUE(Exists(Path(leaf) + ".cancelled"));
}

// ---- What is dropped.

Bytes MakeBytes(int seed) { return Bytes(kMebibyte, static_cast<std::uint8_t>(seed)); }
int DropsBytes(Runtime& runtime, int count) {
  for (int i = 0; i < count; ++i) runtime.Wait(std::vector{runtime.Call<MakeBytes>(i)});
  return count;
}

class DroppingTest : public testing::Test {
 protected:
  Runtime runtime{RuntimeOptions{
      .workers = 2, .store_bytes_max = 64 * kMebibyte, .spill_bytes_max = 64 * kMebibyte}};
};

TEST_F(DroppingTest, WhatACallDropsIsGoneThoughItMayRunAgain) {
  EXPECT_EQ(runtime.Get(runtime.CallWith<DropsBytes>({.retries = 3}, 300), kPatience), 300);
}

class Maker {
 public:
  // By an actor, so that it cannot be made again.
  Bytes Make(int seed) { return MakeBytes(seed); }
};
class Adder {
 public:
  int Add(Runtime& runtime, const ActorRef<Maker>& maker, int count, const std::string& dies) {
    int sum = 0;
    for (int i = 0; i < count; ++i) {
      sum += runtime.Get(maker.Call<&Maker::Make>(i)).at(i) % 100;
    }
    if (!dies.empty() && Strike(dies) == 1) raise(SIGKILL);
    return sum_ += sum;
  }
  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(sum_);
  }

 private:
  int sum_ = 0;
};

TEST(DroppingActorTest, WhatACheckpointedActorDropsIsSpilledAndFoundAgain) {
  Runtime runtime({.workers = 2, .store_bytes_max = 32 * kMebibyte});
  const std::string path = fmt::format("{}/menger-dropping-{}",
                                       std::filesystem::temp_directory_path().string(), getpid());
  std::filesystem::remove(path);
  const auto maker = runtime.CreateActor<Maker>({});
  const auto adder = runtime.CreateActor<Adder>({.checkpoint_every = 100});
  constexpr int kSum = 99 * 100 / 2;
  EXPECT_EQ(runtime.Get(adder.Call<&Adder::Add>(maker, 100, path), kPatience), kSum);
  EXPECT_EQ(std::filesystem::file_size(path), 2u);
  EXPECT_EQ(runtime.Get(adder.Call<&Adder::Add>(maker, 3, std::string()), kPatience), kSum + 3);
  std::filesystem::remove(path);
}

// ---- Runs of checkpointed actors that are not alike.

int First(int x) { return x; }
int Second(int x) { return x; }

class Unlike {
 public:
  int Calls(Runtime& runtime, const std::string& path, int what) {
    const int run = Strike(path);
    if (run == 1) {
      runtime.Get(runtime.Call<First>(1));
      raise(SIGKILL);
    }
    if (what == 0) return runtime.Get(runtime.Call<First>(1));
    if (what == 1) return runtime.Get(runtime.Call<Second>(1));
    return runtime.Get(runtime.Call<First>(runtime.Put(2)));
  }
  template <typename Archive>
  void Serialize(Archive&) {}
};

TEST(UnlikeTest, AnActorThatCallsSomethingElseWhenItRunsAgainEndsAndSaysSo) {
  Runtime runtime({.workers = 2});
  const std::string path =
      fmt::format("{}/menger-unlike-{}", std::filesystem::temp_directory_path().string(), getpid());
  for (const int what : {0, 1, 2}) {
    std::filesystem::remove(path);
    const auto actor = runtime.CreateActor<Unlike>({.checkpoint_every = 10});
    const auto result = actor.Call<&Unlike::Calls>(path, what);
    if (what == 0) {
      EXPECT_EQ(runtime.Get(result, kPatience), 1);
      continue;
    }
    try {
      runtime.Get(result, kPatience);
      FAIL() << what;
    } catch (const TaskError& error) {
      EXPECT_EQ(error.kind(), FailureKind::kActorDied);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("'First'"), HasSubstr(what == 1 ? "'Second'" : "with others"),
                        HasSubstr("methods of a checkpointed actor must do the same")));
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace menger
