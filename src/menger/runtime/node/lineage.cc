#include "menger/runtime/node/lineage.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace menger {
namespace {

std::size_t BytesOf(const Task& task) {
  return sizeof(Task) + task.spec->bytes().size() +
         task.arguments.size() * sizeof(Object*);  // NOLINT: of the pointers.
}

// An actor, or a placement group, is never made again for the sake of a call that is known.
bool CanBeMadeAgain(const Object& object) {
  const Task* const task = object.producer;
  return task != nullptr && (task->kept_for > 0 || IsUnique(*task));
}

}  // namespace

bool IsUnique(const Task& task) {
  return task.header().kind == CallKind::kConstruct || task.header().kind == CallKind::kReserve;
}

// A value in a message is as safe as the node itself. One in shared memory may be lost.
bool Lineage::MayBeNeeded(const Task& task) {
  const SpecHeader& header = task.header();
  if (header.kind != CallKind::kFunction || header.retries == 0 || task.abandoned()) return false;
  return std::any_of(task.results.begin(), task.results.end(), [](const Object* result) {
    return result->value.kind == ObjectValue::Kind::kShared ||
           result->value.kind == ObjectValue::Kind::kSpilled ||
           result->value.kind == ObjectValue::Kind::kRemote;
  });
}

// Arguments that could not be made again stay as values: the small ones, and where a result lies on
// another node, which may die, all that are there. What another program owns is its affair.
void Lineage::Keep(Task& task, std::span<Object* const> results) {
  task.kept_for = task.header().results;
  const bool far = std::ranges::any_of(results, [](const Object* result) {
    return result->value.kind == ObjectValue::Kind::kRemote;
  });
  for (Object* const argument : task.arguments) {
    const ObjectValue::Kind kind = argument->value.kind;
    const bool small = kind == ObjectValue::Kind::kInline || kind == ObjectValue::Kind::kError;
    const bool is_there = argument->state == Object::State::kReady && !argument->foreign;
    const bool stays = small || (far && is_there);
    if (!stays || CanBeMadeAgain(*argument)) continue;
    objects_->Hold(*argument);
    task.held.push_back(argument);
  }
  for (Object* const argument : task.arguments) objects_->HoldLineage(*argument);
  for (Object* const argument : task.arguments) objects_->Release(*argument);
  kept_.PushBack(&task);
  bytes_ += BytesOf(task);
}

void Lineage::TakeOut(Task& task) {
  kept_.Remove(&task);
  bytes_ -= BytesOf(task);
  task.kept_for = 0;
  for (Object* const argument : task.arguments) objects_->Hold(*argument);
  for (Object* const argument : task.arguments) objects_->ReleaseLineage(*argument);
}

void Lineage::Drop(Task& task) {
  kept_.Remove(&task);
  bytes_ -= BytesOf(task);
  const std::vector<Object*> arguments = std::move(task.arguments);
  const std::vector<Object*> held = std::move(task.held);
  for (std::uint32_t i = 0; i < task.header().results; ++i) {
    Object* const result = objects_->Find(ResultOf(task.header().task, i));
    if (result != nullptr && result->producer == &task) result->producer = nullptr;
  }
  tasks_->Return(&task);
  for (Object* const argument : arguments) objects_->ReleaseLineage(*argument);
  for (Object* const object : held) objects_->Release(*object);
}

void Lineage::Bound(std::size_t bytes_max) {
  while (bytes_ > bytes_max) Drop(*kept_.front());
}

}  // namespace menger
