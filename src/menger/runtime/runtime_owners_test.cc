#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/testing/isolations.h"

// Whose a reference is: what one runtime gave means nothing to another, and what an ended one gave
// means nothing at all.
namespace menger {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

int Same(int x) { return x; }
int Sum(Runtime& runtime, const std::vector<ObjectRef<int>>& numbers) {
  int sum = 0;
  for (const int number : runtime.Get(numbers)) sum += number;
  return sum;
}
class Counter {
 public:
  Counter() = default;
  explicit Counter(int value) : value_(value) {}
  int Add(int amount) { return value_ += amount; }
  int AddTo(const ActorRef<Counter>& other) { return other.valid() ? 1 : 0; }

 private:
  int value_ = 0;
};
int CountActors(const std::vector<ActorRef<Counter>>& actors) {
  return static_cast<int>(actors.size());
}
int BundlesOf(const PlacementGroup& group) { return static_cast<int>(group.bundles()); }
void Numbers(Emitter<int>& emit, int count) {
  for (int i = 0; i < count; ++i) emit(i);
}

// What is asked for with references of `of`, each of which a runtime must refuse.
struct Asked {
  std::string what;
  std::function<void()> ask;
};
std::vector<Asked> AllThatTakesReferences(Runtime& runtime, const ObjectRef<int>& number,
                                          const ActorRef<Counter>& actor,
                                          const PlacementGroup& group) {
  const auto own = runtime.CreateActor<Counter>({});
  return {
      {"Get", [&] { runtime.Get(number, 5s); }},
      {"Get of several",
       [&] {
         runtime.Get(std::vector{runtime.Put(1), number}, 5s);
       }},
      {"Pin", [&] { runtime.Pin(number, 5s); }},
      {"Wait", [&] { runtime.Wait(std::vector{number}, {.timeout = 5s}); }},
      {"Cancel", [&] { runtime.Cancel(number); }},
      {"argument", [&] { runtime.Get(runtime.Call<Same>(number), 5s); }},
      {"argument of a constructor", [&] { runtime.CreateActor<Counter>({}, number); }},
      {"argument of a method", [&, own] { runtime.Get(own.Call<&Counter::Add>(number), 5s); }},
      {"inside an argument", [&] { runtime.Get(runtime.Call<Sum>(std::vector{number}), 5s); }},
      {"inside a large argument",
       [&] { runtime.Get(runtime.Call<Sum>(std::vector(10'000, number)), 5s); }},
      {"inside what is put", [&] { runtime.Put(std::vector{number}); }},
      {"actor that is killed", [&] { runtime.Kill(actor); }},
      {"actor as an argument", [&, own] { runtime.Get(own.Call<&Counter::AddTo>(actor), 5s); }},
      {"actor inside a value",
       [&] { runtime.Get(runtime.Call<CountActors>(std::vector{actor}), 5s); }},
      {"group of a call", [&] { runtime.CallWith<Same>({.group = group}, 1); }},
      {"group of a stream", [&] { runtime.StreamWith<Numbers>({.group = group}, 1); }},
      {"group of an actor", [&] { runtime.CreateActor<Counter>({.group = group}); }},
      {"group as an argument", [&] { runtime.Get(runtime.Call<BundlesOf>(group), 5s); }},
      {"group that is waited for", [&] { runtime.Get(group.Ready(), 5s); }},
      {"group that is removed", [&] { runtime.RemovePlacementGroup(group); }},
  };
}

void ExpectAllRefused(const std::vector<Asked>& all, ErrorCode code, const std::string& text) {
  for (const Asked& asked : all) {
    try {
      asked.ask();
      ADD_FAILURE() << asked.what << " is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << asked.what << ": " << error.what();
      EXPECT_THAT(error.what(), HasSubstr(text)) << asked.what;
    }
  }
}

class OwnersTest : public testing::TestWithParam<Isolation> {
 protected:
  RuntimeOptions Options() const { return {.workers = 2, .isolation = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Isolations, OwnersTest, BothIsolations(), IsolationName);

TEST_P(OwnersTest, WhatOneRuntimeGaveAnotherRefusesByName) {
  Runtime first(Options());
  Runtime second({.workers = 1, .isolation = Isolation::kThread});
  const ObjectRef<int> number = first.Put(100);
  const ObjectRef<int> namesake = second.Put(200);
  const auto actor = first.CreateActor<Counter>({}, 5);
  const PlacementGroup group = first.CreatePlacementGroup({{.cpus = 1}});
  ExpectAllRefused(AllThatTakesReferences(second, number, actor, group),
                   ErrorCode::kInvalidArgument, "another Runtime");
  // Neither has been harmed.
  EXPECT_EQ(first.Get(number), 100);
  EXPECT_EQ(first.Get(first.Call<Same>(number)), 100);
  EXPECT_EQ(first.Get(actor.Call<&Counter::Add>(1)), 6);
  EXPECT_EQ(second.Get(second.Call<Same>(namesake)), 200);
}

TEST_P(OwnersTest, WhatAnEndedRuntimeGaveIsRefusedByName) {
  std::optional<Runtime> first(Options());
  const ObjectRef<int> number = first->Put(100);
  const auto actor = first->CreateActor<Counter>({}, 5);
  const PlacementGroup group = first->CreatePlacementGroup({{.cpus = 1}});
  ObjectStream<int> stream = first->Stream<Numbers>(3);
  Allocation<float> room = first->Allocate<float>({3});
  first.reset();
  Runtime second(Options());
  ExpectAllRefused(AllThatTakesReferences(second, number, actor, group),
                   ErrorCode::kFailedPrecondition, "has ended");
  ExpectAllRefused({{"call", [&] { actor.Call<&Counter::Add>(1); }},
                    {"stream", [&] { stream.Next(5s); }},
                    {"room", [&] { room.Seal(); }}},
                   ErrorCode::kFailedPrecondition, "has ended");
}

TEST_P(OwnersTest, TwoRuntimesNameNothingAlike) {
  Runtime first(Options());
  Runtime second(Options());
  EXPECT_NE(first.Put(1).id(), second.Put(1).id());
  EXPECT_NE(first.CreateActor<Counter>({}).id(), second.CreateActor<Counter>({}).id());
  EXPECT_NE(first.Random().NextUint64(), second.Random().NextUint64());
}

TEST_P(OwnersTest, WhatFollowsFromTheJobRepeats) {
  RuntimeOptions options = Options();
  options.job = 7;
  Runtime first(options);
  Runtime second(options);
  EXPECT_EQ(first.Random().NextUint64(), second.Random().NextUint64());
}

// Of the other runtime: for calls of this process.
Runtime* other_runtime = nullptr;
ObjectRef<int>* others_number = nullptr;

int AskTheOther() { return other_runtime->Get(other_runtime->Call<Same>(41), 5s) + 1; }
std::vector<ObjectRef<int>> GiveTheOthers() { return {*others_number}; }
void EmitTheOthers(Emitter<ObjectRef<int>>& emit) { emit(*others_number); }

TEST(OwnersOfThreadsTest, ACallOfOneRuntimeUsesAnother) {
  Runtime first({.workers = 1, .isolation = Isolation::kThread});
  Runtime second({.workers = 1, .isolation = Isolation::kThread});
  other_runtime = &second;
  EXPECT_EQ(first.Get(first.Call<AskTheOther>(), 20s), 42);
}

TEST(OwnersOfThreadsTest, ACallCannotGiveWhatIsAnothers) {
  Runtime first({.workers = 1, .isolation = Isolation::kThread});
  Runtime second({.workers = 1, .isolation = Isolation::kThread});
  ObjectRef<int> number = second.Put(1);
  others_number = &number;
  const auto given = first.CallWith<GiveTheOthers>({.retries = 0});
  ObjectStream<ObjectRef<int>> stream = first.StreamWith<EmitTheOthers>({.retries = 0});
  ExpectAllRefused({{"result", [&] { first.Get(given, 5s); }}, {"item", [&] { stream.Next(5s); }}},
                   ErrorCode::kInvalidArgument, "another Runtime");
}

// ---- Runtimes inside of calls.

int MakeARuntime() {
  Runtime inner({.workers = 1, .isolation = Isolation::kThread});
  return inner.Get(inner.Call<Same>(1), 5s);
}
struct Maker {
  Maker() = default;
  explicit Maker(int) { MakeARuntime(); }
  int Make() { return MakeARuntime(); }
};
// What a thread of its own meets there.
std::string MakeOnAThread() {
  std::string met = "nothing";
  std::thread([&met] {
    try {
      MakeARuntime();
    } catch (const Error& error) {
      met = error.what();
    }
  }).join();
  return met;
}

TEST_P(OwnersTest, ARuntimeInsideOfACallIsRefusedByName) {
  Runtime runtime(Options());
  const auto from_constructor = runtime.CreateActor<Maker>({}, 1);
  const auto actor = runtime.CreateActor<Maker>({});
  ExpectAllRefused(
      {{"task", [&] { runtime.Get(runtime.CallWith<MakeARuntime>({.retries = 0}), 20s); }},
       {"method", [&] { runtime.Get(actor.Call<&Maker::Make>(), 20s); }}},
      ErrorCode::kFailedPrecondition, "`Runtime&`");
  EXPECT_THROW(runtime.Get(from_constructor.Call<&Maker::Make>(), 20s), Error);
  EXPECT_EQ(runtime.Get(runtime.Call<Same>(3)), 3);
}

TEST(OwnersOfProcessesTest, ARuntimeOnAThreadOfACallIsRefusedByName) {
  Runtime runtime({.workers = 1});
  EXPECT_THAT(runtime.Get(runtime.CallWith<MakeOnAThread>({.retries = 0}), 20s),
              HasSubstr("`Runtime&`"));
}

}  // namespace
}  // namespace menger
