#include "menger/runtime/cluster/kept_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/control/embedded_store.h"

namespace menger {
namespace {

using testing::ElementsAre;

const ForeignName kArgument{ObjectId{Id{1, 2}}, NodeId{Id{3, 4}}, 5};
const ForeignName kState{ObjectId{Id{6, 7}}, NodeId{Id{3, 4}}, 5};

KeptActor Example(CallKind kind = CallKind::kConstruct) {
  const TaskId task{Id{8, 9}};
  SpecBuilder builder({.kind = kind,
                       .named = true,
                       .task = task,
                       .actor = ActorOf(task),
                       .restarts = 3,
                       .detached = true},
                      1, {}, "", "name @space", 0);
  builder.AddReference(kArgument.object);
  const SpecPointer spec = builder.Finish();
  const std::span<const std::byte> bytes = spec->bytes();
  return {.lives = 2,
          .restarts = 3,
          .construction = {bytes.begin(), bytes.end()},
          .state = kState.object,
          .objects = {{.name = kArgument},
                      {.name = kState,
                       .bytes = std::vector<std::byte>(100, std::byte{7}),
                       .inner = {kArgument.object}}}};
}

TEST(KeptActorTest, IsReadAsItWasWritten) {
  const KeptActor actor = Example();
  const std::optional<KeptActor> read = DecodeKeptActor(Encode(actor));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->lives, 2);
  EXPECT_EQ(read->restarts, 3);
  EXPECT_EQ(read->construction, actor.construction);
  EXPECT_EQ(read->state, kState.object);
  ASSERT_EQ(read->objects.size(), 2);
  EXPECT_FALSE(read->objects[0].bytes.has_value());
  EXPECT_EQ(read->objects[0].name.epoch, 5);
  EXPECT_EQ(read->objects[1].bytes, actor.objects[1].bytes);
  EXPECT_THAT(read->objects[1].inner, ElementsAre(kArgument.object));
}

TEST(KeptActorTest, WhatIsCutOrLongerIsNone) {
  const std::string whole = Encode(Example());
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(DecodeKeptActor(whole.substr(0, bytes)).has_value()) << bytes;
  }
  EXPECT_FALSE(DecodeKeptActor(whole + "x").has_value());
}

TEST(KeptActorTest, WhatNobodyWouldHaveWrittenIsNone) {
  EXPECT_FALSE(DecodeKeptActor(Encode(Example(CallKind::kMethod))).has_value());
  KeptActor nameless = Example();
  nameless.objects.pop_back();
  EXPECT_FALSE(DecodeKeptActor(Encode(nameless)).has_value());
  KeptActor other = Example();
  other.objects[1].inner.push_back(ObjectId{Id{10, 11}});
  EXPECT_FALSE(DecodeKeptActor(Encode(other)).has_value());
  KeptActor stateless = Example();
  stateless.objects[1].bytes.reset();
  EXPECT_FALSE(DecodeKeptActor(Encode(stateless)).has_value());
  KeptActor over = Example();
  over.restarts = 0;
  EXPECT_FALSE(DecodeKeptActor(Encode(over)).has_value());
}

TEST(KeptActorTest, ProgramsAreWithoutKeeperWhoseLeasesAreOver) {
  constexpr std::chrono::seconds kPatience(60);
  EmbeddedStore store(EmbeddedStoreOptions{});
  const auto acquire = [&](const char* owner) {
    return RunBatch(store, {StoreOperation::Acquire(owner, kPatience)}, Deadline::After(kPatience))
        .front()
        .record.version;
  };
  const LeaseEpoch living = acquire("living");
  const LeaseEpoch gone = acquire("gone");
  const auto put = [&](const char* key, const char* program, LeaseEpoch lease) {
    const KeptOwner owner{{NodeId{Id{1, lease}}, lease}, program, ActorId{Id{1, 1}}};
    RunBatch(store, {StoreOperation::Put(StoreTable::kActors, key, Encode(owner)).BoundTo(lease)},
             Deadline::After(kPatience));
  };
  put("a", "one", living);
  put("b", "two", gone);
  put("c", "three", living);
  put("d", "two", gone);
  put("e", "three", gone);
  RunBatch(store, {StoreOperation::Renew(gone, {})}, Deadline::After(kPatience));
  const RecordReader reader{.lease = [living] { return living; },
                            .is_member = [](const NodeLife&) { return false; }};
  EXPECT_THAT(ProgramsWithoutKeeper(store, reader, Deadline::After(kPatience)),
              ElementsAre("three", "two"));
}

// After a fail-over the store knows no lease: what counts is who is there.
TEST(KeptActorTest, ARecordOfBeforeAFailOverCountsWhileItsHolderIsThere) {
  const NodeLife there{NodeId{Id{1, 1}}, 1};
  const LeaseEpoch after = (LeaseEpoch{2} << kFailOverShift) + 1;
  const RecordReader reader{.lease = [after] { return after; },
                            .is_member = [&](const NodeLife& life) { return life == there; }};
  const StoreRecord before{.lease = (LeaseEpoch{1} << kFailOverShift) + 1, .expired = true};
  EXPECT_TRUE(Counts(before, there, reader));
  EXPECT_FALSE(Counts(before, {NodeId{Id{1, 2}}, 1}, reader));
  EXPECT_FALSE(Counts({.lease = after, .expired = true}, there, reader));
  EXPECT_TRUE(Counts({.lease = after}, {NodeId{Id{1, 2}}, 1}, reader));
}

}  // namespace
}  // namespace menger
