#include "menger/runtime/object_table.h"

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

void ObjectTable::DropReferrer(ProcessIndex process, Object& object) {
  if (process != kDriver) {
    Uses& uses = uses_[process];
    const auto use = uses.find(&object);
    if (use == uses.end() || use->second.references == 0) return;
    if (--use->second.references == 0 && use->second.pins == 0) uses.erase(use);
  }
  --object.referrers;
  Settle(object);
}

void ObjectTable::Pin(ProcessIndex process, Object& object) {
  ++object.pins;
  ++object.holds;
  if (process != kDriver) ++uses_[process][&object].pins;
}

void ObjectTable::Unpin(ProcessIndex process, Object& object) {
  if (process != kDriver) {
    Uses& uses = uses_[process];
    const auto use = uses.find(&object);
    if (use == uses.end() || use->second.pins == 0) return;
    if (--use->second.pins == 0 && use->second.references == 0) uses.erase(use);
  }
  --object.pins;
  Release(object);
}

void ObjectTable::DropProcess(ProcessIndex process) {
  const auto found = uses_.find(process);
  if (found == uses_.end()) return;
  const Uses uses = std::move(found->second);
  uses_.erase(found);
  for (const auto& [object, use] : uses) {
    object->pins -= use.pins;
    object->holds -= use.pins;
    object->referrers -= use.references;
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
  object.state = Object::State::kReady;
  object.value = std::move(value);
  object.contained.reserve(contained.size());
  for (const ObjectId id : contained) {
    Object& inner = FindOrMake(id);
    Hold(inner);
    object.contained.push_back(&inner);
  }
  return true;
}

void ObjectTable::Lose(Object& object) {
  object.state = Object::State::kPending;
  ++object.holds;  // So that it outlives what it drops.
  DropValue(object);
  Release(object);
}

void ObjectTable::DropValue(Object& object) {
  if (object.value.kind != ObjectValue::Kind::kNone) listener_->OnFreed(object.value);
  object.value = ObjectValue();
  for (Object* const inner : std::exchange(object.contained, {})) {
    --inner->holds;
    Queue(*inner);
  }
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
    if (next.state == Object::State::kReady) {
      next.state = Object::State::kFreed;
      ++next.lineage;  // So that it outlives what it drops.
      DropValue(next);
      --next.lineage;
    }
    if (next.lineage != 0) continue;
    Task* const producer = next.producer;
    by_id_.Erase(&next);
    pool_.Return(&next);
    if (producer != nullptr) listener_->OnForgotten(*producer);
  }
  settling_ = false;
}

}  // namespace menger
