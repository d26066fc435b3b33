#include <algorithm>
#include <utility>

#include "menger/runtime/node_machine.h"

// The part of the node's logic that deals with a call and the calls that it makes: which of them a
// further run makes anew, and which are known from before.
//
// Names of nested calls begin with the run that makes them (RunOf), so each run makes its own and a
// retry gets past what failed under the run before it. Only calls of checkpointed actors do the
// same in every run, from the same state: what they call is done once, its results are held until a
// checkpoint covers the call, and a further run finds them.
namespace menger {

bool NodeMachine::RunsAlike(const Task& task) {
  return task.actor != nullptr && task.actor->checkpoint_every > 0;
}

void NodeMachine::EndRun(Task& task) {
  if (!RunsAlike(task)) ++task.run;
}

namespace {

// What is called and with which objects, as a number: that of one run against that of another.
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

}  // namespace

Task* NodeMachine::FindCaller(const Worker& worker, TaskId task) {
  for (Task* call = worker.outstanding.front(); call != nullptr; call = call->next) {
    if (call->header().task == task) return call;
  }
  return nullptr;
}

void NodeMachine::AdoptChild(const Worker& worker, Task& child) {
  Task* const parent = FindCaller(worker, child.header().parent);
  if (parent == nullptr) return;
  if (parent->actor != nullptr) child.caller = parent->actor->id;
  child.parent = parent;
  child.older_sibling = std::exchange(parent->first_child, &child);
  if (child.older_sibling != nullptr) child.older_sibling->newer_sibling = &child;
  if (!RunsAlike(*parent)) return;
  const std::uint64_t callee = CalleeOf(*child.spec);
  for (Object* const result : child.results) {
    result->callee = callee;
    result->callee_name = child.name;
    objects_.Hold(*result);
    parent->held.push_back(result);
  }
}

// It is over: its own calls go on without it.
void NodeMachine::LeaveFamily(Task& task) {
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

// All that it has called, by however many calls in between, and that is not done. Not the actors
// and placement groups: they live for as long as somebody refers to them.
std::vector<ObjectId> NodeMachine::DescendantsOf(const Task& task) {
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

// ---- Runs of a checkpointed actor.

// Whether an earlier run of the method that makes the call made it, too.
bool NodeMachine::KnowsCall(ProcessIndex process, const Worker& worker, const TaskSpec& spec) {
  if (worker.actor == nullptr || worker.actor->checkpoint_every == 0) return false;
  const SpecHeader& header = spec.header();
  ForgetStream(header);
  const Object* const first = objects_.Find(ResultOf(header.task, 0));
  if (first == nullptr || first->callee == 0) return false;
  if (first->callee != CalleeOf(spec)) {
    EndUnlike(*worker.actor, spec, *first);
    return true;
  }
  if (first->producer == nullptr && first->state != Object::State::kReady) return false;
  for (std::uint32_t i = 0; i < header.results; ++i) {
    objects_.AddReferrer(process, objects_.FindOrMake(ResultOf(header.task, i)));
  }
  return true;
}

// What others were told since the last checkpoint would not be so any longer.
void NodeMachine::EndUnlike(Actor& actor, const TaskSpec& spec, const Object& known) {
  const std::string before(events_.names()[known.callee_name]);
  const std::string now(spec.name().empty() ? effects_->NameOfFunction(spec.header().function)
                                            : spec.name());
  const TaskFailure failure{
      .kind = FailureKind::kActorDied,
      .code = ErrorCode::kFailedPrecondition,
      .text = fmt::format("a call of it that ran again called '{}'{} where it had called '{}': "
                          "methods of a checkpointed actor must do the same when they are given "
                          "the same",
                          now, now == before ? " with others" : "", before),
      .task = std::string(NameOf(*actor.construction))};
  ActorDead(actor, Encode(failure));
}

}  // namespace menger
