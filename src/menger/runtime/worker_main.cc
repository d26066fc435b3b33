#include "menger/runtime/worker_main.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "menger/runtime/descriptors.h"
#include "menger/runtime/segment.h"
#include "menger/runtime/worker_client.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kReceiveDeadline{30};

// The worker's own segment, and those of others as they are named to it.
class MappedSegments final : public WorkerSegments {
 public:
  MappedSegments(const FileDescriptor& control, std::uint32_t own, FileDescriptor descriptor)
      : control_(control), own_(own), writable_(std::move(descriptor)) {}

  std::span<const std::byte> Read(const SharedExtent& extent) override {
    if (extent.segment == own_) return Part(writable_.bytes(), extent);
    const std::lock_guard lock(mutex_);
    // The node sends a segment before it names it.
    while (!others_.contains(extent.segment)) Receive();
    return Part(others_.at(extent.segment)->bytes(), extent);
  }

  std::span<std::byte> Write(const SharedExtent& extent) override {
    return Part(writable_.bytes(), extent);
  }

 private:
  template <typename Span>
  static Span Part(Span bytes, const SharedExtent& extent) {
    return bytes.subspan(static_cast<std::size_t>(extent.offset),
                         static_cast<std::size_t>(extent.bytes));
  }

  void Receive() {
    std::uint32_t segment = 0;
    const DescriptorMessage message =
        ReceiveDescriptors(control_, sizeof(segment), Deadline::After(kReceiveDeadline));
    std::memcpy(&segment, message.bytes.data(), sizeof(segment));
    others_[segment] = std::make_unique<ReadableSegment>(message.descriptors.at(0));
  }

  const FileDescriptor& control_;
  const std::uint32_t own_;
  WritableSegment writable_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::unique_ptr<ReadableSegment>> others_;  // Guarded by mutex_.
};

}  // namespace

int WorkerMain() {
  const WorkerIdentity identity = BecomeWorker();
  const DriverWatch watch(identity.control.get());
  WorkerStart start;
  DescriptorMessage message =
      ReceiveDescriptors(identity.control, sizeof(start), Deadline::After(kReceiveDeadline));
  std::memcpy(&start, message.bytes.data(), sizeof(start));
  WorkerChannel channel(MapSharedMemory(message.descriptors.at(0).get(), WorkerChannel::kBytes));
  const auto bell = MapSharedMemory(message.descriptors.at(1).get(), 4096);
  // Never deleted: what the program keeps until it exits may refer to objects, or show them.
  static WorkerClient& client =
      *new WorkerClient(start, std::move(channel), *reinterpret_cast<Doorbell*>(bell->data()),
                        std::make_unique<MappedSegments>(identity.control, start.segment,
                                                         std::move(message.descriptors.at(2))));
  client.Serve();
  return 0;
}

}  // namespace menger
