#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "menger/base/file_testing.h"
#include "menger/runtime/testing/isolations.h"

// The longest names and times that are allowed, and actors that end while a call of theirs runs.
namespace menger {
namespace {

constexpr std::chrono::nanoseconds kLongest = std::chrono::nanoseconds::max();

class Echo {
 public:
  int Say(int value) { return value; }
  int WaitFor(const std::string& mark, const std::string& gate, int value) {
    std::ofstream(mark) << '1';
    while (!std::filesystem::exists(gate)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return value;
  }
};

int SayByName(Runtime& runtime, const std::string& name, int value) {
  return runtime.Get(runtime.GetActor<Echo>(name).Call<&Echo::Say>(value));
}

class EdgesTest : public testing::TestWithParam<Isolation> {
 protected:
  const testing_files::Folder folder;
  Runtime runtime{
      RuntimeOptions{.workers = 2, .isolation = GetParam(), .control_folder = folder / "control"}};
};
INSTANTIATE_TEST_SUITE_P(Isolations, EdgesTest, BothIsolations(), IsolationName);

TEST_P(EdgesTest, ActorsAndGroupsHaveTheLongestNames) {
  const std::string name(1024, 'n');
  const PlacementGroup group =
      runtime.CreatePlacementGroup({{.cpus = 1}}, {.name = std::string(1024, 'g')});
  const auto actor = runtime.CreateActor<Echo>({.cpus = 1, .group = group, .name = name});
  EXPECT_EQ(runtime.Get(actor.Call<&Echo::Say>(1)), 1);
  EXPECT_EQ(SayByName(runtime, name, 2), 2);
  EXPECT_EQ(runtime.Get(runtime.Call<SayByName>(name, 3)), 3);
  EXPECT_EQ(runtime.Get(runtime.CallWith<SayByName>({.name = name}, name, 4)), 4);
  EXPECT_THROW(runtime.CreateActor<Echo>({.name = name + "n"}), Error);
  EXPECT_THROW(runtime.GetActor<Echo>(name + "n"), Error);
}

int Same(int value) { return value; }

TEST_P(EdgesTest, TheLongestTimesAreNoTimesAtAll) {
  const ObjectRef<int> call = runtime.CallWith<Same>({.time_limit = kLongest}, 5);
  EXPECT_EQ(runtime.Get(call, kLongest), 5);
  EXPECT_EQ(runtime.Wait(std::vector{call}, {.timeout = kLongest}).ready.size(), 1U);
  EXPECT_EQ(runtime.Get(std::vector{call, call}, kLongest), (std::vector{5, 5}));
}

// Of threads it goes on, and nobody is told what it gives.
TEST_P(EdgesTest, ACallThatRunsFailsWhenItsActorIsKilled) {
  const auto actor = runtime.CreateActor<Echo>({});
  const auto call = actor.Call<&Echo::WaitFor>(folder / "begun", folder / "gate", 7);
  const auto next = actor.Call<&Echo::Say>(8);
  while (!std::filesystem::exists(folder / "begun")) std::this_thread::yield();
  runtime.Kill(actor);
  for (const ObjectRef<int>& killed : {call, next}) {
    try {
      runtime.Get(killed, std::chrono::seconds(30));
      ADD_FAILURE() << "it gave a value";
    } catch (const TaskError& error) {
      EXPECT_EQ(error.kind(), FailureKind::kActorDied);
    }
  }
  std::ofstream(folder / "gate") << '1';
  EXPECT_EQ(runtime.Get(runtime.Call<Same>(9)), 9);
  EXPECT_THROW(runtime.Get(call), TaskError);
}

}  // namespace
}  // namespace menger
