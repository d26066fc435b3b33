#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "menger/tensor/memory.h"

namespace menger {

// What goes between host memory and the device of one network, and when it is there.
//
// On the CPU nothing goes anywhere: tensors are the caller's memory, nothing is waited for. On an
// accelerator a network has a stream of its own to compute in, so that it does not wait for another
// network's work, and a second one in which comes what was announced while the first computes.
// (libtorch has 32 streams a device: of more networks some share.) All calls but Wait return at
// once; copies from page-locked memory (AllocateLocked) then run beside this thread. One thread at
// a time; all calls of ATen on this network's tensors are made under Streams().
class DeviceTraffic {
 public:
  explicit DeviceTraffic(const c10::Device& device);
  ~DeviceTraffic();  // Waits for what is still on its way from the caller's memory.
  DeviceTraffic(const DeviceTraffic&) = delete;
  DeviceTraffic& operator=(const DeviceTraffic&) = delete;

  const c10::Device& device() const { return device_; }

  // Makes the computing stream the calling thread's, as long as the guard lives.
  c10::OptionalStreamGuard Streams() const { return c10::OptionalStreamGuard(compute_); }

  // `host` on the device, for the computing stream. The host's memory must stay until Wait.
  at::Tensor ToDevice(const at::Tensor& host) const;
  // The same by way of memory of its own: the host's is free at once.
  at::Tensor Send(const at::Tensor& host) const;

  // Begins to bring `host`, whose memory must stay as it is until the Wait after TakeAnnounced.
  void Announce(const at::Tensor& host);
  // What was announced last, if it is of this place and shape; otherwise as ToDevice. An
  // announcement is good for one call.
  at::Tensor TakeAnnounced(const at::Tensor& host);

  // A copy of `tensor` on the host, contiguous, to be read after Wait.
  at::Tensor ToHost(const at::Tensor& tensor) const;

  // Until everything that the computing stream has been given is done. Leaves the core to other
  // threads meanwhile; throws Unavailable after two minutes.
  void Wait();

  // Zeros, on the host, page-locked where there is an accelerator.
  at::Tensor HostZeros(std::int64_t size, at::ScalarType type) const;
  // Zeros as well; plain memory where the system locks no more.
  std::unique_ptr<Memory> AllocateLocked(std::size_t bytes) const;

 private:
  bool on_cpu() const { return !compute_; }
  static at::Tensor LockedLike(const at::Tensor& tensor);

  const c10::Device device_;
  std::optional<c10::Stream> compute_;  // These four: none on the CPU.
  std::optional<c10::Stream> copy_;     // From the first announcement on.
  std::optional<c10::Event> done_;
  std::optional<c10::Event> arrived_;  // What was announced.
  const void* announced_ = nullptr;    // Where on the host it is; null: nothing.
  at::Tensor arriving_;
};

}  // namespace menger
