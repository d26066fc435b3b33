#include "menger/networks/torch/device_traffic.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kPatience(120);  // A batch takes milliseconds.

class LockedMemory final : public Memory {
 public:
  explicit LockedMemory(at::Tensor bytes) : bytes_(std::move(bytes)) {}

  std::byte* data() override { return static_cast<std::byte*>(bytes_.data_ptr()); }
  std::size_t size() const override { return static_cast<std::size_t>(bytes_.numel()); }

 private:
  const at::Tensor bytes_;
};

}  // namespace

DeviceTraffic::DeviceTraffic(const c10::Device& device) : device_(device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl streams(device.type());
  compute_ = streams.getStreamFromGlobalPool(device);
  done_.emplace(device.type());
  arrived_.emplace(device.type());
}

DeviceTraffic::~DeviceTraffic() {
  if (on_cpu()) return;
  try {
    arrived_->synchronize();
  } catch (const std::exception&) {
    // The device failed; whoever waits for its results is told. Nothing reads from the host now.
  }
}

at::Tensor DeviceTraffic::LockedLike(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()).pinned_memory(true));
}

at::Tensor DeviceTraffic::ToDevice(const at::Tensor& host) const {
  if (on_cpu()) return host;
  return host.to(device_, /*non_blocking=*/true);
}

at::Tensor DeviceTraffic::Send(const at::Tensor& host) const {
  // libtorch keeps the locked copy until it has arrived.
  return on_cpu() ? host : ToDevice(LockedLike(host).copy_(host));
}

void DeviceTraffic::Announce(const at::Tensor& host) {
  if (on_cpu()) return;
  if (!copy_) {  // Acting networks are many, the device's streams 32, and they announce nothing.
    copy_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
  }
  const c10::StreamGuard guard(*copy_);
  arriving_ = host.to(device_, /*non_blocking=*/true);
  arrived_->record(*copy_);
  announced_ = host.const_data_ptr();
}

at::Tensor DeviceTraffic::TakeAnnounced(const at::Tensor& host) {
  if (announced_ == nullptr) return ToDevice(host);
  const void* const announced = std::exchange(announced_, nullptr);
  const at::Tensor arriving = std::exchange(arriving_, at::Tensor());
  arrived_->block(*compute_);  // Refused or not: after Wait nothing reads from the host.
  if (announced != host.const_data_ptr() || arriving.sizes() != host.sizes()) {
    return ToDevice(host);
  }
  arriving.record_stream(*compute_);  // Its memory is not used again before that stream is past.
  return arriving;
}

at::Tensor DeviceTraffic::ToHost(const at::Tensor& tensor) const {
  if (on_cpu()) return tensor.contiguous();
  return LockedLike(tensor).copy_(tensor, /*non_blocking=*/true);
}

void DeviceTraffic::Wait() {
  if (on_cpu()) return;
  done_->record(*compute_);
  const Deadline deadline = Deadline::After(kPatience);
  // libtorch's own wait would keep the core busy, which simulators have use for.
  while (!done_->query()) {
    if (deadline.expired()) {
      throw Unavailable("device '{}' has not finished in {} s what it was given", device_.str(),
                        kPatience.count());
    }
    std::this_thread::yield();
  }
}

at::Tensor DeviceTraffic::HostZeros(std::int64_t size, at::ScalarType type) const {
  return at::zeros({size}, at::TensorOptions(type).pinned_memory(!on_cpu()));
}

std::unique_ptr<Memory> DeviceTraffic::AllocateLocked(std::size_t bytes) const {
  if (on_cpu()) return AllocatePlainMemory(bytes);
  try {
    return std::make_unique<LockedMemory>(HostZeros(static_cast<std::int64_t>(bytes), at::kByte));
  } catch (const c10::Error&) {  // The system locks no more.
    return AllocatePlainMemory(bytes);
  }
}

}  // namespace menger
