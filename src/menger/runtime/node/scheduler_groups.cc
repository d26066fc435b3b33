#include <algorithm>
#include <string>

#include "menger/base/error.h"
#include "menger/runtime/node/scheduler.h"

// The part of the scheduler that deals with placement groups. What a group has is taken from what
// the node has and comes back as resources with other names, which only its calls ask for: so they
// are scheduled as all others are.
namespace menger {
namespace {

std::string BundleOf(const Group& group, std::size_t bundle) {
  return fmt::format("{}.{}", group.name, bundle);
}

Resources Within(std::string_view owner, const Resources& amounts) {
  Resources inside;
  for (const Resources::Named& amount : amounts.amounts()) {
    inside.Set(fmt::format("{}@{}", amount.name, owner), amounts.Get(amount.name));
  }
  return inside;
}

// A call takes what it needs of its bundle also of the group: one that needs it of any bundle sees
// only what all have left together.
Resources Within(const Group& group, std::size_t bundle) {
  Resources inside = Within(group.name, group.bundles[bundle]);
  inside.Add(Within(BundleOf(group, bundle), group.bundles[bundle]));
  return inside;
}

Resources AllWithin(const Group& group) {
  Resources inside;
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    if (group.IsHere(i)) inside.Add(Within(group, i));
  }
  return inside;
}

// None of the bundles that they may take from is here.
bool IsForeign(const SchedulingClass& scheduling) {
  const Group& group = *scheduling.group;
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    const bool may = scheduling.bundle < 0 || scheduling.bundle == static_cast<int>(i);
    if (may && group.IsHere(i) && group.bundles[i].Contains(scheduling.wish)) return false;
  }
  return true;
}

void LookWhatIsHere(const auto& classes, const Group& group) {
  for (const auto& scheduling : classes) {
    if (scheduling->group == &group) scheduling->foreign = IsForeign(*scheduling);
  }
}

void CheckBundle(const Group& group, const Resources& need, int bundle) {
  if (bundle < 0) {
    const auto has = [&need](const Resources& one) { return one.Contains(need); };
    if (std::any_of(group.bundles.begin(), group.bundles.end(), has)) return;
    throw InvalidArgument("no bundle of its placement group has all that the call needs: {}",
                          need.MissingFrom(group.bundles.front()));
  }
  if (static_cast<std::size_t>(bundle) >= group.bundles.size()) {
    throw InvalidArgument("bundle {} of a placement group that has {}", bundle,
                          group.bundles.size());
  }
  const Resources& has = group.bundles[static_cast<std::size_t>(bundle)];
  if (has.Contains(need)) return;
  throw InvalidArgument("bundle {} of its placement group has not what the call needs: {}", bundle,
                        need.MissingFrom(has));
}

}  // namespace

bool Scheduler::SetAside(const Group& group) {
  if (!Reserve(group.total)) return false;
  const Resources inside = AllWithin(group);
  total_.Add(inside);
  available_.Add(inside);
  LookWhatIsHere(classes_, group);
  return true;
}

bool Scheduler::SetAside(Group& group, const std::vector<std::size_t>& bundles) {
  Resources wanted;
  for (const std::size_t bundle : bundles) wanted.Add(group.bundles[bundle]);
  if (!Reserve(wanted)) return false;
  for (const std::size_t bundle : bundles) {
    const Resources inside = Within(group, bundle);
    total_.Add(inside);
    available_.Add(inside);
    group.places[bundle] = 0;
  }
  group.total.Add(wanted);
  LookWhatIsHere(classes_, group);
  return true;
}

Resources Scheduler::FreeOfIdle() {
  ReclaimIdle();
  return available_;
}

void Scheduler::ReturnBundles(const Group& group) {
  const Resources inside = AllWithin(group);
  total_.Erase(inside);
  available_.Erase(inside);
  available_.Add(group.total);
}

void Scheduler::GiveBack(const Group& group) {
  ReturnBundles(group);
  for (const auto& scheduling : classes_) {
    if (scheduling->group != &group) continue;
    class_by_text_.erase(scheduling->text);
    // A thread that still does a call of it has nothing to give back then.
    scheduling->need = Resources();
    scheduling->group = nullptr;
    spare_classes_.push_back(scheduling.get());
  }
}

void Scheduler::LeaveGroup(const Group& group, Worker& lent) {
  if (lent.serving != nullptr && lent.serving->group == &group) lent.serving = &nothing_;
}

bool Scheduler::ComesFree(const Resources& need) const {
  Resources free = available_;
  for (const Worker* const worker : all_) {
    if (worker->serving != nullptr && !worker->blocked()) free.Add(worker->serving->need);
  }
  return free.Contains(need);
}

SchedulingClass& Scheduler::ClassIn(const Group& group, const Resources& need, int bundle) {
  CheckBundle(group, need, bundle);
  Resources inside = Within(group.name, need);
  if (bundle >= 0) inside.Add(Within(BundleOf(group, static_cast<std::size_t>(bundle)), need));
  // Named also where nothing is needed: it is to be where the bundle is.
  std::string text =
      bundle < 0 ? "@" + group.name : "@" + BundleOf(group, static_cast<std::size_t>(bundle));
  for (const Resources::Named& amount : inside.amounts()) {
    text += fmt::format(" {}={}", amount.name, amount.parts);
  }
  const auto known = class_by_text_.find(text);
  if (known != class_by_text_.end()) return *known->second;
  SchedulingClass& made = NewClass(text, std::move(inside));
  made.was_elsewhere = false;
  made.group = &group;
  made.bundle = bundle;
  made.wish = need;
  made.foreign = IsForeign(made);
  return made;
}

Task* Scheduler::CallIn(const Group& group) const {
  for (const auto& scheduling : classes_) {
    if (scheduling->group != &group) continue;
    if (Task* const task = Front(*scheduling)) return task;
    for (const auto* const workers : {&scheduling->workers, &scheduling->blocked}) {
      for (const Worker* const worker : *workers) {
        for (Task* task = worker->outstanding.front(); task != nullptr; task = task->next) {
          if (!task->abandoned()) return task;
        }
      }
    }
  }
  return nullptr;
}

}  // namespace menger
