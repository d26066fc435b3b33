#include "menger/runtime/node/foreign_objects.h"

#include <algorithm>
#include <string>
#include <utility>

#include "menger/runtime/node/node_parts.h"

// What a node knows of objects that others own. What an owner does is in foreign_objects_owner.cc,
// calls of others' actors are in foreign_calls.cc.
namespace menger {

ForeignObjects::Record* ForeignObjects::Find(const Object& object) {
  return const_cast<Record*>(std::as_const(*this).Find(object));
}

const ForeignObjects::Record* ForeignObjects::Find(const Object& object) const {
  if (!object.foreign) return nullptr;
  return &records_.at(&object);
}

void ForeignObjects::Tell(const Record& record, const PeerMessage& message) {
  if (record.owner != 0) node_.peers.Tell(record.owner, message);
}

ForeignName ForeignObjects::NameOf(const Object& object) const {
  const Record* const record = Find(object);
  if (record == nullptr) return {object.id, node_.options.node, node_.options.epoch};
  return {object.id, record->life.first, record->life.second};
}

bool ForeignObjects::IsOwn(const ForeignName& name) const {
  return Life(name.node, name.epoch) == Life(node_.options.node, node_.options.epoch);
}

bool ForeignObjects::IsRegistered(const Object& object) const {
  const Record* const record = Find(object);
  return record == nullptr || record->asked == 0;
}

bool ForeignObjects::IsOrphan(const Object& object) const {
  const Record* const record = Find(object);
  return record != nullptr && record->orphan;
}

// ---- From the first name to the last reference.

Object& ForeignObjects::Refer(ProcessIndex process, const ForeignName& name) {
  Object& object = Learn(nullptr, name);
  node_.objects.AddReferrer(process, object);
  node_.objects.Release(object);
  node_.values.SpreadNews();
  return object;
}

// The object of that name, held. `from`: who has told it; null for whoever does not count.
Object& ForeignObjects::Learn(const Peer* from, const ForeignName& name) {
  Object& object = node_.objects.FindOrMake(name.object);
  node_.objects.Hold(object);
  const Life life(name.node, name.epoch);
  if (IsOwn(name)) {
    const bool unknown = object.state == Object::State::kPending && object.producer == nullptr &&
                         object.referrers == 0 && object.holds == 1 && object.lineage == 0;
    if (unknown) Fail(object, FailureKind::kObjectLost, "it is known no longer");
    return object;
  }
  const bool counted = from != nullptr && life == Life(from->node, from->epoch);
  if (!object.foreign && object.state == Object::State::kReady) {
    // What an owner left who is gone (kept_actors.h), and others have it, too: here it is this
    // node's own.
    if (counted) {
      node_.peers.Tell(from->index,
                       {.kind = PeerMessage::Kind::kForget, .count = 1, .object = object.id});
    }
    return object;
  }
  Record* record = Find(object);
  if (record == nullptr) {
    MakeForeign(object, name);
    if (IsOver(life)) {
      Bereave(object);
      return object;
    }
    record = Find(object);
    if (!counted) Register(object, *record);
  } else if (record->orphan && IsMetAgain(object, *record) && !counted) {
    Register(object, *record);
  }
  if (counted) ++record->owed;
  WakeUp(object);
  return object;
}

void ForeignObjects::MakeForeign(Object& object, const ForeignName& name) {
  object.foreign = true;
  Record& record = records_[&object];
  record.life = {name.node, name.epoch};
  const Peer* const owner = node_.peers.FindLife(name.node, name.epoch);
  record.owner = owner != nullptr ? owner->index : 0;
  (owner != nullptr ? of_owner_[owner->index] : of_stranger_[record.life]).insert(&object);
}

// Its owner, which had been taken for dead. What is lost stays so while somebody here refers to it.
bool ForeignObjects::IsMetAgain(Object& object, Record& record) {
  const Peer* const owner = node_.peers.FindLife(record.life.first, record.life.second);
  if (owner == nullptr) return false;
  record.orphan = false;
  record.owner = owner->index;
  of_owner_[owner->index].insert(&object);
  return true;
}

void ForeignObjects::Register(Object& object, Record& record) {
  ++record.owed;
  ++record.asked;
  node_.objects.Hold(object);
  Tell(record, {.kind = PeerMessage::Kind::kRefer, .object = object.id});
}

void ForeignObjects::Referred(const PeerMessage& message) {
  Object* const object = node_.objects.Find(message.object);
  Record* const record = object != nullptr ? Find(*object) : nullptr;
  if (record == nullptr || record->asked == 0) return;
  if (!message.clean) {
    --record->owed;
    Fail(*object, FailureKind::kObjectLost, "its owner knows it no longer");
  }
  --record->asked;
  Settle(*object, *record);
  node_.objects.Release(*object);
  node_.values.SpreadNews();
}

// Its owner knows, or will never, that this node refers to it: what was kept so long is not needed.
void ForeignObjects::Settle(Object& object, Record& record) {
  if (record.asked > 0) return;
  node_.objects.Hold(object);
  const std::vector<Object*> brought_by = std::exchange(record.brought_by, {});
  const std::vector<ForeignCall> waiting = std::exchange(record.waiting, {});
  for (const ForeignCall& call : waiting) Answered(call);
  for (const auto& [index, id] : std::exchange(record.untold, {})) {
    Peer* const peer = node_.peers.Find(index);
    Object* const value = node_.objects.Find(id);
    if (peer != nullptr && value != nullptr && node_.objects.IsReferredBy(peer->process, *value)) {
      TellWhenReady(*peer, *value);
    }
  }
  std::vector<PeerIndex> owners;
  for (const auto& [owner, calls] : calls_) owners.push_back(owner);
  for (const PeerIndex owner : owners) MakeCalls(owner);
  for (Object* const other : brought_by) node_.objects.Release(*other);
  node_.objects.Release(object);
}

void ForeignObjects::Fail(Object& object, FailureKind kind, const std::string& text) {
  if (object.state != Object::State::kPending) return;
  node_.values.Fill(object,
                    ObjectValue::Failed(Encode(
                        {.kind = kind,
                         .code = ErrorCode::kDataLoss,
                         .text = fmt::format("object {} is lost: {}", ToString(object.id), text)})),
                    {});
}

void ForeignObjects::Forgotten(Object& object) {
  const auto found = records_.find(&object);
  const Record record = std::move(found->second);
  records_.erase(found);
  if (record.owner != 0) {
    of_owner_[record.owner].erase(&object);
  } else if (const auto stranger = of_stranger_.find(record.life); stranger != of_stranger_.end()) {
    stranger->second.erase(&object);
    if (stranger->second.empty()) of_stranger_.erase(stranger);
  }
  if (record.rests) Tell(record, {.kind = PeerMessage::Kind::kDismiss, .object = object.id});
  if (record.owed == 0) return;
  Tell(record, {.kind = PeerMessage::Kind::kForget, .count = record.owed, .object = object.id});
}

void ForeignObjects::LetRest(Object& object) {
  Record& record = *Find(object);
  if (record.owed == 0) return;
  Tell(record, {.kind = PeerMessage::Kind::kForget,
                .clean = !record.rests,
                .count = std::exchange(record.owed, 0),
                .object = object.id});
  record.rests = true;
  record.wanted = record.fetching = false;
}

void ForeignObjects::WakeUp(Object& object) {
  Record& record = *Find(object);
  if (!record.rests || record.owed > 0) return;
  Register(object, record);
  record.rests = false;
  Tell(record, {.kind = PeerMessage::Kind::kDismiss, .object = object.id});
}

// ---- Its value.

void ForeignObjects::Ask(Object& object) {
  Record& record = *Find(object);
  if (record.orphan) return FailOrphan(object);
  if (std::exchange(record.wanted, true)) return;
  Tell(record, {.kind = PeerMessage::Kind::kAsk, .object = object.id});
}

void ForeignObjects::Fetch(Object& object) {
  Record& record = *Find(object);
  if (std::exchange(record.fetching, true)) return;
  Tell(record, {.kind = PeerMessage::Kind::kFetch, .object = object.id});
}

void ForeignObjects::ValueCame(Peer& owner, const PeerMessage& message) {
  if (HoldEnd(owner, message)) return;
  Object* const object = node_.objects.Find(message.object);
  Record* const record = object != nullptr ? Find(*object) : nullptr;
  const bool wanted = record != nullptr && record->owner == owner.index;
  if (wanted) node_.objects.Hold(*object);
  std::vector<Object*> inner;
  std::vector<ObjectId> ids;
  for (const ForeignName& name : message.references) {
    const bool counted = Life(name.node, name.epoch) == Life(owner.node, owner.epoch);
    if (!wanted && !counted) continue;
    inner.push_back(&Learn(&owner, name));
    ids.push_back(name.object);
    Record* const learnt = Find(*inner.back());
    if (!wanted || learnt == nullptr || learnt->asked == 0) continue;
    node_.objects.Hold(*object);
    learnt->brought_by.push_back(object);
  }
  if (wanted) {
    record->wanted = false;
    // It was made again, and is a small one now.
    const bool otherwise = object->state == Object::State::kReady &&
                           object->value.kind == ObjectValue::Kind::kRemote &&
                           message.value.kind != ObjectValue::Kind::kRemote;
    if (otherwise) node_.objects.Lose(*object);
    if (message.value.kind != ObjectValue::Kind::kRemote) record->fetching = false;
    node_.values.Fill(*object, message.value, ids);
    node_.objects.Release(*object);
  }
  for (Object* const one : inner) node_.objects.Release(*one);
  node_.values.SpreadNews();
  TellEnds(owner);
}

// Whoever asks for it again has it asked for anew.
void ForeignObjects::Refused(Peer& owner, std::uint64_t pull, const TaskFailure& cause) {
  const auto found = owner.own_pulls.find(pull);
  if (found == owner.own_pulls.end()) return;
  Object* const object = node_.objects.Find(found->second);
  owner.own_pulls.erase(found);
  Record* const record = object != nullptr ? Find(*object) : nullptr;
  if (record == nullptr || record->owner != owner.index) return;
  record->fetching = false;
  node_.values.NoRoom(*object, Encode(cause));
}

bool ForeignObjects::Arrived(Peer& owner, std::uint64_t pull, const ObjectValue& value) {
  const auto found = owner.own_pulls.find(pull);
  if (found == owner.own_pulls.end()) return false;
  const ObjectId id = found->second;
  owner.own_pulls.erase(found);
  Object* const object = node_.objects.Find(id);
  Record* const record = object != nullptr ? Find(*object) : nullptr;
  if (record == nullptr || record->owner != owner.index) return false;
  record->fetching = false;
  if (object->state != Object::State::kReady || object->value.kind != ObjectValue::Kind::kRemote)
    return false;
  record->copy = pull;
  owner.own_copies.emplace(pull, id);
  node_.values.Restored(*object, value.extent);
  node_.values.SpreadNews();
  return true;
}

Object* ForeignObjects::FindCopy(const Peer& owner, std::uint64_t kept) const {
  const auto found = owner.own_copies.find(kept);
  if (found == owner.own_copies.end()) return nullptr;
  Object* const object = node_.objects.Find(found->second);
  const bool here = object != nullptr && (object->value.kind == ObjectValue::Kind::kShared ||
                                          object->value.kind == ObjectValue::Kind::kSpilled);
  return here ? object : nullptr;
}

bool ForeignObjects::CopyIsNoSource(Peer& owner, std::uint64_t kept) {
  return owner.own_copies.erase(kept) > 0;
}

void ForeignObjects::Freed(Object& object) {
  Record& record = *Find(object);
  const std::uint64_t copy = std::exchange(record.copy, 0);
  Peer* const owner = node_.peers.Find(record.owner);
  if (copy == 0 || owner == nullptr || owner->own_copies.erase(copy) == 0) return;
  Tell(record, {.kind = PeerMessage::Kind::kGone, .kept = copy, .object = object.id});
}

// ---- Lives of nodes.

bool ForeignObjects::IsOver(const Life& life) const {
  const bool own = life.first == node_.options.node && life.second < node_.options.epoch;
  return own || over_.contains(life) ||
         std::ranges::any_of(node_.peers.all(), [&life](const auto& entry) {
           return entry.second->node == life.first && entry.second->epoch > life.second;
         });
}

void ForeignObjects::Meet(const Peer& peer) {
  over_.erase({peer.node, peer.epoch});
  if (of_stranger_.empty()) return;
  const auto found = of_stranger_.find({peer.node, peer.epoch});
  if (found == of_stranger_.end()) return;
  const Objects objects = std::move(found->second);
  of_stranger_.erase(found);
  for (Object* const object : objects) {
    Record& record = *Find(*object);
    record.owner = peer.index;
    of_owner_[peer.index].insert(object);
    for (std::uint32_t i = 0; i < record.asked; ++i) {
      Tell(record, {.kind = PeerMessage::Kind::kRefer, .object = object->id});
    }
    if (record.wanted) Tell(record, {.kind = PeerMessage::Kind::kAsk, .object = object->id});
  }
}

std::vector<ForeignName> ForeignObjects::Strangers() const {
  std::vector<ForeignName> strangers;
  for (const auto& [life, objects] : of_stranger_) {
    strangers.push_back({.object = {}, .node = life.first, .epoch = life.second});
  }
  return strangers;
}

void ForeignObjects::LifeIsOver(NodeId node, std::uint64_t epoch) {
  over_.emplace(node, epoch);
  const auto found = of_stranger_.find({node, epoch});
  if (found == of_stranger_.end()) return;
  const Objects objects = std::move(found->second);
  of_stranger_.erase(found);
  for (Object* const object : objects) node_.objects.Hold(*object);
  for (Object* const object : objects) Bereave(*object);
  for (Object* const object : objects) node_.objects.Release(*object);
  node_.values.SpreadNews();
}

void ForeignObjects::PeerDied(const Peer& dead) {
  DropStreamsOf(dead.index);
  LifeIsOver(dead.node, dead.epoch);
  std::erase_if(unanswered_, [&](const auto& call) { return call.first.first == dead.index; });
  std::vector<ForeignCall> calls;
  for (const auto& [call, references] : made_) {
    if (call.first == dead.index) calls.push_back(call);
  }
  for (const ForeignCall& call : calls) LetGo(call);
  if (auto unmade = calls_.extract(dead.index)) {
    for (const Call& call : unmade.mapped()) {
      for (Object* const object : call.references) node_.objects.Release(*object);
    }
  }
  if (const auto resting = rest_.find(dead.index); resting != rest_.end()) {
    const Objects objects = std::move(resting->second);
    rest_.erase(resting);
    for (Object* const object : objects) node_.objects.Hold(*object);
    for (Object* const object : objects) node_.objects.ReleaseLineage(*object);
    for (Object* const object : objects) node_.objects.Release(*object);
  }
  const auto found = of_owner_.find(dead.index);
  if (found == of_owner_.end()) return;
  const Objects objects = std::move(found->second);
  of_owner_.erase(found);
  for (Object* const object : objects) node_.objects.Hold(*object);
  for (Object* const object : objects) Bereave(*object);
  for (Object* const object : objects) node_.objects.Release(*object);
}

// A value that is here stays; what is not is an error, also for whoever is told of it later.
void ForeignObjects::Bereave(Object& object) {
  Record& record = *Find(object);
  std::uint32_t asked = std::exchange(record.asked, 0);
  Settle(object, record);
  const bool elsewhere =
      object.state == Object::State::kReady && object.value.kind == ObjectValue::Kind::kRemote;
  if (elsewhere) node_.objects.Lose(object);
  record = {.life = record.life, .orphan = true};
  FailOrphan(object);
  for (; asked > 0; --asked) node_.objects.Release(object);
}

void ForeignObjects::FailOrphan(Object& object) {
  Fail(object, FailureKind::kOwnerDied, "the process that owned it is gone");
}

}  // namespace menger
