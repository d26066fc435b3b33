#include "menger/runtime/worker/worker_client.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

// What a worker says to its node, without one.
namespace menger {
namespace {

class NoSegments final : public WorkerSegments {
 public:
  std::span<const std::byte> Read(const SharedExtent&) override { return {}; }
  std::span<std::byte> Write(const SharedExtent&) override { return {}; }
};

class WorkerClientTest : public testing::Test {
 protected:
  WorkerClientTest() : memory_(AllocateSharedMemory("worker-client-test", WorkerChannel::kBytes)) {}

  WorkerChannel Channel() {
    return WorkerChannel(MapSharedMemory(memory_->descriptor(), WorkerChannel::kBytes));
  }

  std::unique_ptr<SharedMemory> memory_;
  WorkerChannel node_{MapSharedMemory(memory_->descriptor(), WorkerChannel::kBytes)};
  RingWriter to_worker_{node_.to_worker()};
  RingReader to_node_{node_.to_node()};
  NodeBell bell_;
};

template <typename T>
void Tell(RingWriter& ring, const T& message) {
  MessageWriter writer(ring.Reserve(MessagePart(sizeof(T))));
  writer.Add(message);
  ring.Publish();
}

// The worker has given up waiting for it, or was never told why it should come.
TEST_F(WorkerClientTest, RoomThatNobodyWaitsForIsReturned) {
  const SharedExtent extent{.segment = 3, .offset = 8192, .bytes = 4096};
  WorkerClient client({.job = RootTask(1), .index = 1}, Channel(), bell_,
                      std::make_unique<NoSegments>());
  Tell(to_worker_, GrantMessage{.granted = 1, .request = 42, .extent = extent});
  Tell(to_worker_, GrantMessage{.granted = 0, .request = 44});
  Tell(to_worker_, ToWorker::kStop);
  client.Serve();
  std::vector<SharedExtent> returned;
  while (const RingEntry entry = to_node_.Next()) {
    ToNode kind;
    std::memcpy(&kind, entry.bytes.data(), sizeof(kind));
    if (kind != ToNode::kReturn) continue;
    MessageReader reader(entry.bytes);
    returned.push_back(reader.Take<ReturnMessage>().extent);
  }
  ASSERT_EQ(returned.size(), 1U);
  EXPECT_EQ(returned[0].segment, extent.segment);
  EXPECT_EQ(returned[0].offset, extent.offset);
  EXPECT_EQ(returned[0].bytes, extent.bytes);
}

}  // namespace
}  // namespace menger
