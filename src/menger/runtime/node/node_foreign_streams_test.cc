#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "menger/runtime/calls/stream.h"
#include "menger/runtime/testing/three_owners.h"

// Streams of an actor whose owner is another node.
namespace menger {
namespace {

using Call = World::Call;

class ForeignStreamsTest : public ThreeOwners {
 protected:
  // An actor of a's, which b knows.
  ForeignStreamsTest() : actor_(a().Construct({.parent = a().root})) {
    a().FinishAll();
    Refer(1, a().Name(actor_.result()));
    DeliverAll();
  }
  // By b.
  Call Stream(const std::vector<ObjectId>& arguments = {}) {
    return b().CallOf(arguments, {.kind = CallKind::kMethod,
                                  .actor = actor_.actor,
                                  .home = actor_.result(),
                                  .retries = 0,
                                  .stream_ahead = 2});
  }
  void Yield(const World::Running& running, std::vector<ObjectId> contained = {}) {
    a().machine.Yield(*running.worker, running.lease, yielded_++,
                      {World::Small(), std::move(contained)});
    a().machine.Run();
  }
  // As its driver.
  void Take(const Call& call, std::uint64_t count) {
    b().machine.Take(kDriver, call.task, count);
    b().machine.Run();
    DeliverAll();
  }
  void ForgetActor() {
    a().Forget(actor_.result());
    b().Forget(actor_.result());
  }

  const Call actor_;
  std::uint64_t yielded_ = 0;
};

TEST_F(ForeignStreamsTest, ItemsComeAsTheyAreYieldedAndTheWriterWaitsForTheReader) {
  const Call call = Stream();
  b().Get(call.result());
  DeliverAll();
  const World::Running running = a().Begin();
  ASSERT_EQ(running.task, call.task);
  Yield(running);
  EXPECT_EQ(a().State(StreamGate(call.task)), "value");
  Yield(running);
  EXPECT_EQ(a().State(StreamGate(call.task)), "");  // It is two ahead.
  DeliverAll();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(b().State(StreamItem(call.task, i)), "value");
  Take(call, 1);
  EXPECT_EQ(a().State(StreamGate(call.task)), "value");
  EXPECT_EQ(a().State(StreamItem(call.task, 0)), "forgotten");
  EXPECT_EQ(b().State(StreamItem(call.task, 0)), "forgotten");
  a().Finish(running);
  DeliverAll();
  EXPECT_EQ(b().State(call.result()), "value");
  EXPECT_EQ(b().State(StreamItem(call.task, 1)), "value");  // Held until it is taken.
  Take(call, kStreamDropped);
  b().Forget(call.result());
  ForgetActor();
  ExpectNothingLeft();
}

TEST_F(ForeignStreamsTest, TheEndComesAfterItemsWhoseValuesComeLater) {
  const ObjectId third = c().Put(World::Small());
  const Call call = Stream();
  b().Get(call.result());
  DeliverAll();
  const World::Running running = a().Begin();
  Refer(0, c().Name(third));  // c does not know yet: nobody may be told.
  Yield(running, {third});
  a().Finish(running);
  Deliver(0, 1);
  EXPECT_EQ(b().State(StreamItem(call.task, 0)), "");
  EXPECT_EQ(b().State(call.result()), "");
  DeliverAll();
  EXPECT_EQ(b().State(StreamItem(call.task, 0)), "value");
  EXPECT_EQ(b().State(call.result()), "value");
  Take(call, kStreamDropped);
  b().Forget(call.result());
  a().Forget(third);
  c().Forget(third);
  ForgetActor();
  ExpectNothingLeft();
}

TEST_F(ForeignStreamsTest, OneThatIsDroppedBeforeItsCallIsMadeIsDroppedThen) {
  const ObjectId third = c().Put(World::Small());
  Refer(1, c().Name(third));
  const Call call = Stream({third});
  b().machine.Take(kDriver, call.task, kStreamDropped);
  b().machine.Run();
  EXPECT_EQ(Deliver(1, 0), 0);  // c is to know first of the argument.
  b().Forget(call.result());
  b().Forget(third);
  c().Forget(third);
  DeliverAll();
  a().FinishAll();
  ForgetActor();
  ExpectNothingLeft();
}

TEST_F(ForeignStreamsTest, OfAReaderWhoseNodeIsGoneTheCallIsCancelled) {
  const Call call = Stream();
  DeliverAll();
  const World::Running running = a().Begin();
  Yield(running);
  a().machine.PeerDied(*peers[0][1], {.kind = FailureKind::kNodeDied, .text = "it is gone"});
  a().machine.Run();
  EXPECT_EQ(a().interrupted, std::vector<TaskId>{call.task});
  Yield(running);  // It has not heard yet.
  a().Finish(running);
  EXPECT_EQ(a().State(StreamItem(call.task, 0)), "forgotten");
  EXPECT_EQ(a().State(StreamItem(call.task, 1)), "forgotten");
}

TEST_F(ForeignStreamsTest, OfAnOwnerThatIsGoneTheEndIsAnError) {
  const Call call = Stream();
  b().Get(call.result());
  DeliverAll();
  Yield(a().Begin());
  DeliverAll();
  End(0);
  EXPECT_EQ(b().State(call.result()), "owner died");
  Take(call, kStreamDropped);
}

}  // namespace
}  // namespace menger
