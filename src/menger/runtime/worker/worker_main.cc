#include "menger/runtime/worker/worker_main.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "menger/base/sharing/descriptors.h"
#include "menger/base/sharing/segment.h"
#include "menger/runtime/worker/worker_client.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kReceiveDeadline{30};

// The worker's own segment, and those of others as they are named to it. The node sends each before
// it names it, or as soon as the socket has room.
class MappedSegments final : public WorkerSegments {
 public:
  MappedSegments(const FileDescriptor& control, Doorbell& node) : control_(control), node_(node) {}

  std::span<const std::byte> Read(const SharedExtent& extent) override {
    const std::lock_guard lock(mutex_);
    for (;;) {
      if (own_ != nullptr && own_number_ == extent.segment) return Part(own_->bytes(), extent);
      const auto other = others_.find(extent.segment);
      if (other != others_.end()) return Part(other->second->bytes(), extent);
      Receive();
    }
  }

  std::span<std::byte> Write(const SharedExtent& extent) override {
    const std::lock_guard lock(mutex_);
    while (own_ == nullptr) Receive();
    return Part(own_->bytes(), extent);
  }

 private:
  template <typename Span>
  static Span Part(Span bytes, const SharedExtent& extent) {
    return bytes.subspan(static_cast<std::size_t>(extent.offset),
                         static_cast<std::size_t>(extent.bytes));
  }

  void Receive() {
    SegmentHanding handing;
    DescriptorMessage message = Next(sizeof(handing));
    if (message.bytes.size() < sizeof(handing) || message.descriptors.empty()) {
      throw DataLoss("the node sent {} bytes and {} descriptors for a segment",
                     message.bytes.size(), message.descriptors.size());
    }
    std::memcpy(&handing, message.bytes.data(), sizeof(handing));
    if (handing.own != 0) {
      own_ = std::make_unique<WritableSegment>(std::move(message.descriptors.front()));
      own_number_ = handing.segment;
    } else {
      others_[handing.segment] = std::make_unique<ReadableSegment>(message.descriptors.front());
    }
  }

  DescriptorMessage Next(std::size_t bytes_max) {
    try {
      return ReceiveDescriptors(control_, bytes_max, Deadline::After({}));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadlineExceeded) throw;
    }
    node_.Ring();  // There is room now for what the node could not send.
    return ReceiveDescriptors(control_, bytes_max, Deadline::After(kReceiveDeadline));
  }

  const FileDescriptor& control_;
  Doorbell& node_;
  std::mutex mutex_;
  std::unique_ptr<WritableSegment> own_;                              // Guarded by mutex_.
  std::uint32_t own_number_ = 0;                                      // Guarded by mutex_.
  std::map<std::uint32_t, std::unique_ptr<ReadableSegment>> others_;  // Guarded by mutex_.
};

}  // namespace

int WorkerMain() {
  // None of these is ever deleted: what the program keeps until it exits may refer to objects, or
  // show them, and drops them then.
  static const WorkerIdentity& identity = *new WorkerIdentity(BecomeWorker());
  const DriverWatch watch(identity.control.get());
  WorkerStart start;
  DescriptorMessage message =
      ReceiveDescriptors(identity.control, sizeof(start), Deadline::After(kReceiveDeadline));
  std::memcpy(&start, message.bytes.data(), sizeof(start));
  WorkerChannel channel(MapSharedMemory(message.descriptors.at(0).get(), WorkerChannel::kBytes));
  static SharedMemory& bell =
      *MapSharedMemory(message.descriptors.at(1).get(), sizeof(NodeBell)).release();
  NodeBell& node = *reinterpret_cast<NodeBell*>(bell.data());
  static WorkerClient& client =
      *new WorkerClient(start, std::move(channel), node,
                        std::make_unique<MappedSegments>(identity.control, node.doorbell));
  client.Serve();
  return 0;
}

}  // namespace menger
