#include "menger/runtime/node/object_table.h"

#include <algorithm>
#include <utility>

namespace menger {

Object& ObjectTable::FindOrMake(ObjectId id) {
  if (Object* const known = by_id_.Find(id)) return *known;
  Object* const object = pool_.Make();
  object->id = id;
  by_id_.Insert(object);
  return *object;
}

void ObjectTable::AddReferrer(ProcessIndex process, Object& object) {
  ++object.referrers;
  if (process != kDriver) ++uses_[process][&object].references;
}

bool ObjectTable::Drop(ProcessIndex process, Object& object, std::uint32_t Use::*uses) {
  if (process == kDriver) return true;
  const auto all = uses_.find(process);
  if (all == uses_.end()) return false;
  const auto use = all->second.find(&object);
  if (use == all->second.end() || use->second.*uses == 0) return false;
  --(use->second.*uses);
  if (use->second == Use()) all->second.erase(use);
  return true;
}

void ObjectTable::DropReferrer(ProcessIndex process, Object& object) {
  if (!Drop(process, object, &Use::references)) return;
  --object.referrers;
  Settle(object);
}

void ObjectTable::Pin(ProcessIndex process, Object& object) {
  BeginRead(object);
  ++object.holds;
  if (process != kDriver) ++uses_[process][&object].pins;
}

void ObjectTable::Unpin(ProcessIndex process, Object& object) {
  if (!Drop(process, object, &Use::pins)) return;
  EndRead(object);
  Release(object);
}

void ObjectTable::AddWatch(const Watch& watch, Object& object) {
  ++object.holds;
  object.watches.push_back(watch);
  if (watch.process != kDriver) ++uses_[watch.process][&object].watches;
}

void ObjectTable::DropWatch(const Watch& watch, Object& object) {
  const auto found = std::find(object.watches.begin(), object.watches.end(), watch);
  if (found == object.watches.end()) return;
  object.watches.erase(found);
  Drop(watch.process, object, &Use::watches);
  Release(object);
}

std::vector<Watch> ObjectTable::TakeWatches(Object& object) {
  std::vector<Watch> watches = std::exchange(object.watches, {});
  for (const Watch& watch : watches) Drop(watch.process, object, &Use::watches);
  object.holds -= static_cast<std::uint32_t>(watches.size());
  return watches;
}

void ObjectTable::DropProcess(ProcessIndex process) {
  const auto found = uses_.find(process);
  if (found == uses_.end()) return;
  const Uses uses = std::move(found->second);
  uses_.erase(found);
  for (const auto& [object, use] : uses) {
    SetPins(*object, object->pins - use.pins);
    object->holds -= use.pins + use.watches;
    object->referrers -= use.references;
    std::erase_if(object->watches,
                  [process](const Watch& watch) { return watch.process == process; });
  }
  // Only now: settling one may free another of them.
  for (const auto& [object, use] : uses) ++object->holds;
  for (const auto& [object, use] : uses) Release(*object);
}

void ObjectTable::Release(Object& object) {
  --object.holds;
  Settle(object);
}

void ObjectTable::ReleaseLineage(Object& object) {
  --object.lineage;
  Settle(object);
}

bool ObjectTable::Fill(Object& object, ObjectValue value, std::span<const ObjectId> contained) {
  if (object.state != Object::State::kPending) return false;
  states_->Enter(object.state, Object::State::kReady);
  object.value = std::move(value);
  List(object);
  // Of a value that is made again they are the same, and were held meanwhile.
  const std::vector<Object*> before = std::exchange(object.contained, {});
  object.contained.reserve(contained.size());
  for (const ObjectId id : contained) {
    Object& inner = FindOrMake(id);
    Hold(inner);
    object.contained.push_back(&inner);
  }
  for (Object* const inner : before) Release(*inner);
  return true;
}

void ObjectTable::Lose(Object& object) {
  states_->Enter(object.state, Object::State::kPending);
  if (object.value.kind != ObjectValue::Kind::kNone) listener_->OnFreed(object);
  Unlist(object);
  object.value = ObjectValue();
}

void ObjectTable::DropValue(Object& object) {
  if (object.value.kind != ObjectValue::Kind::kNone) listener_->OnFreed(object);
  Unlist(object);
  object.value = ObjectValue();
  for (Object* const inner : std::exchange(object.contained, {})) {
    --inner->holds;
    Queue(*inner);
  }
}

// ---- Where values lie.

ObjectValue ObjectTable::Move(Object& object, ObjectValue value) {
  Unlist(object);
  std::swap(object.value, value);
  List(object);
  return value;
}

void ObjectTable::SetPins(Object& object, std::uint32_t pins) {
  if ((object.pins == 0) == (pins == 0)) {
    object.pins = pins;
    return;
  }
  Unlist(object);
  object.pins = pins;
  List(object);
}

bool ObjectTable::IsListed(const Object& object) {
  return object.value.kind == ObjectValue::Kind::kShared && !object.value.extent.is_shown();
}

void ObjectTable::List(Object& object) {
  if (!IsListed(object)) return;
  (object.pins == 0 ? unread_ : read_).PushBack(&object);
}

void ObjectTable::Unlist(Object& object) {
  if (!IsListed(object)) return;
  (object.pins == 0 ? unread_ : read_).Remove(&object);
}

std::vector<ObjectTable::Read> ObjectTable::LargestRead(std::size_t count) const {
  std::vector<Read> largest;
  for (const Object* object = read_.front(); object != nullptr; object = object->next) {
    largest.push_back({.object = object});
  }
  const auto bytes = [](const Read& read) { return read.object->value.extent.bytes; };
  std::sort(largest.begin(), largest.end(),
            [bytes](const Read& a, const Read& b) { return bytes(a) > bytes(b); });
  largest.resize(std::min(largest.size(), count));
  for (Read& read : largest) {
    for (const auto& [process, uses] : uses_) {
      const auto use = uses.find(const_cast<Object*>(read.object));
      if (use == uses.end() || use->second.pins == 0) continue;
      read.pins.emplace_back(process, use->second.pins);
    }
  }
  return largest;
}

void ObjectTable::Queue(Object& object) {
  if (object.referrers != 0 || object.holds != 0 || object.unsettled) return;
  object.unsettled = true;
  unsettled_.push_back(&object);
}

// A list, not recursion: a chain of values that contain each other may be of any length.
void ObjectTable::Settle(Object& object) {
  Queue(object);
  if (settling_) return;
  settling_ = true;
  while (!unsettled_.empty()) {
    Object& next = *unsettled_.back();
    unsettled_.pop_back();
    next.unsettled = false;
    if (next.referrers != 0 || next.holds != 0) continue;
    const bool had_value = next.state == Object::State::kReady;
    if (had_value) {
      states_->Enter(next.state, Object::State::kFreed);
      ++next.lineage;  // So that it outlives what it drops.
      listener_->OnUnneeded(next);
      DropValue(next);
      --next.lineage;
    }
    if (next.lineage != 0) {
      if (next.foreign) listener_->OnForeignUnneeded(next);
      continue;
    }
    if (!had_value) DropValue(next);  // What a lost one referred to.
    if (next.foreign) listener_->OnForeignForgotten(next);
    Task* const producer = next.producer;
    by_id_.Erase(&next);
    pool_.Return(&next);
    if (producer != nullptr) listener_->OnForgotten(*producer);
  }
  settling_ = false;
}

}  // namespace menger
