#include <algorithm>
#include <cstring>
#include <vector>

#include "menger/base/thread.h"
#include "menger/runtime/library/interface.h"

// The part of the C interface that lays values out as menger_runtime.h says.
namespace menger {
namespace {

constexpr std::size_t kBufferAlignment = 64;
constexpr std::size_t kCopyLargeBytes = std::size_t{8} << 20;  // Threads pay from here on.
constexpr std::size_t kCopyThreadsMax = 4;

std::size_t Aligned(std::size_t at) {
  return (at + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

// One thread does not fill the bandwidth of the memory.
void CopyLarge(std::byte* out, const void* data, std::size_t size) {
  const auto* const from = static_cast<const std::byte*>(data);
  const std::size_t parts =
      std::min<std::size_t>(static_cast<std::size_t>(AvailableCpus()), kCopyThreadsMax);
  const std::size_t part = Aligned(size / parts);
  std::vector<Thread> helpers;
  for (std::size_t i = 1; i < parts; ++i) {
    const std::size_t begin = i * part;
    const std::size_t bytes = std::min(part, size - begin);
    helpers.emplace_back(ThreadOptions{.name = "copy"},
                         [=] { std::memcpy(out + begin, from + begin, bytes); });
  }
  std::memcpy(out, from, std::min(part, size));
  for (Thread& helper : helpers) helper.Join();
}

}  // namespace

std::size_t ForeignValue::size() const {
  std::size_t size = (buffers.empty() ? 0 : 16 + 8 * buffers.size()) + head.size();
  for (const menger_bytes& buffer : buffers) size = Aligned(size) + buffer.size;
  return size;
}

void ForeignValue::Write(std::span<std::byte> out) const {
  std::size_t at = 0;
  const auto append = [&](const void* data, std::size_t size) {
    if (size >= kCopyLargeBytes) {
      CopyLarge(out.data() + at, data, size);
    } else if (size > 0) {
      std::memcpy(out.data() + at, data, size);
    }
    at += size;
  };
  if (!buffers.empty()) {
    const std::uint32_t counts[] = {1, static_cast<std::uint32_t>(buffers.size())};
    const std::uint64_t head_size = head.size();
    append(counts, sizeof(counts));
    append(&head_size, sizeof(head_size));
    for (const menger_bytes& buffer : buffers) append(&buffer.size, sizeof(buffer.size));
  }
  append(head.data(), head.size());
  for (const menger_bytes& buffer : buffers) {
    std::memset(out.data() + at, 0, Aligned(at) - at);
    at = Aligned(at);
    append(buffer.data, buffer.size);
  }
}

}  // namespace menger
