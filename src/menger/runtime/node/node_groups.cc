#include <algorithm>
#include <utility>

#include "menger/runtime/calls/placement_group.h"
#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that deals with placement groups. A reservation is a call that no
// worker does: its result is there when its resources are, and they are kept while somebody refers
// to it. Each call in the group waits for that result and holds it.
namespace menger {
namespace {

// So long calls are held back that need what a group waits for, where it has all once those that
// run are done: it would not come free all at once otherwise. Not for longer, since one call may
// wait for another without saying so.
constexpr std::string_view kRemoved = "the placement group was removed";
constexpr std::int64_t kPatience = 1'000'000'000;  // Nanoseconds.

}  // namespace

void NodeMachine::AskForGroup(Task& task) {
  auto group = std::make_unique<Group>();
  try {
    Reservation wanted = ReadReservation(task.spec->scheduling());
    if (wanted.strategy == PlacementStrategy::kStrictSpread && wanted.bundles.size() > 1) {
      throw InvalidArgument(
          "a placement group of {} bundles, each on a node of its own: there is 1",
          wanted.bundles.size());
    }
    group->bundles = std::move(wanted.bundles);
    for (const Resources& bundle : group->bundles) group->total.Add(bundle);
    const std::string missing = group->total.MissingFrom(options_.resources);
    if (!missing.empty()) {
      throw InvalidArgument("the node never has what the placement group needs: {}", missing);
    }
  } catch (const Error& error) {
    return SettleFailed(task, Describe(FailureKind::kException, error.code(), task, error.what()));
  }
  group->name = std::to_string(++last_group_);
  group->reservation = &task;
  group->since = now_;
  states_.Enter(task.state, Task::State::kReady);
  waiting_groups_.push_back(group.get());
  groups_.emplace(task.results.front()->id, std::move(group));
}

// Those that have waited for longest come first. One for which calls are to be held back; or null.
const Group* NodeMachine::ServeGroups() {
  const Group* waiting = nullptr;
  for (std::size_t i = 0; i < waiting_groups_.size() && waiting == nullptr;) {
    Group& group = *waiting_groups_[i];
    if (scheduler_.SetAside(group)) {
      waiting_groups_.erase(waiting_groups_.begin() + static_cast<std::ptrdiff_t>(i));
      TaskResult result{.value = ObjectValue::Inline(Payload::Allocate(0)), .contained = {}};
      Settle(*group.reservation, {&result, 1});
    } else {
      if (now_ < group.since + kPatience && scheduler_.ComesFree(group.total)) waiting = &group;
      ++i;
    }
  }
  SpreadNews();
  return waiting;
}

std::optional<std::int64_t> NodeMachine::PatienceEnds() const {
  for (const Group* const group : waiting_groups_) {
    if (now_ < group->since + kPatience) return group->since + kPatience;
  }
  return std::nullopt;
}

// ---- Calls in a group.

// Where it is to be scheduled; null if its group was removed: then its object has an error. Throws
// InvalidArgument if it asks for more than the group has.
SchedulingClass* NodeMachine::ClassInGroup(const Task& task) {
  const ObjectId home = task.header().home;
  const auto found = groups_.find(home);
  if (found == groups_.end()) {
    const Object* const object = objects_.Find(home);
    if (object != nullptr && object->value.kind == ObjectValue::Kind::kError) return nullptr;
    throw InvalidArgument("the call names a placement group that is none");
  }
  const BundleNeed need = ReadBundleNeed(task.spec->scheduling());
  return &scheduler_.ClassIn(*found->second, need.need, need.bundle);
}

// False if it was removed meanwhile: the error comes as one of an argument does.
bool NodeMachine::GroupLives(Task& task) {
  Object& home = *objects_.Find(task.header().home);
  if (home.value.kind != ObjectValue::Kind::kError) return true;
  AwaitArgument(task, home);
  return false;
}

// A call that is made again after everybody has left its group takes what it needs of the node.
void NodeMachine::AwaitGroupAgain(Task& task) {
  Object& home = *objects_.Find(task.header().home);
  if (home.state == Object::State::kFreed) {
    const std::string_view text = task.spec->scheduling();
    try {
      task.scheduling = &scheduler_.ClassFor(text.substr(0, text.rfind(" @")));
      return;
    } catch (const Error&) {
      MakeAgain(home);  // It says that the group is lost.
    }
  }
  AwaitArgument(task, home);
}

// ---- The end of a group.

// Nobody refers to it any longer; neither do calls.
void NodeMachine::ReleaseGroup(const Object& object) {
  const auto found = groups_.find(object.id);
  if (found == groups_.end()) return;  // It was removed.
  const std::unique_ptr<Group> group = std::move(found->second);
  groups_.erase(found);
  scheduler_.GiveBack(*group);
}

// Its resources are free, and its calls end: those that run, too, with their workers.
void NodeMachine::RemoveGroup(Object& object) {
  const auto found = groups_.find(object.id);
  if (found == groups_.end()) return;
  const std::unique_ptr<Group> group = std::move(found->second);
  groups_.erase(found);
  Task& reservation = *group->reservation;
  const Payload error =
      Describe(FailureKind::kCancelled, ErrorCode::kCancelled, reservation, std::string(kRemoved));
  objects_.Hold(object);
  if (std::erase(waiting_groups_, group.get()) == 0) {
    objects_.Lose(object);
    Fill(object, ObjectValue::Failed(error), {});
    EndActorsIn(object.id);
    while (Task* const task = scheduler_.CallIn(*group)) {
      End(*task,
          Describe(FailureKind::kCancelled, ErrorCode::kCancelled, *task, std::string(kRemoved)),
          /*force=*/true);
    }
    scheduler_.GiveBack(*group);
    object.producer = nullptr;
    tasks_.Return(&reservation);
  } else {
    SettleFailed(reservation, error);
  }
  objects_.Release(object);
  SpreadNews();
}

void NodeMachine::EndActorsIn(ObjectId group) {
  std::vector<ActorId> actors;
  for (const auto& [id, actor] : actors_) {
    if (actor->construction->header().home == group) actors.push_back(id);
  }
  for (const ActorId id : actors) {
    if (Actor* const actor = FindActor(id)) KillActor(*actor, /*may_restart=*/false, kRemoved);
  }
}

}  // namespace menger
