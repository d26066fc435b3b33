#include "menger/runtime/driver/spiller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "menger/base/clock.h"

namespace menger {
namespace {

using testing::ElementsAre;
using Kind = ObjectValue::Kind;

constexpr std::uint64_t kKiB = 1024;
constexpr std::chrono::seconds kPatience{60};

// A node without workers: values come and go by hand.
class SpillingWorld : public NodeEffects {
 public:
  explicit SpillingWorld(std::uint64_t store_bytes)
      : store(store_bytes),
        machine({.workers = 0}, *this),
        spiller({.folder = testing::TempDir(),
                 .bytes_max = std::uint64_t{1} << 30,
                 .comes_free = [this] { return comes_free; }},
                store, machine, [] {}) {
    store.AddSegment();
  }

  bool Offer(Worker&, const Task&) override { return false; }
  bool Recall(Worker&, const Task&) override { return false; }
  void Announce(Worker&) override {}
  void StartWorker() override {}
  void Restore(Object& object) override { spiller.Restore(object); }
  void Ready(const Watch& watch, Object&) override { ready.push_back(watch.request); }
  void Free(const ObjectValue& value) override {
    if (value.kind == Kind::kShared) store.Free(value.extent);
    spiller.Forget(value);
  }
  void EndWorker(Worker&, std::string_view) override {}
  void Interrupt(Worker&, const Task&) override {}

  Object& Put(std::uint64_t number, std::uint64_t bytes) {
    SharedExtent extent;
    EXPECT_TRUE(store.Allocate(0, bytes, extent));
    std::ranges::fill(store.Write(extent), static_cast<std::byte>(number));
    const ObjectId id = ResultOf(ChildTask(RootTask(1), number), 0);
    machine.Put(kDriver, id, ObjectValue::Shared(extent), {});
    return *machine.objects().Find(id);
  }
  void Read(Object& object) {
    machine.objects().Pin(kDriver, object);
    machine.objects().Unpin(kDriver, object);
  }
  // Room of so many bytes, or why there is none.
  std::optional<TaskFailure> MakeRoom(std::uint64_t bytes) {
    bool answered = false;
    std::optional<TaskFailure> failure;
    spiller.Request(kDriver, 0, bytes, [&](const SharedExtent* extent, const TaskFailure* refusal) {
      answered = true;
      if (extent != nullptr) store.Free(*extent);
      if (refusal != nullptr) failure = *refusal;
    });
    WorkUntil([&] { return answered; });
    return failure;
  }
  template <typename Done>
  void WorkUntil(const Done& done) {
    const Deadline deadline = Deadline::After(kPatience);
    for (spiller.Work(); !done() && !deadline.expired(); spiller.Work()) usleep(100);
    EXPECT_TRUE(done());
  }

  std::vector<std::uint64_t> ready;
  bool comes_free = false;
  ValueStore store;
  NodeMachine machine;
  Spiller spiller;
};

std::vector<Kind> Kinds(const std::vector<Object*>& objects) {
  std::vector<Kind> kinds;
  for (const Object* const object : objects) kinds.push_back(object->value.kind);
  return kinds;
}

TEST(SpillerTest, WhatWasNotReadForLongestGoesFirst) {
  SpillingWorld world(4096 * kKiB);
  std::vector<Object*> objects;
  for (std::uint64_t i = 0; i < 4; ++i) objects.push_back(&world.Put(i, 1000 * kKiB));
  world.Read(*objects[0]);
  world.machine.objects().Pin(kDriver, *objects[1]);
  EXPECT_FALSE(world.MakeRoom(700 * kKiB));
  EXPECT_THAT(Kinds(objects),
              ElementsAre(Kind::kShared, Kind::kShared, Kind::kSpilled, Kind::kShared));
  world.machine.objects().Unpin(kDriver, *objects[1]);
  EXPECT_FALSE(world.MakeRoom(1700 * kKiB));
  EXPECT_THAT(Kinds(objects),
              ElementsAre(Kind::kShared, Kind::kShared, Kind::kSpilled, Kind::kSpilled));
}

TEST(SpillerTest, AWatchedValueComesBackAndIsNotWrittenTwice) {
  SpillingWorld world(4096 * kKiB);
  Object& object = world.Put(7, 1000 * kKiB);
  ASSERT_FALSE(world.MakeRoom(4000 * kKiB));
  ASSERT_EQ(object.value.kind, Kind::kSpilled);
  EXPECT_EQ(world.store.bytes_used(), 0);
  const Watch watch{kDriver, 99};
  EXPECT_TRUE(world.machine.WatchObject(watch, object));
  EXPECT_FALSE(world.machine.WatchObject(watch, object, /*with_value=*/true));
  world.WorkUntil([&] { return !world.ready.empty(); });
  EXPECT_THAT(world.ready, ElementsAre(99));
  ASSERT_EQ(object.value.kind, Kind::kShared);
  const std::span<const std::byte> bytes = world.store.Read(object.value.extent);
  EXPECT_EQ(std::ranges::count(bytes, std::byte{7}), 1000 * kKiB);
  ASSERT_FALSE(world.MakeRoom(4000 * kKiB));
  EXPECT_EQ(object.value.kind, Kind::kSpilled);
  EXPECT_EQ(world.spiller.counts().spilled_bytes, 1000 * kKiB);
}

TEST(SpillerTest, WhatIsReadMeanwhileStays) {
  SpillingWorld world(4096 * kKiB);
  Object& object = world.Put(7, 1000 * kKiB);
  bool answered = false;
  world.spiller.Request(kDriver, 0, 4000 * kKiB,
                        [&](const SharedExtent*, const TaskFailure*) { answered = true; });
  world.spiller.Work();
  // It is being written.
  world.machine.objects().Pin(kDriver, object);
  world.WorkUntil([&] { return answered; });
  EXPECT_EQ(object.value.kind, Kind::kShared);
}

TEST(SpillerTest, WhatMayComeFreeIsWaitedFor) {
  SpillingWorld world(4096 * kKiB);
  Object& object = world.Put(7, 1000 * kKiB);
  world.machine.objects().Pin(kDriver, object);
  world.comes_free = true;
  bool answered = false;
  bool refused = false;
  world.spiller.Request(kDriver, 0, 4000 * kKiB,
                        [&](const SharedExtent*, const TaskFailure* refusal) {
                          answered = true;
                          refused = refusal != nullptr;
                        });
  world.spiller.Work();
  EXPECT_FALSE(answered);
  world.machine.objects().Unpin(kDriver, object);
  world.WorkUntil([&] { return answered; });
  EXPECT_FALSE(refused);
}

TEST(SpillerTest, WhatIsNotNeededAnyLongerTakesNoRoomAnywhere) {
  SpillingWorld world(4096 * kKiB);
  Object& object = world.Put(7, 1000 * kKiB);
  ASSERT_FALSE(world.MakeRoom(4000 * kKiB));
  world.machine.objects().DropReferrer(kDriver, object);
  world.WorkUntil([&] { return world.spiller.counts().disk_bytes == 0; });
  EXPECT_EQ(world.store.bytes_used(), 0);
}

TEST(SpillerTest, MoreThanTheStoreHasIsRefusedAtOnce) {
  SpillingWorld world(4096 * kKiB);
  Object& object = world.Put(7, 1000 * kKiB);
  const std::optional<TaskFailure> failure = world.MakeRoom(5000 * kKiB);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, FailureKind::kOutOfMemory);
  EXPECT_EQ(object.value.kind, Kind::kShared);
}

TEST(ValueStoreTest, AProcessSpeaksOnlyForWhatItWasGiven) {
  ValueStore store(4096 * kKiB);
  store.AddSegment();
  SharedExtent piece;
  ASSERT_TRUE(store.Allocate(0, 64 * kKiB, piece));
  store.Grant(piece);
  const std::uint64_t at = piece.offset;
  EXPECT_TRUE(store.Publish({0, at + 4096, 1000}));
  EXPECT_FALSE(store.Publish({0, at + 4096, 1000}));
  EXPECT_FALSE(store.Publish({0, at, 4097}));  // Partly a value already.
  EXPECT_FALSE(store.Publish({0, at + 64 * kKiB, 64}));
  EXPECT_FALSE(store.Publish({0, at + 60 * kKiB, 5 * kKiB}));
  EXPECT_FALSE(store.Publish({0, at + 64, 10}));
  EXPECT_FALSE(store.Publish({0, ~std::uint64_t{4095}, 8192}));
  EXPECT_FALSE(store.Publish({0, at, ~std::uint64_t{0}}));
  EXPECT_FALSE(store.Publish({1, at, 64}));
  EXPECT_TRUE(store.Return({0, at, 4096}));
  EXPECT_TRUE(store.Publish({0, at + 8192, 55 * kKiB}));
  EXPECT_EQ(store.bytes_granted(), 0);
  EXPECT_EQ(store.bytes_used(), 60 * kKiB);
}

TEST(ValueStoreTest, MemoryIsKeptForWhatComesNextButNotMoreThanTheStoreMayHave) {
  ValueStore store(4096 * kKiB);
  for (int i = 0; i < 4; ++i) store.AddSegment();
  for (std::uint32_t segment = 0; segment < 4; ++segment) {
    SharedExtent extent;
    ASSERT_TRUE(store.Allocate(segment, 3000 * kKiB, extent));
    std::memset(store.Write(extent).data(), 1, extent.bytes);
    EXPECT_LE(store.bytes_resident(), store.bytes_max());
    store.Free(extent);
    EXPECT_GE(store.bytes_resident(), 3000 * kKiB);
  }
}

TEST(ValueStoreTest, WhatNobodyUsesForAWhileGoesBackToTheSystem) {
  constexpr std::uint64_t kMiB = 1024 * kKiB;
  constexpr std::uint64_t kAll = 100 * kMiB;
  ValueStore store(2 * kAll);
  store.AddSegment();
  const auto use = [&] {
    SharedExtent extent;
    ASSERT_TRUE(store.Allocate(0, kAll, extent));
    std::memset(store.Write(extent).data(), 1, extent.bytes);
    store.Free(extent);
  };
  const auto resident = [&] {
    struct stat status {};
    EXPECT_EQ(fstat(store.descriptor(0), &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  };
  for (int i = 0; i < 2; ++i) {  // It is used each time.
    use();
    store.LookForUnused();
    EXPECT_FALSE(store.GiveBack(kMiB));
    EXPECT_EQ(store.bytes_resident(), kAll);
  }
  store.LookForUnused();
  for (int i = 1; store.GiveBack(kMiB); ++i) ASSERT_EQ(store.bytes_resident(), kAll - i * kMiB);
  EXPECT_EQ(store.bytes_resident(), ValueStore::kKeptFreeBytes);
  EXPECT_EQ(resident(), ValueStore::kKeptFreeBytes);
  use();
  EXPECT_EQ(store.bytes_resident(), kAll);
  EXPECT_FALSE(store.GiveBack(kMiB));
}

TEST(ValueStoreTest, ValuesOfOddLengthsHaveNoMoreMemoryThanTheStoreMayHave) {
  constexpr std::uint32_t kSegments = 3;
  ValueStore store(4096 * kKiB);
  for (std::uint32_t i = 0; i < kSegments; ++i) store.AddSegment();
  std::minstd_rand random(1);
  std::vector<SharedExtent> values;
  for (int step = 0; step < 3000; ++step) {
    SharedExtent extent;
    const std::uint64_t bytes = 64 * kKiB + random() % (900 * kKiB);
    if (store.Allocate(static_cast<std::uint32_t>(random() % kSegments), bytes, extent)) {
      values.push_back(extent);
    } else {
      std::swap(values[random() % values.size()], values.back());
      store.Free(values.back());
      values.pop_back();
    }
    ASSERT_LE(store.bytes_resident(), store.bytes_max()) << "in step " << step;
  }
}

}  // namespace
}  // namespace menger
