#include <algorithm>
#include <utility>

#include "menger/base/error.h"
#include "menger/runtime/simulation/simulated_node.h"

// The driver's part of a simulation: makes calls at random, and knows what each must give.
namespace menger::simulation {
namespace {

constexpr std::size_t kHeldMax = 12;

}  // namespace

void SimulatedNode::DriverStep() {
  if (held_.size() >= kHeldMax) return DriverDrop();
  if (common_.meets && OneIn(4)) return DriverGive();
  switch (Draw(15)) {
    case 0:
    case 1:
    case 2:
      return DriverCall();
    case 3:
    case 4:
    case 5:
    case 6:
      return DriverMethod();
    case 7:
      return DriverCreate();
    case 8:
      return DriverPut();
    case 9:
    case 10:
      return DriverGet();
    case 11:
      return DriverLose();
    case 12:
      return DriverCancel();
    case 13:
      return DriverReserve();
    default:
      return DriverDrop();
  }
}

// Each life of each node is a job of its own.
TaskId SimulatedNode::Root() const {
  return RootTask(1 + static_cast<std::uint64_t>(number_) + 16 * epoch_);
}

int SimulatedNode::Pick(SlotKind kind) {
  const std::size_t first =
      held_.empty() ? 0 : static_cast<std::size_t>(Draw(static_cast<int>(held_.size())));
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const std::size_t index = (first + i) % held_.size();
    const SlotKind is = held_[index].reference.kind;
    const bool fits = kind == SlotKind::kValue ? is != SlotKind::kActor : is == kind;
    if (fits) return static_cast<int>(index);
  }
  return -1;
}

void SimulatedNode::DriverDrop() {
  if (held_.empty()) return;
  const auto index = static_cast<std::size_t>(Draw(static_cast<int>(held_.size())));
  // An actor does not go at once: it is more interesting than a value.
  const bool keep =
      held_[index].watched || (held_[index].reference.kind == SlotKind::kActor && !OneIn(4));
  if (!keep) Drop(index);
}

void SimulatedNode::Submit(SpecHeader header, const CallContent& content,
                           const std::vector<ObjectId>& values, KnownPointer known, SlotKind kind) {
  header.parent = Root();
  header.task = ChildTask(header.parent, ++driver_calls_);
  Reference result{.object = ResultOf(header.task, 0), .kind = kind};
  if (header.kind == CallKind::kConstruct) header.actor = result.actor = ActorOf(header.task);
  Complete(header);
  SpecPointer spec = MakeSpec(header, values, content, NeedsOf(header));
  checker_.Called(*spec);
  machine_.Submit(kDriver, std::move(spec));
  held_.push_back({.reference = result, .known = std::move(known)});
}

ObjectId SimulatedNode::Reserve(std::string_view bundles) {
  const SpecHeader header{.kind = CallKind::kReserve,
                          .task = ChildTask(Root(), ++driver_calls_),
                          .parent = Root(),
                          .retries = 0};
  SpecBuilder builder(header, 0, {}, bundles, "group", 0);
  machine_.Submit(kDriver, builder.Finish());
  ++counts_.groups;
  return ResultOf(header.task, 0);
}

ObjectId SimulatedNode::ReserveSlots() {
  return Reserve(common_.spread ? "SPREAD;slot=1;slot=1" : "PACK;slot=1");
}

// It lives while calls in it do, or ends with them at once.
void SimulatedNode::LeaveGroup(ObjectId group) {
  Object& object = *machine_.objects().Find(group);
  if (plan_.cancels > 0 && OneIn(2)) {
    --plan_.cancels;
    ++counts_.removed;
    machine_.Cancel(object, /*force=*/false);
  }
  machine_.objects().DropReferrer(kDriver, object);
}

// Of all CPUs, but not to be used: other calls have to wait a little.
void SimulatedNode::DriverReserve() {
  if (plan_.workers == 0) return;
  LeaveGroup(Reserve(fmt::format("PACK;cpu={}", 1 + Draw(plan_.workers))));
}

void SimulatedNode::DriverCall() {
  CallContent content{.seed = random_.NextUint64(), .depth = static_cast<std::uint64_t>(Draw(4))};
  std::vector<ObjectId> values;
  std::vector<KnownPointer> known_values;
  std::vector<KnownPointer> known_given;
  for (int i = Draw(3); i > 0; --i) {
    const int index = Pick(SlotKind::kValue);
    if (index < 0) continue;
    values.push_back(held_[static_cast<std::size_t>(index)].reference.object);
    known_values.push_back(held_[static_cast<std::size_t>(index)].known);
  }
  for (int i = Draw(4); i > 0 && !held_.empty(); --i) {
    const Held& held = held_[static_cast<std::size_t>(Draw(static_cast<int>(held_.size())))];
    content.given.push_back(held.reference);
    known_given.push_back(held.known);
  }
  KnownPointer known = Interpret(content.seed, static_cast<int>(content.depth), known_values,
                                 known_given, /*method=*/false);
  const bool grouped = plan_.workers > 0 && OneIn(5);
  const ObjectId group = grouped ? ReserveSlots() : ObjectId();
  Submit({.kind = CallKind::kFunction, .home = group}, content, values, known, SlotKind::kValue);
  if (group.valid()) LeaveGroup(group);
}

void SimulatedNode::DriverMethod() {
  const int actor = Pick(SlotKind::kActor);
  if (actor < 0) return;
  const Reference target = held_[static_cast<std::size_t>(actor)].reference;
  CallContent content{.seed = random_.NextUint64(), .depth = static_cast<std::uint64_t>(Draw(3))};
  std::vector<ObjectId> values;
  std::vector<KnownPointer> known_values;
  std::vector<KnownPointer> known_given;
  const int value = Pick(SlotKind::kValue);
  if (value >= 0) {
    values.push_back(held_[static_cast<std::size_t>(value)].reference.object);
    known_values.push_back(held_[static_cast<std::size_t>(value)].known);
  }
  const int plain = Pick(SlotKind::kPlain);
  if (plain >= 0) {
    content.given.push_back(held_[static_cast<std::size_t>(plain)].reference);
    known_given.push_back(held_[static_cast<std::size_t>(plain)].known);
  }
  KnownPointer known = Interpret(content.seed, static_cast<int>(content.depth), known_values,
                                 known_given, /*method=*/true);
  Submit({.kind = CallKind::kMethod, .actor = target.actor, .home = target.object}, content, values,
         known, SlotKind::kValue);
}

void SimulatedNode::DriverCreate() {
  auto known = std::make_shared<Known>();
  known->kind = SlotKind::kActor;
  const bool grouped = plan_.workers > 0 && OneIn(5);
  const ObjectId group = grouped ? ReserveSlots() : ObjectId();
  Submit({.kind = CallKind::kConstruct, .home = group}, {.seed = random_.NextUint64()}, {}, known,
         SlotKind::kActor);
  if (group.valid()) LeaveGroup(group);
}

void SimulatedNode::DriverPut() {
  const std::uint64_t seed = random_.NextUint64();
  Value value{.fold = Mix(seed)};
  std::vector<ObjectId> contained;
  std::vector<KnownPointer> known;
  const int inner = OneIn(2) ? Pick(SlotKind::kValue) : -1;
  if (inner >= 0) {
    const Held& held = held_[static_cast<std::size_t>(inner)];
    value.references.push_back(held.reference);
    contained.push_back(held.reference.object);
    known.push_back(held.known);
  }
  const ObjectId id = ResultOf(ChildTask(Root(), ++driver_calls_), 0);
  machine_.Put(kDriver, id, MakeValue(0, Encode(value)), contained);
  held_.push_back(
      {.reference = {.object = id, .kind = inner >= 0 ? SlotKind::kValue : SlotKind::kPlain},
       .known = InterpretPut(seed, known)});
}

void SimulatedNode::DriverGet() {
  const int index = Pick(SlotKind::kValue);
  if (index < 0) return;
  Held& held = held_[static_cast<std::size_t>(index)];
  if (held.watched) return;
  held.watched = true;
  Object& object = *machine_.objects().Find(held.reference.object);
  if (machine_.WatchObject({kDriver, 1}, object, /*with_value=*/true)) {
    return Check(held_[static_cast<std::size_t>(index)], object);
  }
  Object* const awaited[] = {&object};
  held.wait = machine_.BeginDriverWait(awaited);
}

void SimulatedNode::Check(Held& held, const Object& object) {
  held.watched = false;
  ended_waits_.push_back(std::exchange(held.wait, 0));
  const bool failed = object.value.kind == ObjectValue::Kind::kError;
  if (!failed) {
    const Value value = DecodeValue(Read(object.value).bytes());
    if (held.known->failed)
      throw Internal("{} has a value and should have failed", ToString(object.id));
    if (value.fold != held.known->fold) throw Internal("{} has a wrong value", ToString(object.id));
    ++counts_.values;
    return;
  }
  const TaskFailure failure = DecodeFailure(object.value.payload);
  const std::string root = RootOf(failure);
  const bool expected = held.known->failed && root == "exception";
  if (!expected && (!common_.errors || root == "exception")) {
    throw Internal("{} failed: {}; at the root: {}", ToString(object.id), failure.ToString(), root);
  }
  ++counts_.errors;
}

void SimulatedNode::DriverCancel() {
  if (plan_.cancels == 0 || held_.empty()) return;
  const Held& held = held_[static_cast<std::size_t>(Draw(static_cast<int>(held_.size())))];
  --plan_.cancels;
  machine_.Cancel(*machine_.objects().Find(held.reference.object), /*force=*/OneIn(2));
}

// A value in shared memory that only references need: it is gone.
void SimulatedNode::DriverLose() {
  if (plan_.losses == 0) return;
  for (const Held& held : held_) {
    Object& object = *machine_.objects().Find(held.reference.object);
    if (object.value.kind != ObjectValue::Kind::kShared || object.holds > 0 || OneIn(2)) continue;
    if (object.foreign) continue;  // It is its owner's to make again.
    --plan_.losses;
    return machine_.Lose(object);
  }
}

// Keeps it until the other node is known to have it.
void SimulatedNode::DriverGive() {
  if (neighbours_.empty() || held_.empty()) return;
  const Held& held = held_[static_cast<std::size_t>(Draw(static_cast<int>(held_.size())))];
  auto to = neighbours_.begin();
  std::advance(to, Draw(static_cast<int>(neighbours_.size())));
  Object& object = *machine_.objects().Find(held.reference.object);
  if (!machine_.IsRegistered(object)) return;
  machine_.objects().AddReferrer(kDriver, object);
  given_.push_back({to->second.peer, object.id});
  ++counts_.given;
  Send(to->second.peer, [name = machine_.NameOf(object), reference = held.reference,
                         known = held.known](SimulatedNode& taker, PeerIndex giver) {
    taker.TakeGift(giver, name, reference, known);
  });
}

void SimulatedNode::Drop(std::size_t index) {
  const ObjectId id = held_[index].reference.object;
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
  machine_.objects().DropReferrer(kDriver, *machine_.objects().Find(id));
}

}  // namespace menger::simulation
