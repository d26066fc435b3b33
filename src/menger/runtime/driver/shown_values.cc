#include "menger/runtime/driver/shown_values.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLookAfterMost = 60 * kSecond;
constexpr std::uint64_t kShownShare = 2;  // Of the store one part, at most.

bool HasEnded(const FileDescriptor& process) {
  pollfd poll_of{.fd = process.get(), .events = POLLIN, .revents = 0};
  return poll(&poll_of, 1, 0) > 0;
}

}  // namespace

ShownValues::ShownValues(NodeMachine& machine, ValueStore& store, std::uint32_t segment,
                         Hooks hooks)
    : machine_(machine), store_(store), segment_(segment), hooks_(std::move(hooks)) {
  store_.OnShownFreed([this](const SharedExtent& extent) { Freed(extent); });
}

// ---- What this node shows.

bool ShownValues::MayShow(PeerIndex to, std::uint32_t process, std::uint64_t bytes) {
  if (shown_bytes_ + bytes > store_.bytes_max() / kShownShare) return false;
  const auto [place, first] = processes_.try_emplace(to);
  if (first) {
    place->second = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  }
  // None: the kernel does not have such a thing, or no process of that number is here.
  return place->second.valid();
}

bool ShownValues::Show(PeerIndex to, Object& object, NodeLetter& wish) {
  const SharedExtent& extent = object.value.extent;
  if (!MayShow(to, wish.process, OwnBytes(extent))) return false;
  wish.kind = NodeLetter::Kind::kShown;
  wish.name = ++last_name_;
  wish.total = extent.bytes;
  wish.shown = store_.PlaceOf(extent.segment);
  wish.offset = extent.offset;
  machine_.objects().BeginRead(object);
  shown_bytes_ += OwnBytes(extent);
  shown_.emplace(wish.name, Showing{.object = &object, .to = to, .extent = extent});
  places_.emplace(PlaceOf(extent), wish.name);
  return true;
}

void ShownValues::Seen(PeerIndex by, std::uint64_t name) {
  const auto found = shown_.find(name);
  if (found != shown_.end() && found->second.to == by) Hide(name);
}

void ShownValues::Hide(std::uint64_t name) {
  const Showing showing = shown_.extract(name).mapped();
  shown_bytes_ -= OwnBytes(showing.extent);
  const auto [begin, end] = places_.equal_range(PlaceOf(showing.extent));
  places_.erase(std::find_if(begin, end, [name](const auto& one) { return one.second == name; }));
  if (showing.object != nullptr) return machine_.objects().EndRead(*showing.object);
  if (!places_.contains(PlaceOf(showing.extent))) store_.Free(showing.extent);
}

// Of another's memory two values may lie at one place, each of which was shown to this node: for
// those who see it here the first that is freed stays, whichever they were shown.
bool ShownValues::KeepFreed(const SharedExtent& extent) {
  bool kept = false;
  const auto [begin, end] = places_.equal_range(PlaceOf(extent));
  for (auto one = begin; one != end; ++one) {
    Object* const object = std::exchange(shown_.at(one->second).object, nullptr);
    if (object == nullptr) continue;
    machine_.objects().EndRead(*object);
    kept = true;
  }
  return kept;
}

// Each is asked for once a second: he may be reading it.
void ShownValues::ShowLess(std::uint64_t bytes) {
  for (auto& [name, showing] : shown_) {
    if (bytes == 0) return;
    bytes -= std::min(bytes, OwnBytes(showing.extent));
    if (OwnBytes(showing.extent) == 0 || now_ - showing.asked_at < kSecond) continue;
    showing.asked_at = now_;
    hooks_.send(showing.to, {.kind = NodeLetter::Kind::kShowLess, .name = name});
  }
}

// ---- What it is shown.

SharedExtent ShownValues::See(PeerIndex from, const NodeLetter& letter) {
  const std::uint32_t segment = SegmentOf(from, letter.shown);
  const std::uint64_t bytes = store_.SegmentBytes(segment);
  const bool fits = letter.offset % ExtentAllocator::kPage == 0 && letter.offset <= bytes &&
                    letter.total <= bytes - letter.offset;
  if (!fits) {
    throw DataLoss("{} bytes at {} of a segment of {} bytes are shown", letter.total, letter.offset,
                   bytes);
  }
  segments_.at(segment).seen.emplace(letter.offset, letter.name);
  return {segment, letter.offset, letter.total};
}

std::uint32_t ShownValues::SegmentOf(PeerIndex from, const SegmentPlace& place) {
  for (const auto& [number, segment] : segments_) {
    if (segment.of == from && segment.device == place.device && segment.inode == place.inode) {
      return number;
    }
  }
  const std::uint32_t number = store_.AddShown(OpenSegment(place));
  segments_.emplace(number, Segment{.of = from, .device = place.device, .inode = place.inode});
  return number;
}

void ShownValues::Freed(const SharedExtent& extent) {
  const auto segment = segments_.find(extent.segment);
  if (segment == segments_.end()) return;
  auto& seen = segment->second.seen;
  const auto one = seen.find(extent.offset);
  if (one == seen.end()) return;  // SayFarewell.
  const PeerIndex of = segment->second.of;
  if (of != 0) hooks_.send(of, {.kind = NodeLetter::Kind::kSeen, .name = one->second});
  seen.erase(one);
  DropUnseen(segment);
}

void ShownValues::DropUnseen(std::map<std::uint32_t, Segment>::iterator segment) {
  if (segment->second.of != 0 || !segment->second.seen.empty()) return;
  store_.DropShown(segment->first);
  segments_.erase(segment);
}

void ShownValues::NeedLess(PeerIndex from, std::uint64_t name) {
  for (const auto& [number, segment] : segments_) {
    if (segment.of != from) continue;
    for (const auto& [offset, called] : segment.seen) {
      if (called == name) unwanted_.emplace(number, offset);
    }
  }
  looks_at_ = 0;
}

void ShownValues::SayFarewell() {
  std::set<Place> read;
  machine_.objects().ForEach([&read](const Object& object) {
    const SharedExtent& extent = object.value.extent;
    const bool here = object.value.kind == ObjectValue::Kind::kShared;
    if (here && extent.is_shown() && object.pins > 0) read.emplace(extent.segment, extent.offset);
  });
  for (auto& [number, segment] : segments_) {
    std::erase_if(segment.seen, [&, of = segment.of, at = number](const auto& one) {
      if (of == 0 || read.contains({at, one.first})) return false;
      hooks_.send(of, {.kind = NodeLetter::Kind::kSeen, .name = one.second});
      return true;
    });
  }
}

// ---- Ends.

void ShownValues::PeerGone(PeerIndex peer) {
  Stranger stranger;
  for (const auto& [name, showing] : shown_) {
    if (showing.to == peer) stranger.shown.push_back(name);
  }
  if (auto process = processes_.extract(peer)) stranger.process = std::move(process.mapped());
  if (!stranger.shown.empty()) strangers_.push_back(std::move(stranger));
  for (auto entry = segments_.begin(); entry != segments_.end();) {
    const auto next = std::next(entry);
    auto& [number, segment] = *entry;
    if (segment.of == peer) {
      segment.of = 0;
      DropUnseen(entry);
    }
    entry = next;
  }
  looks_at_ = looks_after_ = 0;
}

void ShownValues::Work(std::int64_t now) {
  now_ = now;
  if (now < looks_at_) return;
  std::erase_if(strangers_, [this](const Stranger& stranger) {
    if (!HasEnded(stranger.process)) return false;
    for (const std::uint64_t name : stranger.shown) Hide(name);
    return true;
  });
  TakeHome();
  // Readers of memory whose node is gone may take their time.
  looks_after_ = std::clamp(2 * looks_after_, kSecond, kLookAfterMost);
  looks_at_ = now + (strangers_.empty() ? looks_after_ : kSecond);
}

void ShownValues::TakeHome() {
  const auto is_orphan = [](const auto& entry) { return entry.second.of == 0; };
  if (unwanted_.empty() && std::ranges::none_of(segments_, is_orphan)) return;
  std::vector<Object*> objects;
  machine_.objects().ForEach([&](Object& object) {
    const SharedExtent& extent = object.value.extent;
    if (object.value.kind != ObjectValue::Kind::kShared || !extent.is_shown()) return;
    const bool leaves =
        unwanted_.contains({extent.segment, extent.offset}) || segments_.at(extent.segment).of == 0;
    if (leaves && object.pins == 0) objects.push_back(&object);
  });
  unwanted_.clear();  // What is read now is asked for again where it is needed.
  for (Object* const object : objects) TakeHome(*object);
}

void ShownValues::TakeHome(Object& object) {
  if (!coming_home_.insert(&object).second) return;
  machine_.objects().Pin(kDriver, object);
  hooks_.ask_room(
      segment_, object.value.extent.bytes,
      [this, &object](const SharedExtent* room, const TaskFailure*) { CameHome(object, room); });
}

void ShownValues::CameHome(Object& object, const SharedExtent* room) {
  coming_home_.erase(&object);
  if (room != nullptr && object.pins == 1) {
    const std::span<const std::byte> bytes = store_.Read(object.value.extent);
    std::memcpy(store_.Write(*room).data(), bytes.data(), bytes.size());
    ObjectValue value = object.value;
    value.extent = *room;
    store_.Free(machine_.objects().Move(object, std::move(value)).extent);
  } else if (room != nullptr) {
    store_.Free(*room);  // Somebody has begun to read it.
  }
  machine_.objects().Unpin(kDriver, object);
}

}  // namespace menger
