#include "menger/runtime/memory/value_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace menger {
namespace {

// Addresses cost nothing: with twice as many, what is in use seldom lies in the way.
constexpr std::uint64_t kAddressesPerByte = 2;
// So much is given back at once, at least.
constexpr std::uint64_t kTrimBytesMin = std::uint64_t{8} << 20;

}  // namespace

std::uint64_t ValueStore::Occupied(const SharedExtent& extent) {
  return WholePages(std::max<std::uint64_t>(extent.bytes, 1));
}

ValueStore::ValueStore(std::uint64_t bytes_max)
    : bytes_max_(WholePages(std::max<std::uint64_t>(bytes_max, 1))) {}

std::uint32_t ValueStore::AddSegment() {
  const auto number = static_cast<std::uint32_t>(segments_.size());
  const std::uint64_t addresses = kAddressesPerByte * bytes_max_;
  Segment segment;
  segment.memory =
      std::make_unique<WritableSegment>(fmt::format("menger-values-{}", number), addresses);
  segment.extents = std::make_unique<ExtentAllocator>(addresses);
  segments_.push_back(std::move(segment));
  return number;
}

bool ValueStore::Allocate(std::uint32_t number, std::uint64_t bytes, SharedExtent& extent) {
  const std::uint64_t allocated = Occupied({.bytes = bytes});
  // Of so many that they cannot be rounded up, too.
  if (bytes > bytes_max_ || allocated > bytes_max_ - used_) return false;
  ExtentAllocator& extents = *segments_.at(number).extents;
  const std::uint64_t warm = extents.warm_free_bytes();
  const auto place = extents.Allocate(allocated);
  if (!place) return false;
  used_ += allocated;
  warm_ -= warm - extents.warm_free_bytes();
  extent = {number, place->offset, bytes};
  Trim();
  least_warm_ = std::min(least_warm_, warm_);
  return true;
}

void ValueStore::Trim() {
  while (bytes_resident() > bytes_max_) {
    TrimMost(std::max<std::uint64_t>(bytes_resident() - bytes_max_, kTrimBytesMin));
  }
}

// The largest free parts go first: they are the least likely to be used again soon.
std::uint64_t ValueStore::TrimMost(std::uint64_t bytes) {
  const auto most = std::ranges::max_element(
      segments_, {}, [](const Segment& segment) { return segment.extents->warm_free_bytes(); });
  std::uint64_t trimmed = 0;
  for (const Extent& extent : most->extents->Trim(bytes)) {
    most->memory->ReleasePages(extent.offset, extent.bytes);
    trimmed += extent.bytes;
  }
  warm_ -= trimmed;
  return trimmed;
}

void ValueStore::LookForUnused() {
  unused_ = least_warm_ > kKeptFreeBytes ? least_warm_ - kKeptFreeBytes : 0;
  least_warm_ = warm_;
}

bool ValueStore::GiveBack(std::uint64_t bytes) {
  unused_ = std::min(unused_, warm_ > kKeptFreeBytes ? warm_ - kKeptFreeBytes : 0);
  if (unused_ == 0) return false;
  unused_ -= std::min(unused_, TrimMost(std::min(bytes, unused_)));
  least_warm_ = std::min(least_warm_, warm_);
  return unused_ > 0;
}

void ValueStore::GiveBackAll() {
  for (std::uint32_t segment = 0; segment < segments_.size(); ++segment) DropGrants(segment);
  while (warm_ > 0 && TrimMost(warm_) > 0) {
  }
}

std::uint64_t ValueStore::bytes_granted() const {
  std::uint64_t sum = 0;
  for (const Segment& segment : segments_) {
    for (const auto& [offset, bytes] : segment.granted) sum += bytes;
  }
  return sum;
}

void ValueStore::Free(const SharedExtent& extent) {
  if (extent.is_shown()) return on_shown_freed_(extent);
  FreeOwn(extent.segment, {extent.offset, Occupied(extent)});
}

void ValueStore::FreeOwn(std::uint32_t segment, const Extent& extent) {
  segments_.at(segment).extents->Free(extent);
  used_ -= extent.bytes;
  warm_ += extent.bytes;
}

void ValueStore::Grant(const SharedExtent& extent) {
  segments_.at(extent.segment).granted.emplace(extent.offset, Occupied(extent));
}

bool ValueStore::Publish(const SharedExtent& extent) {
  if (extent.segment >= segments_.size()) return false;
  if (extent.bytes > bytes_max_ || extent.offset % ExtentAllocator::kPage != 0) return false;
  auto& granted = segments_[extent.segment].granted;
  const auto after = granted.upper_bound(extent.offset);
  if (after == granted.begin()) return false;
  const auto grant = std::prev(after);
  const Extent whole{grant->first, grant->second};
  const Extent part{extent.offset, Occupied(extent)};
  if (part.offset >= whole.end() || part.bytes > whole.end() - part.offset) return false;
  granted.erase(grant);
  if (part.offset > whole.offset) granted.emplace(whole.offset, part.offset - whole.offset);
  if (part.end() < whole.end()) granted.emplace(part.end(), whole.end() - part.end());
  return true;
}

bool ValueStore::Return(const SharedExtent& extent) {
  if (!Publish(extent)) return false;
  Free(extent);
  return true;
}

void ValueStore::DropGrants(std::uint32_t number) {
  for (const auto& [offset, bytes] : std::exchange(segments_.at(number).granted, {})) {
    FreeOwn(number, {offset, bytes});
  }
}

std::span<std::byte> ValueStore::Write(const SharedExtent& extent) {
  return segments_.at(extent.segment).memory->bytes().subspan(extent.offset, extent.bytes);
}

std::span<const std::byte> ValueStore::Read(const SharedExtent& extent) const {
  const std::span<const std::byte> bytes = extent.is_shown()
                                               ? shown_.at(extent.segment).memory->bytes()
                                               : segments_.at(extent.segment).memory->bytes();
  return bytes.subspan(extent.offset, extent.bytes);
}

FileDescriptor ValueStore::OpenReadOnly(std::uint32_t number) const {
  const auto shown = shown_.find(number);
  if (shown == shown_.end()) return segments_.at(number).memory->OpenReadOnly();
  return OpenForReading(fmt::format("/proc/self/fd/{}", shown->second.file.get()));
}

// ---- Another node's memory.

std::uint32_t ValueStore::AddShown(FileDescriptor file) {
  auto memory = std::make_unique<ReadableSegment>(file);
  shown_.emplace(++last_shown_, Shown{std::move(file), std::move(memory)});
  return last_shown_;
}

void ValueStore::DropShown(std::uint32_t segment) { shown_.erase(segment); }

SegmentPlace ValueStore::PlaceOf(std::uint32_t segment) const {
  const auto shown = shown_.find(segment);
  return PlaceOfSegment(shown != shown_.end() ? shown->second.file.get() : descriptor(segment));
}

std::uint64_t ValueStore::SegmentBytes(std::uint32_t segment) const {
  const auto shown = shown_.find(segment);
  return shown != shown_.end() ? shown->second.memory->size()
                               : segments_.at(segment).memory->size();
}

TaskFailure ValueStore::Full(std::uint64_t bytes) const {
  return {.kind = FailureKind::kOutOfMemory,
          .code = ErrorCode::kUnavailable,
          .text = fmt::format("no room for a value of {} bytes: {} of {} bytes are in use", bytes,
                              used_, bytes_max_)};
}

}  // namespace menger
