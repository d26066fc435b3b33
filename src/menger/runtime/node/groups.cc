#include "menger/runtime/node/groups.h"

#include <algorithm>
#include <utility>

#include "menger/runtime/calls/placement_group.h"
#include "menger/runtime/node/node_parts.h"

namespace menger {
namespace {

// So long calls are held back that need what a group waits for, where it has all once those that
// run are done: it would not come free all at once otherwise. Not for longer, since one call may
// wait for another without saying so.
constexpr std::string_view kRemoved = "the placement group was removed";
constexpr std::int64_t kPatience = 1'000'000'000;  // Nanoseconds.

}  // namespace

void Groups::Ask(Task& task) {
  auto group = std::make_unique<Group>();
  try {
    Reservation wanted = ReadReservation(task.spec->scheduling());
    group->strategy = wanted.strategy;
    group->bundles = std::move(wanted.bundles);
    for (const Resources& bundle : group->bundles) group->all.Add(bundle);
    SetPlaces(*group, std::vector<PeerIndex>(group->bundles.size()));
    CheckThatItMayBe(*group);
  } catch (const Error& error) {
    return node_.calls.SettleFailed(
        task, node_.notes.Describe(FailureKind::kException, error.code(), task, error.what()));
  }
  group->name = std::to_string(++last_);
  group->id = task.results.front()->id;
  group->reservation = &task;
  group->since = node_.now;
  node_.states.Enter(task.state, Task::State::kReady);
  waiting_.push_back(group.get());
  groups_.emplace(group->id, std::move(group));
}

const Group* Groups::Serve() {
  if (waiting_.empty() && moving_.empty()) return nullptr;
  const Group* waiting = nullptr;
  for (std::size_t i = 0; i < waiting_.size() && waiting == nullptr;) {
    Group& group = *waiting_[i];
    if (group.unanswered.empty() && node_.now >= group.again_at) {
      if (!TryToSetAside(group)) {
        const bool patient = node_.now < group.since + kPatience;
        if (patient && node_.scheduler.ComesFree(group.all)) waiting = &group;
      } else if (group.unanswered.empty()) {
        Commit(group);  // It waits no longer.
        continue;
      }
    }
    ++i;
  }
  MoveAll();
  node_.values.SpreadNews();
  return waiting;
}

std::optional<std::int64_t> Groups::PatienceEnds() const {
  std::optional<std::int64_t> next;
  for (const Group* const group : waiting_) {
    for (const std::int64_t time : {group->since + kPatience, group->again_at}) {
      if (node_.now < time) next = std::min(next.value_or(time), time);
    }
  }
  for (const Group* const group : moving_) {
    for (const std::int64_t time :
         {group->lost_at + node_.options.node_patience, group->again_at}) {
      if (node_.now < time) next = std::min(next.value_or(time), time);
    }
  }
  return next;
}

void Groups::Commit(Group& group) {
  std::erase(waiting_, &group);
  group.known_as.resize(group.bundles.size());
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    if (!group.IsHere(i)) group.known_as[i] = group.asked_as;
  }
  group.asked_as = 0;
  TaskResult result{.value = ObjectValue::Inline(Payload::Allocate(0)), .contained = {}};
  node_.calls.Settle(*group.reservation, {&result, 1});
}

// ---- Calls in a group.

SchedulingClass* Groups::ClassFor(const Task& task) {
  const ObjectId home = task.header().home;
  const auto found = groups_.find(home);
  if (found == groups_.end()) {
    const Object* const object = node_.objects.Find(home);
    if (object != nullptr && object->value.kind == ObjectValue::Kind::kError) return nullptr;
    throw InvalidArgument("the call names a placement group that is none");
  }
  const BundleNeed need = ReadBundleNeed(task.spec->scheduling());
  return &node_.scheduler.ClassIn(*found->second, need.need, need.bundle);
}

bool Groups::Lives(Task& task) {
  Object& home = *node_.objects.Find(task.header().home);
  if (home.value.kind != ObjectValue::Kind::kError) return true;
  node_.values.Await(task, home);
  return false;
}

void Groups::AwaitAgain(Task& task) {
  Object& home = *node_.objects.Find(task.header().home);
  if (home.state == Object::State::kFreed) {
    const std::string_view text = task.spec->scheduling();
    try {
      task.scheduling = &node_.scheduler.ClassFor(text.substr(0, text.rfind(" @")));
      return;
    } catch (const Error&) {
      node_.values.MakeAgain(home);  // It says that the group is lost.
    }
  }
  node_.values.Await(task, home);
}

// ---- The end of a group.

void Groups::Free(const Group& group) {
  std::erase(moving_, &group);
  node_.peers.GiveBackOf(group);
  ReleaseElsewhere(group);
  node_.scheduler.GiveBack(group);
}

void Groups::Release(const Object& object) {
  const auto found = groups_.find(object.id);
  if (found == groups_.end()) return;  // It was removed.
  const std::unique_ptr<Group> group = std::move(found->second);
  groups_.erase(found);
  Free(*group);
}

void Groups::Remove(Object& object) {
  const auto found = groups_.find(object.id);
  if (found == groups_.end()) return;
  End(object, FailureKind::kCancelled, ErrorCode::kCancelled, std::string(kRemoved));
  node_.values.SpreadNews();
}

// Its resources are free, and all that is in it ends.
void Groups::End(Object& object, FailureKind kind, ErrorCode code, const std::string& why) {
  const auto found = groups_.find(object.id);
  const std::unique_ptr<Group> group = std::move(found->second);
  groups_.erase(found);
  Task& reservation = *group->reservation;
  const Payload error = node_.notes.Describe(kind, code, reservation, why);
  node_.objects.Hold(object);
  if (std::erase(waiting_, group.get()) == 0) {
    node_.objects.Lose(object);
    node_.values.Fill(object, ObjectValue::Failed(error), {});
    EndActorsIn(object.id, why);
    while (Task* const task = node_.scheduler.CallIn(*group)) {
      node_.calls.End(*task, node_.notes.Describe(kind, code, *task, why), /*force=*/true);
    }
    Free(*group);
    object.producer = nullptr;
    node_.tasks.Return(&reservation);
  } else {
    if (!group->unanswered.empty()) Free(*group);
    node_.calls.SettleFailed(reservation, error);
  }
  node_.objects.Release(object);
}

void Groups::EndActorsIn(ObjectId group, std::string_view why) {
  std::vector<ActorId> actors;
  for (const auto& [id, actor] : node_.actors.all()) {
    if (actor->construction->header().home == group) actors.push_back(id);
  }
  for (const ActorId id : actors) {
    if (Actor* const actor = node_.actors.Find(id))
      node_.actors.Kill(*actor, /*may_restart=*/false, why);
  }
}

void Groups::FillStatus(NodeStatus& status) const {
  status.groups = groups_.size();
  status.groups_waiting = waiting_.size();
  for (const auto& [id, group] : groups_) {
    if (status.group_list.size() >= NodeStatus::kGroupsMax) return;
    NodeStatus::GroupStatus& one = status.group_list.emplace_back();
    one.id = ToString(id);
    one.state = "created";
    if (std::ranges::find(waiting_, group.get()) != waiting_.end()) {
      one.state = "waiting";
      continue;
    }
    for (const PeerIndex place : group->places) {
      const Peer* const peer = node_.peers.Find(place);
      auto& node = one.nodes.emplace_back();
      if (place == 0) node = "";
      if (peer != nullptr) node = ToString(peer->node);
      if (!node) one.state = "moving";
    }
  }
}

}  // namespace menger
