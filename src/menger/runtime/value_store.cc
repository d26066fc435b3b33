#include "menger/runtime/value_store.h"

#include <algorithm>

namespace menger {
namespace {

constexpr std::uint64_t kExtentAlignment = 64;

std::uint64_t RoundUp(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + kExtentAlignment - 1) / kExtentAlignment *
         kExtentAlignment;
}

}  // namespace

ValueStore::ValueStore(std::uint64_t bytes_max) : bytes_max_(RoundUp(bytes_max) / 4096 * 4096) {}

std::uint32_t ValueStore::AddSegment() {
  const auto number = static_cast<std::uint32_t>(segments_.size());
  Segment segment;
  segment.memory =
      std::make_unique<WritableSegment>(fmt::format("menger-values-{}", number), bytes_max_);
  segment.free.emplace(0, bytes_max_);
  segments_.push_back(std::move(segment));
  return number;
}

bool ValueStore::Allocate(std::uint32_t number, std::uint64_t bytes, Extent& extent) {
  const std::uint64_t size = RoundUp(bytes);
  if (size > bytes_max_ - used_) return false;
  Segment& segment = segments_.at(number);
  const auto fit = std::find_if(segment.free.begin(), segment.free.end(),
                                [size](const auto& hole) { return hole.second >= size; });
  if (fit == segment.free.end()) return false;
  const auto [offset, room] = *fit;
  segment.free.erase(fit);
  if (room > size) segment.free.emplace(offset + size, room - size);
  segment.used.emplace(offset, size);
  used_ += size;
  extent = {number, offset, bytes};
  return true;
}

void ValueStore::Free(const Extent& extent) {
  Segment& segment = segments_.at(extent.segment);
  const auto used = segment.used.find(extent.offset);
  if (used == segment.used.end()) return;
  auto [offset, size] = *used;
  segment.used.erase(used);
  used_ -= size;
  const auto after = segment.free.lower_bound(offset);
  if (after != segment.free.end() && after->first == offset + size) {
    size += after->second;
    segment.free.erase(after);
  }
  const auto next = segment.free.lower_bound(offset);
  if (next != segment.free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  segment.free.emplace(offset, size);
}

bool ValueStore::IsAllocated(const Extent& extent) const {
  if (extent.segment >= segments_.size()) return false;
  const auto used = segments_[extent.segment].used.find(extent.offset);
  return used != segments_[extent.segment].used.end() && extent.bytes <= used->second;
}

std::span<std::byte> ValueStore::Write(const Extent& extent) {
  return segments_.at(extent.segment).memory->bytes().subspan(extent.offset, extent.bytes);
}

std::span<const std::byte> ValueStore::Read(const Extent& extent) { return Write(extent); }

TaskFailure ValueStore::Full(std::uint64_t bytes) const {
  return {.kind = FailureKind::kOutOfMemory,
          .code = ErrorCode::kUnavailable,
          .text = fmt::format("no room for a value of {} bytes: {} of {} bytes are in use", bytes,
                              used_, bytes_max_)};
}

}  // namespace menger
