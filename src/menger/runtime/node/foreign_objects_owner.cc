#include <algorithm>
#include <utility>

#include "menger/runtime/node/foreign_objects.h"
#include "menger/runtime/node/node_parts.h"

// What an owner does for nodes that refer to its objects.
namespace menger {

void ForeignObjects::Receive(Peer& peer, const PeerMessage& message) {
  Object* const object = node_.objects.Find(message.object);
  switch (message.kind) {
    case PeerMessage::Kind::kReferred:
      return Referred(message);
    case PeerMessage::Kind::kValue:
      return ValueCame(peer, message);
    case PeerMessage::Kind::kCall:
      return CallCame(peer, message);
    case PeerMessage::Kind::kItem:
      return ItemCame(peer, message);
    case PeerMessage::Kind::kTake:
      return node_.streams.Take(peer.process, TaskId{message.object}, message.bytes);
    case PeerMessage::Kind::kCalled:
      return LetGo({peer.index, TaskId{message.object}});
    case PeerMessage::Kind::kRefer:
      return AddHolder(peer, message);
    case PeerMessage::Kind::kForget:
      return DropHolder(peer, message);
    case PeerMessage::Kind::kDismiss:
      return Dismiss(peer, object);
    default:
      break;
  }
  // What it may say only of an object that it refers to.
  if (object == nullptr || !node_.objects.IsReferredBy(peer.process, *object)) return;
  switch (message.kind) {
    case PeerMessage::Kind::kAsk:
      return TellWhenReady(peer, *object);
    case PeerMessage::Kind::kFetch:
      // What was brought there came when the peer did not refer to it.
      if (const std::uint64_t name = node_.copies.NameAt(*object, peer.index | kOwnUse)) {
        node_.peers.DropAt(peer.index, name);
        node_.copies.Gone(*object, peer.index | kOwnUse);
      }
      return BringTo(peer, *object);
    case PeerMessage::Kind::kGone:
      if (node_.copies.NameAt(*object, peer.index | kOwnUse) == message.kept) {
        node_.copies.Gone(*object, peer.index | kOwnUse);
      }
      return;
    default:
      return CancelFor(*object, message);
  }
}

void ForeignObjects::Cancel(Object& object, bool force, bool may_restart) {
  Tell(*Find(object), {.kind = PeerMessage::Kind::kCancel,
                       .clean = force,
                       .count = may_restart ? 1U : 0U,
                       .object = object.id});
}

// What that has asked for.
void ForeignObjects::CancelFor(Object& object, const PeerMessage& message) {
  const Task* const task = object.producer;
  const bool may_restart = message.count > 0 && task != nullptr && task->actor != nullptr;
  if (may_restart) return node_.actors.Kill(*task->actor, may_restart);
  node_.calls.Cancel(object, /*force=*/message.clean);
}

// How the peer is told of objects. It refers to this node's from now on: that is counted here, for
// nobody else can know yet.
std::vector<ForeignName> ForeignObjects::NamesFor(const Peer& peer,
                                                  std::span<Object* const> objects) {
  std::vector<ForeignName> names;
  names.reserve(objects.size());
  for (Object* const object : objects) {
    names.push_back(NameOf(*object));
    if (!object->foreign) node_.objects.AddReferrer(peer.process, *object);
  }
  return names;
}

void ForeignObjects::AddHolder(Peer& peer, const PeerMessage& message) {
  Object* const object = node_.objects.Find(message.object);
  const bool known = object != nullptr && !object->foreign;
  if (known) node_.objects.AddReferrer(peer.process, *object);
  node_.peers.Tell(
      peer.index, {.kind = PeerMessage::Kind::kReferred, .clean = known, .object = message.object});
}

void ForeignObjects::DropHolder(Peer& peer, const PeerMessage& message) {
  Object* const object = node_.objects.Find(message.object);
  if (object == nullptr) return;
  node_.objects.Hold(*object);
  if (message.clean && rest_[peer.index].insert(object).second) {
    node_.objects.HoldLineage(*object);
  }
  for (std::uint32_t i = 0; i < message.count; ++i) {
    if (!node_.objects.IsReferredBy(peer.process, *object)) break;
    node_.objects.DropReferrer(peer.process, *object);
  }
  if (!node_.objects.IsReferredBy(peer.process, *object)) {
    node_.objects.DropWatch({peer.process, kAsks}, *object);
    node_.objects.DropWatch({peer.process, kFetches}, *object);
  }
  node_.objects.Release(*object);
  node_.values.SpreadNews();
}

void ForeignObjects::Dismiss(const Peer& peer, Object* object) {
  if (object != nullptr && rest_[peer.index].erase(object) > 0) {
    node_.objects.ReleaseLineage(*object);
  }
}

// ---- Values.

bool ForeignObjects::Tell(const Watch& watch, Object& object) {
  Peer* const peer = node_.peers.OfProcess(watch.process);
  if (peer == nullptr) return false;
  if (watch.request == kFetches) {
    BringTo(*peer, object);
  } else {
    TellValue(*peer, object);
  }
  return true;
}

void ForeignObjects::TellWhenReady(Peer& peer, Object& object) {
  const Watch watch{peer.process, kAsks};
  if (std::ranges::find(object.watches, watch) != object.watches.end()) return;
  if (node_.values.WatchObject(watch, object, /*with_value=*/false)) TellValue(peer, object);
  node_.values.SpreadNews();
}

void ForeignObjects::TellValue(Peer& peer, Object& object) {
  for (const Object* const inner : object.contained) {
    Record* const record = Find(*inner);
    if (record == nullptr || record->asked == 0) continue;
    record->untold.emplace_back(peer.index, object.id);
    return;
  }
  ObjectValue value = object.value;
  const bool small =
      value.kind == ObjectValue::Kind::kInline || value.kind == ObjectValue::Kind::kError;
  if (!small) value = ObjectValue::Remote(0, 0, value.extent.bytes);
  node_.peers.Tell(peer.index, {.kind = PeerMessage::Kind::kValue,
                                .object = object.id,
                                .value = std::move(value),
                                .references = NamesFor(peer, object.contained)});
}

// A larger value comes there by a pull, which needs no further word.
void ForeignObjects::BringTo(Peer& peer, Object& object) {
  const Watch watch{peer.process, kFetches};
  if (!node_.values.WatchObject(watch, object, /*with_value=*/true)) {
    return node_.values.SpreadNews();
  }
  const ObjectValue::Kind kind = object.value.kind;
  if (kind == ObjectValue::Kind::kInline || kind == ObjectValue::Kind::kError) {
    TellValue(peer, object);
  }
}

// ---- Calls.

void ForeignObjects::CallCame(Peer& peer, const PeerMessage& message) {
  SpecPointer spec = TaskSpec::Copy(message.call.bytes());
  const SpecHeader header = spec->header();
  const ForeignCall call(peer.index, header.task);
  std::vector<Object*> references;
  std::uint32_t missing = 0;
  for (const ForeignName& name : message.references) {
    references.push_back(&Learn(&peer, name));
    Record* const record = Find(*references.back());
    if (!message.clean || record == nullptr || record->asked == 0) continue;
    record->waiting.push_back(call);
    ++missing;
  }
  node_.calls.Submit(peer.process, std::move(spec), nullptr);
  for (std::uint32_t i = 0; i < header.results; ++i) {
    const ObjectId id = ResultOf(header.task, i);
    node_.peers.Tell(peer.index,
                     {.kind = PeerMessage::Kind::kReferred, .clean = true, .object = id});
    if (Object* const result = node_.objects.Find(id)) TellWhenReady(peer, *result);
  }
  if (missing > 0) unanswered_[call] = missing;
  for (Object* const object : references) node_.objects.Release(*object);
  if (missing == 0 && message.clean) {
    unanswered_[call] = 1;
    Answered(call);
  }
  node_.values.SpreadNews();
}

// The owner of one of its references knows that this node has it.
void ForeignObjects::Answered(const ForeignCall& call) {
  const auto found = unanswered_.find(call);
  if (found == unanswered_.end() || --found->second > 0) return;
  unanswered_.erase(found);
  node_.peers.Tell(call.first,
                   {.kind = PeerMessage::Kind::kCalled, .object = ObjectId{call.second}});
}

}  // namespace menger
