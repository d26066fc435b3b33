#include "menger/runtime/node/reading_rooms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "menger/runtime/testing/node_world.h"

namespace menger {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Values have 100 bytes.
class ReadingRoomsTest : public testing::Test {
 protected:
  ReadingRoomsTest() {
    world_.machine.SetTime(kSecond);
    world_.machine.StartWorkers();
  }

  ObjectId Put() {
    const ObjectId id = PutBy(RunOf(RootTask(1), 0), ++puts_);
    world_.machine.Put(kDriver, id, World::Large(100 * puts_), {});
    return id;
  }
  // How many calls workers have, or do.
  std::size_t Given() const {
    std::size_t given = 0;
    for (const Worker* const worker : world_.workers) {
      for (const Task* task = worker->outstanding.front(); task != nullptr; task = task->next) {
        ++given;
      }
    }
    return given;
  }
  // A call that reads nothing, and then wants two values.
  World::Running BeginFetching() {
    world_.Submit();
    const World::Running running = world_.Begin();
    std::vector<Object*> fetched;
    for (int i = 0; i < 2; ++i) fetched.push_back(world_.machine.objects().Find(Put()));
    world_.machine.Block(*running.worker, fetched);
    return running;
  }
  void Pass(std::int64_t nanoseconds) {
    world_.machine.SetTime(now_ += nanoseconds);
    world_.machine.Run();
  }

  World world_{{.resources = Resources(4, 0), .workers = 4, .reading_bytes_max = 250}};
  std::uint64_t puts_ = 0;
  std::int64_t now_ = kSecond;
};

TEST_F(ReadingRoomsTest, NoMoreIsReadAtOnceThanThereIsRoomFor) {
  for (int i = 0; i < 4; ++i) world_.Submit({Put()});
  EXPECT_EQ(Given(), 2);
  for (int left = 3; left > 0; --left) {
    world_.Finish(world_.Begin());
    EXPECT_EQ(Given(), std::min(left, 2));
  }
}

TEST_F(ReadingRoomsTest, AValueThatManyReadCountsOnce) {
  const ObjectId value = Put();
  for (int i = 0; i < 4; ++i) world_.Submit({value});
  EXPECT_EQ(Given(), 4);
}

TEST_F(ReadingRoomsTest, OneMayReadMoreThanThereIsRoomFor) {
  world_.Submit({Put(), Put(), Put(), Put()});
  EXPECT_EQ(Given(), 1);
  world_.Submit({Put()});
  world_.Submit();  // Comes after that.
  EXPECT_EQ(Given(), 1);
  world_.Finish(world_.Begin());
  EXPECT_EQ(Given(), 2);
}

// It may wait for just that.
TEST_F(ReadingRoomsTest, WhoWaitsKeepsNobodyOut) {
  world_.Submit({Put(), Put()});
  const World::Running first = world_.Begin();
  const World::Call inner = world_.Submit({Put()});
  EXPECT_EQ(Given(), 1);
  Object* const awaited = world_.machine.objects().Find(inner.result());
  world_.machine.Block(*first.worker, {&awaited, 1});
  world_.machine.Run();
  EXPECT_EQ(Given(), 2);
}

TEST_F(ReadingRoomsTest, WhoNeedsMuchIsNotPassedByThoseWhoNeedLittle) {
  World::CallWishes other;
  other.scheduling = "cpu=0.5";
  world_.Submit({Put()});
  const ObjectId first = Put();
  const World::Call large = world_.Submit({first, Put()});
  world_.Submit({}, {Put()}, other);
  EXPECT_EQ(Given(), 1);
  world_.Finish(world_.Begin());
  EXPECT_EQ(Given(), 1);
  EXPECT_EQ(world_.Begin().task, large.task);
}

TEST_F(ReadingRoomsTest, WhoIsCancelledMeanwhileKeepsNobodyOut) {
  world_.Submit({Put(), Put()});
  const World::Call held = world_.Submit({Put()});
  EXPECT_EQ(Given(), 1);
  world_.machine.Cancel(*world_.machine.objects().Find(held.result()), /*force=*/false);
  world_.Submit({Put()});
  world_.Finish(world_.Begin());
  EXPECT_EQ(Given(), 1);
  Pass(5 * kSecond);
  world_.Submit({Put()});
  EXPECT_EQ(Given(), 2);
}

// Its call is done once they are there.
TEST_F(ReadingRoomsTest, WhoFetchesValuesKeepsOthersOut) {
  const World::Running first = BeginFetching();
  world_.Submit({Put()});
  EXPECT_EQ(Given(), 1);
  world_.machine.Unblock(*first.worker);
  world_.machine.Run();
  EXPECT_EQ(Given(), 2);
}

TEST_F(ReadingRoomsTest, WhoFetchesValuesForACallThatIsLostKeepsNobodyOut) {
  const World::Running first = BeginFetching();
  world_.Submit({Put()});
  world_.Finish(first);
  EXPECT_EQ(Given(), 1);
}

TEST_F(ReadingRoomsTest, NobodyIsKeptOutForEver) {
  world_.Submit({Put(), Put()});
  world_.Submit({Put()});
  Pass(kSecond);
  EXPECT_EQ(Given(), 1);
  Pass(5 * kSecond);
  EXPECT_EQ(Given(), 2);
}

}  // namespace
}  // namespace menger
