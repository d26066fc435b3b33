#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "menger/runtime/driver/neighbours.h"

// The part of Neighbours that brings values here, and sends or shows them to others.
namespace menger {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;
// Room for what is on the disk is asked for again: it may have been refused.
constexpr std::int64_t kRestoreAgain = 1'000'000'000;

}  // namespace

void Neighbours::Pull(const PullOrder& order) {
  Coming coming{.owner = own_, .pull = order.pull, .name = order.name, .bytes = order.bytes};
  if (order.owner != nullptr) coming.owner = {order.owner->node, order.owner->epoch};
  if (!order.here) {
    const Peer& source = order.source != nullptr ? *order.source : *order.owner;
    coming.source = source.index;
  }
  coming_.push_back(coming);
  // What one who leaves has is to be here when he is gone.
  const Neighbour* const source = Find(coming.source);
  if (source == nullptr || !source->shows || machine_.FindPeer(coming.source)->leaves) {
    return AskRoom(coming_.back());
  }
  AskFor(coming, static_cast<std::uint32_t>(getpid()));
}

// It comes once there is some.
void Neighbours::AskRoom(Coming& coming) {
  SharedExtent extent;
  if (store_.Allocate(segment_, coming.bytes, extent)) {
    coming.extent = extent;
    return Begin(coming);
  }
  hooks_.ask_room(segment_, coming.bytes,
                  [this, owner = coming.owner, pull = coming.pull](const SharedExtent* room,
                                                                   const TaskFailure* refusal) {
                    HasRoom(owner, pull, room, refusal);
                  });
}

Neighbours::ComingPlace Neighbours::FindComing(const NodeLife& owner, std::uint64_t pull) {
  return std::ranges::find_if(
      coming_, [&](const Coming& one) { return one.owner == owner && one.pull == pull; });
}

void Neighbours::HasRoom(const NodeLife& owner, std::uint64_t pull, const SharedExtent* extent,
                         const TaskFailure* refusal) {
  const auto coming = FindComing(owner, pull);
  if (coming == coming_.end()) {  // It will not come any longer.
    if (extent != nullptr) store_.Free(*extent);
  } else if (extent != nullptr) {
    coming->extent = *extent;
    Begin(*coming);
  } else {
    coming_.erase(coming);
    Peer* const peer = machine_.FindPeer(PeerOf(owner));
    if (peer != nullptr || owner == own_) machine_.PullRefused(peer, pull, *refusal);
  }
}

// There is room for it.
void Neighbours::Begin(const Coming& coming) {
  if (coming.source == 0) return here_already_.push_back(coming);
  AskFor(coming, 0);
}

void Neighbours::AskFor(const Coming& coming, std::uint32_t process) {
  Send(coming.source, {.kind = NodeLetter::Kind::kSend,
                       .owner = coming.owner.node,
                       .epoch = coming.owner.epoch,
                       .pull = coming.pull,
                       .name = coming.name,
                       .process = process});
}

// Where it lies; or it is to come as others do.
void Neighbours::TakeShown(Neighbour& from, const NodeLetter& letter) {
  const auto coming = FindComing({letter.owner, letter.epoch}, letter.pull);
  const bool shown = letter.shown.process != 0;
  if (coming != coming_.end() && shown && letter.total == coming->bytes) {
    try {
      coming->extent = shown_.See(from.peer, letter);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kDataLoss) throw;
      from.shows = false;
    }
  }
  if (coming != coming_.end() && coming->extent) {
    const Coming seen = *coming;
    coming_.erase(coming);
    return EndComing(seen, /*arrived=*/true);
  }
  if (shown) Send(from.peer, {.kind = NodeLetter::Kind::kSeen, .name = letter.name});
  if (coming != coming_.end()) AskRoom(*coming);
}

Object* Neighbours::FindValue(const NodeLife& owner, std::uint64_t pull, std::uint64_t name) {
  Object* object = nullptr;
  if (owner == own_) {
    object = machine_.FindPull(pull);
  } else if (const Peer* const peer = machine_.FindPeer(PeerOf(owner))) {
    object = machine_.FindKept(*peer, name);
  }
  if (object == nullptr) return nullptr;
  const ObjectValue::Kind kind = object->value.kind;
  const bool here = kind == ObjectValue::Kind::kShared || kind == ObjectValue::Kind::kSpilled;
  return here ? object : nullptr;
}

// One that is on the disk comes back first.
bool Neighbours::IsInMemory(Object& object, std::int64_t& restored_at) {
  if (object.value.kind == ObjectValue::Kind::kShared) return true;
  if (restored_at != 0 && now_ - restored_at < kRestoreAgain) return false;
  restored_at = now_;
  hooks_.restore(object);
  return false;
}

void Neighbours::SendValue(Neighbour& to, NodeLetter letter, std::int64_t restored_at) {
  Object* const object = FindValue({letter.owner, letter.epoch}, letter.pull, letter.name);
  if (object != nullptr && !IsInMemory(*object, restored_at)) {
    wishes_.push_back({to.peer, std::move(letter), restored_at});
    return;
  }
  if (letter.process != 0) {
    if (object == nullptr || !shown_.Show(to.peer, *object, letter)) {
      letter.kind = NodeLetter::Kind::kShown;
    }
    return Send(to.peer, std::move(letter));
  }
  letter.kind = NodeLetter::Kind::kNone;
  if (object == nullptr) return SendBulk(to.peer, std::move(letter));
  letter.kind = NodeLetter::Kind::kPart;
  std::span<const std::byte> rest = store_.Read(object->value.extent);
  letter.total = rest.size();
  letter.part.keeper = Keep(*object);
  traffic_.served_bytes += rest.size();
  do {
    const auto part = rest.first(std::min(rest.size(), kPartBytes));
    rest = rest.subspan(part.size());
    letter.part.bytes = part;
    SendBulk(to.peer, letter);
  } while (!rest.empty());
}

// It is not moved while it is on its way.
std::shared_ptr<const void> Neighbours::Keep(Object& object) {
  machine_.objects().Pin(kDriver, object);
  return going_.emplace_back(std::make_shared<Object*>(&object));
}

// What has room and is on its way here may go to the disk once it has come.
bool Neighbours::frees_room() const {
  const auto fills = [](const Coming& coming) { return coming.extent.has_value(); };
  return !going_.empty() || shown_.shows_any() || std::ranges::any_of(coming_, fills);
}

void Neighbours::ForgetSent() {
  std::erase_if(going_, [this](const std::shared_ptr<Object*>& one) {
    if (one.use_count() > 1) return false;  // A link or a stream has it.
    machine_.objects().Unpin(kDriver, **one);
    return true;
  });
}

void Neighbours::TakePart(const NodeLetter& letter) {
  const auto coming = FindComing({letter.owner, letter.epoch}, letter.pull);
  if (coming == coming_.end()) return;
  const bool fits = coming->extent && coming->filled + letter.part.size() <= letter.total &&
                    letter.total == coming->extent->bytes;
  if (letter.kind == NodeLetter::Kind::kNone || !fits) {
    const Coming failed = *coming;
    coming_.erase(coming);
    return EndComing(failed, /*arrived=*/false);
  }
  const auto rest = store_.Write(*coming->extent).subspan(coming->filled);
  if (letter.part.size() > 0) {
    std::memcpy(rest.data(), letter.part.bytes.data(), letter.part.size());
  }
  coming->filled += letter.part.size();
  if (coming->filled < letter.total) return;
  const Coming arrived = *coming;
  coming_.erase(coming);
  EndComing(arrived, /*arrived=*/true);
}

void Neighbours::EndComing(const Coming& coming, bool arrived) {
  Peer* const owner = machine_.FindPeer(PeerOf(coming.owner));
  const bool wanted = owner != nullptr || coming.owner == own_;
  if (arrived && coming.source != 0) {
    (coming.extent->is_shown() ? traffic_.shown_bytes : traffic_.pulled_bytes) += coming.bytes;
  }
  if (arrived && wanted) {
    return machine_.Pulled(owner, coming.pull, ObjectValue::Shared(*coming.extent));
  }
  if (coming.extent) store_.Free(*coming.extent);
  if (wanted) machine_.NotPulled(owner, coming.pull);
}

bool Neighbours::Work(std::int64_t now) {
  now_ = now;
  shown_.Work(now);
  for (Wish& wish : std::exchange(wishes_, {})) {
    if (Neighbour* const to = Find(wish.to)) {
      SendValue(*to, std::move(wish.letter), wish.restored_at);
    }
  }
  bool any = false;
  for (Coming& copy : std::exchange(here_already_, {})) any |= CopyHere(copy);
  return any;
}

// True if the machine was told something.
bool Neighbours::CopyHere(Coming& coming) {
  const auto place = FindComing(coming.owner, coming.pull);
  if (place == coming_.end()) return false;  // With its room.
  Object* const object = FindValue(coming.owner, coming.pull, coming.name);
  if (object != nullptr && !IsInMemory(*object, coming.restored_at)) {
    here_already_.push_back(coming);
    return false;
  }
  coming_.erase(place);
  const bool fits = object != nullptr && object->value.extent.bytes == coming.extent->bytes;
  if (fits) {
    const auto from = store_.Read(object->value.extent);
    std::memcpy(store_.Write(*coming.extent).data(), from.data(), from.size());
  }
  EndComing(coming, fits);
  return true;
}

}  // namespace menger
