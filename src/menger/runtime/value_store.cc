#include "menger/runtime/value_store.h"

#include <algorithm>
#include <utility>

namespace menger {
namespace {

std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// What the allocator takes for a value of `bytes` bytes.
std::uint64_t AllocatedBytes(std::uint64_t bytes) {
  bytes = std::max<std::uint64_t>(bytes, 1);
  return RoundUp(bytes, bytes > ExtentAllocator::kPageAlignedAbove ? ExtentAllocator::kPage
                                                                   : ExtentAllocator::kAlignment);
}

}  // namespace

ValueStore::ValueStore(std::uint64_t bytes_max)
    : bytes_max_(RoundUp(std::max<std::uint64_t>(bytes_max, 1), ExtentAllocator::kPage)) {}

std::uint32_t ValueStore::AddSegment() {
  const auto number = static_cast<std::uint32_t>(segments_.size());
  Segment segment;
  segment.memory =
      std::make_unique<WritableSegment>(fmt::format("menger-values-{}", number), bytes_max_);
  segment.extents = std::make_unique<ExtentAllocator>(bytes_max_);
  segments_.push_back(std::move(segment));
  return number;
}

bool ValueStore::Allocate(std::uint32_t number, std::uint64_t bytes, SharedExtent& extent) {
  const std::uint64_t allocated = AllocatedBytes(bytes);
  if (allocated > bytes_max_ - used_) return false;
  const auto place = segments_.at(number).extents->Allocate(allocated);
  if (!place) return false;
  used_ += allocated;
  extent = {number, place->offset, bytes};
  return true;
}

void ValueStore::Free(const SharedExtent& extent) {
  const std::uint64_t allocated = AllocatedBytes(extent.bytes);
  segments_.at(extent.segment).extents->Free({extent.offset, allocated});
  used_ -= allocated;
}

void ValueStore::Grant(const SharedExtent& extent) {
  segments_.at(extent.segment).granted.emplace(extent.offset, extent.bytes);
}

bool ValueStore::Publish(const SharedExtent& extent) {
  if (extent.segment >= segments_.size()) return false;
  auto& granted = segments_[extent.segment].granted;
  const auto grant = granted.find(extent.offset);
  if (grant == granted.end() || grant->second != extent.bytes) return false;
  granted.erase(grant);
  return true;
}

void ValueStore::DropGrants(std::uint32_t number) {
  for (const auto& [offset, bytes] : std::exchange(segments_.at(number).granted, {})) {
    Free({number, offset, bytes});
  }
}

std::span<std::byte> ValueStore::Write(const SharedExtent& extent) {
  return segments_.at(extent.segment).memory->bytes().subspan(extent.offset, extent.bytes);
}

void ValueStore::LeaveMapped() {
  for (Segment& segment : segments_) static_cast<void>(segment.memory.release());
}

TaskFailure ValueStore::Full(std::uint64_t bytes) const {
  return {.kind = FailureKind::kOutOfMemory,
          .code = ErrorCode::kUnavailable,
          .text = fmt::format("no room for a value of {} bytes: {} of {} bytes are in use", bytes,
                              used_, bytes_max_)};
}

}  // namespace menger
