#include "menger/parameters/shared_parameters.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

// The segment: a Header, the manifest's text, and from the next cache line on kSlots times a Slot
// with its values, each from a cache line on.
constexpr std::uint64_t kMagic = 0x314d41524150474dU;  // "MGPARAM1"
constexpr std::size_t kLine = 64;
constexpr std::uint64_t kSlots = 3;
constexpr int kAttempts = 1000;

struct alignas(kLine) Header {
  std::uint64_t magic = 0;
  std::uint64_t manifest_bytes = 0;
  std::uint64_t floats = 0;
  std::atomic<std::uint64_t> published = 0;  // How often; the newest is in slot published % kSlots.
};

struct alignas(kLine) Slot {
  // Odd while it is written.
  std::atomic<std::uint64_t> sequence = 0;
  std::atomic<std::uint64_t> incarnation = 0;
  std::atomic<std::int64_t> number = 0;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::size_t Lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::size_t SlotBytes(std::uint64_t floats) { return sizeof(Slot) + Lines(floats * sizeof(float)); }

std::size_t SegmentBytes(std::uint64_t manifest_bytes, std::uint64_t floats) {
  return sizeof(Header) + Lines(manifest_bytes) + kSlots * SlotBytes(floats);
}

Header& HeaderOf(SharedMemory& memory) { return *reinterpret_cast<Header*>(memory.data()); }

Slot& SlotOf(SharedMemory& memory, std::uint64_t published) {
  const Header& header = HeaderOf(memory);
  return *reinterpret_cast<Slot*>(memory.data() + sizeof(Header) + Lines(header.manifest_bytes) +
                                  (published % kSlots) * SlotBytes(header.floats));
}

// Values are words that both sides may touch at once: what was torn is thrown away.
std::span<std::uint32_t> ValuesOf(Slot& slot, std::size_t floats) {
  return {reinterpret_cast<std::uint32_t*>(&slot + 1), floats};
}

std::unique_ptr<SharedMemory> MapChecked(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(Header))) {
    throw DataLoss("descriptor {} is no segment of parameters: it has no header", descriptor);
  }
  auto memory = MapSharedMemory(descriptor, static_cast<std::size_t>(status.st_size));
  const Header& header = HeaderOf(*memory);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (header.magic != kMagic || header.manifest_bytes > bytes || header.floats > bytes ||
      SegmentBytes(header.manifest_bytes, header.floats) > bytes) {
    throw DataLoss("descriptor {} is no segment of parameters: its header says something else",
                   descriptor);
  }
  return memory;
}

ParameterManifest ManifestIn(SharedMemory& memory) {
  const Header& header = HeaderOf(memory);
  const auto* const text = reinterpret_cast<const char*>(memory.data() + sizeof(Header));
  ParameterManifest manifest = ParameterManifest::FromText({text, header.manifest_bytes});
  if (manifest.size() != static_cast<std::int64_t>(header.floats)) {
    throw DataLoss("a segment of {} parameters has a manifest of {}", header.floats,
                   manifest.size());
  }
  return manifest;
}

std::unique_ptr<SharedMemory> MakeSegment(const ParameterManifest& manifest) {
  const std::string text = manifest.ToText();
  const auto floats = static_cast<std::uint64_t>(manifest.size());
  auto memory = AllocateSharedMemory("menger-parameters", SegmentBytes(text.size(), floats));
  auto* const header = new (memory->data()) Header;
  header->manifest_bytes = text.size();
  header->floats = floats;
  std::memcpy(memory->data() + sizeof(Header), text.data(), text.size());
  for (std::uint64_t i = 0; i < kSlots; ++i) new (&SlotOf(*memory, i)) Slot;
  header->magic = kMagic;
  return memory;
}

}  // namespace

SharedPublication::SharedPublication(const ParameterManifest& manifest)
    : memory_(MakeSegment(manifest)), manifest_(manifest) {}

SharedPublication::SharedPublication(int descriptor)
    : memory_(MapChecked(descriptor)), manifest_(ManifestIn(*memory_)) {}

void SharedPublication::Publish(const ParameterBlob& version) {
  const std::span<const float> values = version.values();
  if (static_cast<std::int64_t>(values.size()) != manifest_.size()) {
    throw InvalidArgument("{} parameters published; the manifest has {}", values.size(),
                          manifest_.size());
  }
  Header& header = HeaderOf(*memory_);
  const std::uint64_t next = header.published.load(std::memory_order_relaxed) + 1;
  Slot& slot = SlotOf(*memory_, next);
  // As Boehm 2012, "Can seqlocks get along with programming language memory models?", figure 6.
  // It is odd already where another publisher died while it wrote this slot.
  const std::uint64_t odd = (slot.sequence.load(std::memory_order_relaxed) + 1) | 1;
  slot.sequence.store(odd, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.incarnation.store(version.version().incarnation, std::memory_order_relaxed);
  slot.number.store(version.version().number, std::memory_order_relaxed);
  const std::span<std::uint32_t> words = ValuesOf(slot, values.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::atomic_ref(words[i]).store(std::bit_cast<std::uint32_t>(values[i]),
                                    std::memory_order_relaxed);
  }
  slot.sequence.store(odd + 1, std::memory_order_release);
  header.published.store(next, std::memory_order_release);
}

SharedParameters::SharedParameters(int descriptor)
    : memory_(MapChecked(descriptor)),
      manifest_(ManifestIn(*memory_)),
      latest_(std::make_shared<ParameterBlob>(
          ParameterVersion{}, std::vector<float>(static_cast<std::size_t>(manifest_.size())))) {}

std::shared_ptr<const ParameterBlob> SharedParameters::Latest() const {
  const std::lock_guard lock(mutex_);
  const Header& header = HeaderOf(*memory_);
  std::vector<float> values;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t published = header.published.load(std::memory_order_acquire);
    if (published == 0) return latest_;
    Slot& slot = SlotOf(*memory_, published);
    const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
    const ParameterVersion version{
        .incarnation = static_cast<std::uint16_t>(slot.incarnation.load(std::memory_order_relaxed)),
        .number = slot.number.load(std::memory_order_relaxed)};
    if (before % 2 == 0 && version.packed() == latest_->version().packed()) return latest_;
    values.resize(static_cast<std::size_t>(manifest_.size()));
    const std::span<std::uint32_t> words = ValuesOf(slot, values.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      values[i] = std::bit_cast<float>(std::atomic_ref(words[i]).load(std::memory_order_relaxed));
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 != 0 || slot.sequence.load(std::memory_order_relaxed) != before) continue;
    latest_ = std::make_shared<ParameterBlob>(version, std::move(values));
    return latest_;
  }
  throw Unavailable(
      "{} parameters were published again {} times while they were copied; publish less often",
      manifest_.size(), kAttempts);
}

}  // namespace menger
