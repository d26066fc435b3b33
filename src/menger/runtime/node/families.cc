#include "menger/runtime/node/families.h"

#include <algorithm>
#include <utility>

namespace menger {

bool RunsAlike(const Task& task) {
  return task.actor != nullptr && task.actor->checkpoint_every > 0;
}

void EndRun(Task& task) {
  if (!RunsAlike(task)) ++task.run;
}

std::uint64_t CalleeOf(const TaskSpec& spec) {
  const SpecHeader& header = spec.header();
  TaskId hash = RunOf({{header.function.module, header.function.offset}}, header.results);
  const auto add = [&hash](std::uint64_t number) { hash = ChildTask(hash, number); };
  add(static_cast<std::uint64_t>(header.kind));
  add(header.callee);
  if (header.kind == CallKind::kMethod) add(header.actor.low);
  for (const SpecArgument& argument : spec.arguments()) add(argument.object.low);
  return std::max<std::uint64_t>(hash.low, 1);
}

Task* FindCaller(const Worker& worker, TaskId task) {
  for (Task* call = worker.outstanding.front(); call != nullptr; call = call->next) {
    if (call->header().task == task) return call;
  }
  return nullptr;
}

void HoldForFurtherRuns(Task& parent, Object& result, std::uint64_t callee, std::uint16_t name,
                        ObjectTable& objects) {
  result.callee = callee;
  result.callee_name = name;
  objects.Hold(result);
  parent.held.push_back(&result);
}

void AdoptChild(const Worker& worker, Task& child, ObjectTable& objects) {
  Task* const parent = FindCaller(worker, child.header().parent);
  if (parent == nullptr) return;
  if (parent->actor != nullptr) child.caller = parent->actor->id;
  child.parent = parent;
  child.older_sibling = std::exchange(parent->first_child, &child);
  if (child.older_sibling != nullptr) child.older_sibling->newer_sibling = &child;
  if (!RunsAlike(*parent)) return;
  const std::uint64_t callee = CalleeOf(*child.spec);
  for (Object* const result : child.results) {
    HoldForFurtherRuns(*parent, *result, callee, child.name, objects);
  }
}

void LeaveFamily(Task& task) {
  for (Task* child = std::exchange(task.first_child, nullptr); child != nullptr;) {
    Task& orphan = *std::exchange(child, child->older_sibling);
    orphan.parent = orphan.older_sibling = orphan.newer_sibling = nullptr;
  }
  if (task.parent == nullptr) return;
  Task*& before =
      task.newer_sibling != nullptr ? task.newer_sibling->older_sibling : task.parent->first_child;
  before = task.older_sibling;
  if (task.older_sibling != nullptr) task.older_sibling->newer_sibling = task.newer_sibling;
  task.parent = task.older_sibling = task.newer_sibling = nullptr;
}

std::vector<ObjectId> DescendantsOf(const Task& task) {
  std::vector<ObjectId> found;
  std::vector<const Task*> parents = {&task};
  while (!parents.empty()) {
    const Task* const parent = parents.back();
    parents.pop_back();
    for (const Task* child = parent->first_child; child != nullptr; child = child->older_sibling) {
      const CallKind kind = child->header().kind;
      if (kind != CallKind::kFunction && kind != CallKind::kMethod) continue;
      found.push_back(ResultOf(child->header().task, 0));
      parents.push_back(child);
    }
  }
  return found;
}

}  // namespace menger
