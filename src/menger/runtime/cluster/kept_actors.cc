#include "menger/runtime/cluster/kept_actors.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/cluster/name_directory.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kStoreMax{3};
constexpr std::chrono::seconds kTakeMax{30};         // To read all that is left.
constexpr std::chrono::milliseconds kReadyMax{100};  // What never is are other actors.
constexpr std::chrono::seconds kValuesMax{5};        // That lie elsewhere.

bool MayBeKept(const Actor& actor) {
  const SpecHeader& header = actor.construction->header();
  return header.detached && header.named && !header.home.valid();
}

ObjectId CheckpointOf(const Actor& actor) {
  return actor.checkpoint != nullptr ? actor.checkpoint->id : ObjectId();
}

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

struct KeptActors::Found {
  ActorId id;
  std::string name;
  std::uint32_t restarts = 0;
  ObjectId state;
};

namespace {

// What an actor is made of, and all that that names.
struct Parts {
  KeptActor actor;
  std::vector<ObjectHandle> handles;  // Of its objects; so none of them goes meanwhile.
  std::size_t bytes = 0;              // Of all values.
};

// Under the node's lock.
void Collect(LocalNode& node, NodeMachine& machine, const Actor& actor, Parts& parts) {
  const Task& construction = *actor.construction;
  const std::span<const std::byte> call = construction.spec->bytes();
  parts.actor.construction.assign(call.begin(), call.end());
  parts.actor.restarts = actor.restarts;
  parts.bytes = call.size();
  std::vector<Object*> found;
  std::set<const Object*> known;
  const auto find = [&](Object* object) {
    if (object != nullptr && known.insert(object).second) found.push_back(object);
  };
  for (std::uint32_t i = 0; i < construction.references; ++i) find(construction.arguments[i]);
  for (const ObjectId& id : construction.spec->contained()) find(machine.objects().Find(id));
  if (actor.checkpoint != nullptr) {
    find(actor.checkpoint);
    parts.actor.state = actor.checkpoint->id;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    Object& object = *found[i];
    machine.objects().AddReferrer(kDriver, object);
    parts.handles.push_back(node.NewObject(object.id));
    parts.bytes += object.value.payload.size() + object.value.extent.bytes;
    KeptObject& kept = parts.actor.objects.emplace_back(KeptObject{.name = machine.NameOf(object)});
    for (Object* const inner : object.contained) {
      kept.inner.push_back(inner->id);
      find(inner);
    }
  }
}

}  // namespace

KeptActors::KeptActors(LocalNode& node, const NodeLife& self, ControlStore& store,
                       RecordReader self_as_reader, const ProgramManifest& manifest)
    : node_(node),
      self_(self),
      store_(store),
      reader_(std::move(self_as_reader)),
      manifest_(Text(EncodeManifest(manifest))),
      program_(NameOf(manifest)) {}

std::string KeptActors::NameOf(const ProgramManifest& manifest) {
  ContentHasher hasher;
  hasher.Add(EncodeManifest(manifest));
  return ToHex(hasher.hash());
}

// Whose life is over changes nothing: another may have taken his place.
void KeptActors::Do(std::vector<StoreOperation> batch) {
  if (reader_.lease() == 0) throw Unavailable("this process is no longer one of the cluster");
  for (const StoreResult& result : RunBatch(store_, std::move(batch), Deadline::After(kStoreMax))) {
    if (result.error) throw Error(*result.error);
  }
}

// ---- What has changed.

bool KeptActors::Look() {
  // A store that has forgotten a lease, in a fail-over, may have forgotten more.
  if (const LeaseEpoch lease = reader_.lease(); lease != std::exchange(lease_, lease)) {
    for (auto& [id, kept] : kept_) kept.written = false;
  }
  try {
    for (const Found& found : FindChanged()) Write(found);
    ForgetDead();
    if (std::exchange(behind_, false)) LogInfo("the control store knows the detached actors again");
  } catch (const Error& error) {
    if (!std::exchange(behind_, true)) {
      LogWarning("what the control store keeps of detached actors is as it was: {}", error.what());
    }
  }
  return any_lives_;
}

std::vector<KeptActors::Found> KeptActors::FindChanged() {
  std::vector<Found> changed;
  node_.Tell([&](NodeMachine& machine) {
    living_.clear();
    any_lives_ = false;
    for (const auto& [id, actor] : machine.actors()) {
      if (actor->state == Actor::State::kDead) continue;
      any_lives_ = true;
      if (!MayBeKept(*actor)) continue;
      if (actor->restarts == 0 && !kept_.contains(id)) continue;
      living_.insert(id);
      if (HasChanged(*actor)) {
        changed.push_back({id, actor->name, actor->restarts, CheckpointOf(*actor)});
      }
    }
  });
  return changed;
}

bool KeptActors::HasChanged(const Actor& actor) const {
  // Its construction may fail, if it is the first.
  const bool is_made = actor.checkpoint != nullptr || actor.state != Actor::State::kPending;
  const auto found = kept_.find(actor.id);
  if (!is_made || found == kept_.end()) return is_made;
  const Kept& kept = found->second;
  return !kept.written || kept.state != CheckpointOf(actor) || kept.restarts != actor.restarts;
}

// ---- Into the store.

void KeptActors::Write(const Found& found) {
  Kept& kept = kept_[found.id];
  const std::string key = ToString(found.id);
  std::optional<KeptActor> actor;
  if (found.restarts > 0) actor = Read(found, kept);
  if (actor) {
    WriteRecords(key, kept, Encode(*actor));
  } else {
    Forget(key);
  }
  if (!kept.before.empty()) Forget(std::exchange(kept.before, ""));
  kept.written = true;
  kept.restarts = found.restarts;
  kept.state = found.state;
}

std::optional<KeptActor> KeptActors::Read(const Found& found, Kept& kept) {
  Parts parts;
  // What others own is asked for when it is wanted; what it names is known then.
  for (std::size_t known = 1; known != parts.handles.size();) {
    known = parts.handles.size();
    parts = Parts();
    node_.Tell([&](NodeMachine& machine) {
      const Actor* const actor = machine.FindActor(found.id);
      if (actor != nullptr) Collect(node_, machine, *actor, parts);
    });
    if (parts.handles.empty() || parts.bytes > kKeptActorBytesMax) break;
    node_.Wait(parts.handles, parts.handles.size(), Deadline::After(kReadyMax));
  }
  if (parts.bytes > kKeptActorBytesMax && !std::exchange(kept.too_large, true)) {
    LogWarning(
        "the actor '{}' does not outlive its owner: what it is made of has {} bytes, and the "
        "control store keeps {} at most",
        found.name, parts.bytes, kKeptActorBytesMax);
  }
  if (parts.actor.construction.empty() || parts.bytes > kKeptActorBytesMax) return std::nullopt;
  for (std::size_t i = 0; i < parts.handles.size(); ++i) {
    const std::span<const ObjectHandle> handle(&parts.handles[i], 1);
    if (node_.Wait(handle, 1, Deadline::After({})).empty()) continue;
    const Fetched fetched = node_.Get(handle, Deadline::After(kValuesMax));
    if (fetched.failed) continue;  // Whoever needs it fails as he would have.
    const std::span<const std::byte> bytes = fetched.values.front().bytes();
    parts.actor.objects[i].bytes.emplace(bytes.begin(), bytes.end());
  }
  parts.actor.lives = kept.lives;
  for (const KeptObject& object : parts.actor.objects) {
    if (parts.actor.state == object.name.object && !object.bytes) {
      throw DataLoss("the last checkpoint of the actor '{}' cannot be read", found.name);
    }
  }
  return std::move(parts.actor);
}

void KeptActors::WriteRecords(const std::string& key, const Kept& kept, std::string record) {
  const LeaseEpoch lease = reader_.lease();
  Do({StoreOperation::Put(StoreTable::kObjects, key, std::move(record)).BoundTo(lease)});
  if (kept.written) return;
  Do({StoreOperation::Put(StoreTable::kFunctions, program_, manifest_)});
  const KeptOwner owner{self_, program_, ActorId{*ParseId(key)}};
  Do({StoreOperation::Put(StoreTable::kActors, key, Encode(owner)).BoundTo(lease)});
}

void KeptActors::ForgetDead() {
  for (auto each = kept_.begin(); each != kept_.end();) {
    const auto entry = each++;
    if (living_.contains(entry->first)) continue;
    Forget(ToString(entry->first));
    if (!entry->second.before.empty()) Forget(entry->second.before);
    kept_.erase(entry);
  }
}

void KeptActors::Forget(const std::string& key) {
  Do({StoreOperation::Delete(StoreTable::kActors, key)});
  Do({StoreOperation::Delete(StoreTable::kObjects, key)});
}

void KeptActors::ForgetProgram() {
  const Deadline deadline = Deadline::After(kStoreMax);
  const std::vector<StoreResult> found =
      RunBatch(store_, {StoreOperation::Get(StoreTable::kFunctions, program_)}, deadline);
  if (found.front().error || found.front().record.version == 0) return;
  for (const StoreRecord& record : ScanAll(store_, StoreTable::kActors, "", deadline)) {
    const std::optional<KeptOwner> owner = DecodeKeptOwner(record.value);
    if (owner && owner->program == program_) return;
  }
  // Who has written it again has an actor since.
  Do({StoreOperation::DeleteIf(StoreTable::kFunctions, program_, found.front().record.version)});
}

// ---- Out of the store.

void KeptActors::TakeOver() {
  std::vector<Left> left;
  const Deadline deadline = Deadline::After(kTakeMax);
  for (StoreRecord& record : ScanAll(store_, StoreTable::kActors, "", deadline)) {
    std::optional<Left> found = ReadLeft(std::move(record), deadline);
    if (found) left.push_back(*std::move(found));
  }
  // Of one that was taken over, and whose new owner had not dropped the former one's records.
  std::ranges::stable_sort(left, std::greater<>(), [](const Left& one) { return one.actor.lives; });
  std::set<std::string, std::less<>> names;
  for (const Left& one : left) {
    const SpecPointer spec = TaskSpec::Copy(one.actor.construction);
    names.emplace(spec->name()).second ? Take(one) : Forget(one.record.key);
  }
}

std::optional<KeptActors::Left> KeptActors::ReadLeft(StoreRecord record, const Deadline& deadline) {
  const std::optional<KeptOwner> owner = DecodeKeptOwner(record.value);
  if (!owner || owner->program != program_ || Counts(record, owner->owner, reader_)) return {};
  const std::vector<StoreResult> found =
      RunBatch(store_, {StoreOperation::Get(StoreTable::kObjects, record.key)}, deadline);
  if (found.front().error) throw Error(*found.front().error);
  std::optional<KeptActor> actor = DecodeKeptActor(found.front().record.value);
  if (!actor) LogWarning("what the control store keeps as the actor {} is none", record.key);
  if (actor && HasItsName(record.key, *owner, *actor, deadline)) {
    return Left{std::move(record), *std::move(actor)};
  }
  Forget(record.key);
  return {};
}

// One that was killed, or whose name was lost to another, has it no longer: its owner may have been
// gone before he had forgotten it.
bool KeptActors::HasItsName(const std::string& key, const KeptOwner& owner, const KeptActor& actor,
                            const Deadline& deadline) {
  const SpecPointer spec = TaskSpec::Copy(actor.construction);
  const std::vector<StoreResult> found = RunBatch(
      store_, {StoreOperation::Get(StoreTable::kNames, KeyOfActor(spec->name()))}, deadline);
  if (found.front().error) throw Error(*found.front().error);
  const std::optional<NamedActor> holder = DecodeNamedActor(found.front().record.value);
  return holder && (ToString(holder->actor) == key || holder->actor == owner.actor);
}

// From here on it is this keeper's, and what others make of its name waits.
void KeptActors::Take(const Left& left) {
  const TaskId task = node_.Caller().NextCall();
  const KeptOwner owner{self_, program_, ActorOf(task)};
  const StoreRecord& record = left.record;
  const std::vector<StoreResult> taken = RunBatch(
      store_,
      {StoreOperation::PutIf(StoreTable::kActors, record.key, record.version, Encode(owner))
           .BoundTo(reader_.lease())},
      Deadline::After(kStoreMax));
  if (taken.front().error) throw Error(*taken.front().error);
  if (taken.front().done()) Make(left, task);
}

namespace {

// Makes the objects of an actor this node's own, under the names that they had: their owner may be
// there, but nobody has told him that they are still needed. What has no value stays another's.
class Objects {
 public:
  Objects(LocalNode& node, const KeptActor& actor) : node_(node) {
    for (const KeptObject& object : actor.objects) kept_[object.name.object] = &object;
    for (const KeptObject& object : actor.objects) Know(object);
  }

 private:
  ObjectHandle Know(const KeptObject& object) {
    const ObjectId id = object.name.object;
    const auto known = known_.find(id);
    if (known != known_.end()) return known->second;
    known_.emplace(id, ObjectHandle());  // Whose value leads to itself is not named there.
    return known_[id] = object.bytes ? Put(object) : Refer(object.name);
  }

  ObjectHandle Put(const KeptObject& object) {
    std::vector<ObjectHandle> inner;
    for (const ObjectId& id : object.inner) {
      if (ObjectHandle handle = Know(*kept_.at(id)); handle.valid()) {
        inner.push_back(std::move(handle));
      }
    }
    return node_.PutAs(
        object.name.object, object.bytes->size(),
        [&object](std::span<std::byte> bytes) { std::ranges::copy(*object.bytes, bytes.begin()); },
        inner);
  }

  ObjectHandle Refer(const ForeignName& name) {
    node_.Tell([&name](NodeMachine& machine) { machine.Refer(kDriver, name); });
    return node_.NewObject(name.object);
  }

  LocalNode& node_;
  std::map<ObjectId, const KeptObject*> kept_;
  std::map<ObjectId, ObjectHandle> known_;
};

// The same call, as one of this process's own.
SpecPointer MakeAnew(const KeptActor& kept, TaskId task, TaskId parent) {
  std::vector<std::byte> bytes = kept.construction;
  SpecHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.task = task;
  header.parent = parent;
  header.actor = ActorOf(task);
  header.restarts = static_cast<std::uint16_t>(kept.restarts - 1);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return TaskSpec::Copy(bytes);
}

}  // namespace

void KeptActors::Make(const Left& left, TaskId task) {
  const KeptActor& kept = left.actor;
  const Objects objects(node_, kept);  // Until the call holds them.
  SpecPointer spec = MakeAnew(kept, task, node_.Caller().task);
  const std::string name(spec->name());
  node_.Tell([&](NodeMachine& machine) {
    machine.Submit(kDriver, std::move(spec));
    Actor* const actor = machine.FindActor(ActorOf(task));
    if (actor != nullptr && kept.state) {
      machine.BeginWith(*actor, *machine.objects().Find(*kept.state));
    }
  });
  // As a program that drops what it was given: the actor lives without.
  const ObjectHandle stands_for = node_.NewObject(ResultOf(task, 0));
  kept_[ActorOf(task)] = {.lives = kept.lives + 1, .before = left.record.key};
  LogInfo("the actor '{}', whose owner is gone, {}", name,
          kept.state ? "goes on from its last checkpoint" : "is made again");
}

}  // namespace menger
