#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "menger/base/file_testing.h"
#include "menger/runtime/testing/isolations.h"

// Placement groups as programs use them, with two workers.
namespace menger {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing_files::ErrorText;

constexpr std::chrono::seconds kPatience{60};

int Twice(int x) { return 2 * x; }

int SleepUntilCancelled(Runtime& runtime) {
  const Deadline deadline = Deadline::After(kPatience);
  while (!runtime.IsCancelled() && !deadline.expired()) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return 0;
}

int TwiceIn(Runtime& runtime, const PlacementGroup& group, int x) {
  return runtime.Get(runtime.CallWith<Twice>({.group = group}, x));
}

int TwiceInOneOfItsOwn(Runtime& runtime, int x) {
  const PlacementGroup group = runtime.CreatePlacementGroup({{.cpus = 1}});
  return TwiceIn(runtime, group, x);
}

class Counter {
 public:
  int Add(int amount) { return sum_ += amount; }

 private:
  int sum_ = 0;
};

class GroupsTest : public IsolationTest {};
INSTANTIATE_TEST_SUITE_P(Isolations, GroupsTest, BothIsolations(), IsolationName);

TEST_P(GroupsTest, CallsAndActorsRunInThem) {
  const PlacementGroup group = runtime.CreatePlacementGroup({{.cpus = 1}, {.cpus = 1}});
  EXPECT_EQ(group.bundles(), 2U);
  runtime.Get(group.Ready(), kPatience);
  const ActorRef<Counter> actor =
      runtime.CreateActor<Counter>({.cpus = 1, .group = group, .bundle = 1});
  EXPECT_EQ(runtime.Get(actor.Call<&Counter::Add>(3), kPatience), 3);
  EXPECT_EQ(runtime.Get(runtime.CallWith<Twice>({.group = group, .bundle = 0}, 4), kPatience), 8);
  EXPECT_EQ(runtime.Get(runtime.CallWith<TwiceIn>({.cpus = 0}, group, 5), kPatience), 10);
  // A call outside has no CPU until the group is removed.
  const ObjectRef<int> outside = runtime.Call<Twice>(6);
  EXPECT_TRUE(runtime.Wait(std::vector{outside}, {.timeout = milliseconds(20)}).ready.empty());
  runtime.RemovePlacementGroup(group);
  EXPECT_EQ(runtime.Get(outside, kPatience), 12);
}

TEST_P(GroupsTest, AreFreedWithTheirLastReference) {
  for (int i = 0; i < 200; ++i) {
    const PlacementGroup group = runtime.CreatePlacementGroup({{.cpus = 2}});
    ASSERT_EQ(runtime.Get(runtime.CallWith<Twice>({.group = group}, i), kPatience), 2 * i);
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(runtime.Get(runtime.CallWith<TwiceInOneOfItsOwn>({.cpus = 0}, i), kPatience), 2 * i);
  }
}

TEST_P(GroupsTest, RemovalCancels) {
  const PlacementGroup group = runtime.CreatePlacementGroup({{.cpus = 2}});
  const ObjectRef<int> runs = runtime.CallWith<SleepUntilCancelled>({.cpus = 2, .group = group});
  const ObjectRef<int> waits = runtime.CallWith<Twice>({.cpus = 2, .group = group}, 1);
  runtime.RemovePlacementGroup(group);
  runtime.RemovePlacementGroup(group);
  const ObjectRef<int> late = runtime.CallWith<Twice>({.group = group}, 1);
  for (const ObjectRef<int>& call : {runs, waits, late}) {
    try {
      runtime.Get(call, kPatience);
      FAIL() << "it was removed";
    } catch (const TaskError& error) {
      EXPECT_EQ(error.failure().kind, FailureKind::kCancelled);
      EXPECT_THAT(error.what(), HasSubstr("the placement group was removed"));
    }
  }
  EXPECT_EQ(runtime.Get(runtime.Call<Twice>(2), kPatience), 4);
}

template <typename Do>
std::string Refusal(const Do& act) {
  return ErrorText(ErrorCode::kInvalidArgument, act);
}

TEST_P(GroupsTest, SayWhatIsWrong) {
  EXPECT_THAT(Refusal([&] { runtime.CreatePlacementGroup({}); }), HasSubstr("0 bundles"));
  EXPECT_THAT(Refusal([&] { runtime.CreatePlacementGroup({Bundle()}); }), HasSubstr("nothing"));
  EXPECT_THAT(Refusal([&] { runtime.CreatePlacementGroup({{.cpus = -1}}); }),
              HasSubstr("'cpu' is -1; it must lie between 0 and 1000000"));
  EXPECT_THAT(Refusal([&] { runtime.CreatePlacementGroup({{.cpus = 0.00009}}); }),
              HasSubstr("'cpu' is 9e-05; the smallest amount is 0.0001"));
  EXPECT_THAT(Refusal([&] {
                runtime.CreatePlacementGroup({{.resources = {{"a@b", 1}}}});
              }),
              HasSubstr("'a@b' is no name of a resource"));
  Resources strange;
  strange.Set("a@b", 1);
  EXPECT_THAT(Refusal([&] { Runtime({.resources = strange}); }), HasSubstr("'a@b' is no name"));
  EXPECT_THAT(Refusal([&] { runtime.RemovePlacementGroup({}); }), HasSubstr("refers to nothing"));
  EXPECT_THAT(Refusal([&] { runtime.CallWith<Twice>({.bundle = 1}, 1); }),
              HasSubstr("bundle 1 of no placement group"));
  const PlacementGroup large = runtime.CreatePlacementGroup({{.cpus = 1000}});
  EXPECT_THAT(Refusal([&] { runtime.Get(large.Ready(), kPatience); }),
              HasSubstr("cpu: needs 1000, there is 2"));
  EXPECT_THAT(
      Refusal([&] { runtime.Get(runtime.CallWith<Twice>({.group = large}, 1), kPatience); }),
      HasSubstr("cpu: needs 1000, there is 2"));
  const PlacementGroup group = runtime.CreatePlacementGroup({{.cpus = 1}});
  EXPECT_THAT(Refusal([&] { runtime.CallWith<Twice>({.spread = true, .group = group}, 1); }),
              HasSubstr("it can not be spread"));
  EXPECT_THAT(Refusal([&] {
                runtime.CallWith<Twice>({.preferred = {{"x", 1}}, .group = group}, 1);
              }),
              HasSubstr("it can prefer nothing"));
  EXPECT_THAT(Refusal([&] { runtime.CallWith<Twice>({.group = group, .bundle = 1}, 1); }),
              HasSubstr("bundle 1 of a placement group that has 1"));
  EXPECT_THAT(Refusal([&] {
                runtime.Get(runtime.CallWith<Twice>({.gpus = 1, .group = group}, 1), kPatience);
              }),
              HasSubstr("gpu: needs 1, there is 0"));
}

}  // namespace
}  // namespace menger
