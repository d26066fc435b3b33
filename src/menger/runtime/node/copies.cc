#include "menger/runtime/node/copies.h"

#include <algorithm>
#include <limits>
#include <span>

#include "menger/runtime/node/node_parts.h"

namespace menger {
namespace {

constexpr std::ptrdiff_t kPullsMax = 2;  // Of one value, from one place at a time.
constexpr std::size_t kLookedAt = 4;     // Copies, the newest, for how long a value would take.
// Names that an owner gives; those that a node gives to what was made there have no such bit.
constexpr std::uint64_t kPullBit = std::uint64_t{1} << 63;

}  // namespace

bool Copies::IsAt(const Object& object, PeerIndex place) const {
  if (object.state != Object::State::kReady) return false;
  if (object.value.kind == ObjectValue::Kind::kInline) return true;
  if (place == 0) return object.value.kind == ObjectValue::Kind::kShared;
  return NameAt(object, place) != 0;
}

std::uint64_t Copies::NameAt(const Object& object, PeerIndex place) const {
  if (!object.elsewhere) return 0;
  for (const Copy& copy : places_.at(const_cast<Object*>(&object)).copies) {
    if (copy.place == place) return copy.name;
  }
  return 0;
}

double Copies::NanosecondsTo(const Object& object, PeerIndex place) const {
  if (IsAt(object, place)) return 0;
  const PeerIndex to = NodeOfPlace(place);
  std::span<const Copy> copies;
  if (object.elsewhere) copies = places_.at(const_cast<Object*>(&object)).copies;
  const bool here = object.value.kind != ObjectValue::Kind::kRemote || copies.empty();
  double pace = here ? paces_.Of(0, to) : std::numeric_limits<double>::max();
  for (const Copy& copy : copies.last(std::min(copies.size(), kLookedAt))) {
    pace = std::min(pace, paces_.Of(NodeOfPlace(copy.place), to));
  }
  return pace * static_cast<double>(object.value.extent.bytes);
}

Object* Copies::Find(std::uint64_t pull) const {
  const auto found = pulls_.find(pull);
  return found != pulls_.end() ? found->second : nullptr;
}

Copies::Places& Copies::PlacesOf(Object& object) {
  object.elsewhere = true;
  return places_[&object];
}

void Copies::Add(Object& object, PeerIndex place, std::uint64_t name) {
  PlacesOf(object).copies.push_back({place, name});
  of_node_[NodeOfPlace(place)].insert(&object);
  node_.drains.Lies(NodeOfPlace(place), object);
}

void Copies::Gone(Object& object, PeerIndex place) {
  if (!object.elsewhere) return;
  Places& places = places_.at(&object);
  std::erase_if(places.copies, [place](const Copy& copy) { return copy.place == place; });
  const bool here = object.value.kind != ObjectValue::Kind::kRemote;
  if (!here && places.copies.empty()) node_.values.Lose(object);
}

// ---- Pulls.

bool Copies::IsComing(const Places& places, PeerIndex place) {
  return std::ranges::find(places.wanting, place) != places.wanting.end() ||
         std::ranges::find(places.pulls, place, &Pull::to) != places.pulls.end();
}

void Copies::Bring(Object& object, PeerIndex place) {
  const ObjectValue::Kind kind = object.value.kind;
  const bool spilled = kind == ObjectValue::Kind::kSpilled;
  if (!spilled && kind != ObjectValue::Kind::kShared && kind != ObjectValue::Kind::kRemote) return;
  if (IsAt(object, place)) return;
  if (place == 0 && spilled) return node_.effects.Restore(object);
  if (place == 0 && object.foreign) return node_.foreign.Fetch(object);
  Places& places = PlacesOf(object);
  if (IsComing(places, place)) return;
  places.wanting.push_back(place);
  if (place != 0) of_node_[NodeOfPlace(place)].insert(&object);
  StartPulls(object, places);
}

void Copies::StartPulls(Object& object, Places& places) {
  const std::vector<PeerIndex> wanting = std::exchange(places.wanting, {});
  for (const PeerIndex to : wanting) {
    if (!StartPull(object, places, to)) places.wanting.push_back(to);
  }
  // Nobody can give it to those that want it but this node, once it is in memory here.
  if (!places.wanting.empty() && places.pulls.empty()) Bring(object, 0);
}

bool Copies::StartPull(Object& object, Places& places, PeerIndex to) {
  PeerIndex from = 0;
  if (!FindSource(object, places, to, from)) return false;
  const Pull pull{.name = kPullBit | ++last_pull_, .from = from, .to = to, .since = node_.now};
  places.pulls.push_back(pull);
  pulls_.emplace(pull.name, &object);
  if (from == 0) node_.objects.BeginRead(object);
  Order(object, pull, NameAt(object, from));
  return true;
}

// The one that serves fewest, the newest of these. What no node can give that has it comes by way
// of this one.
bool Copies::FindSource(const Object& object, const Places& places, PeerIndex to,
                        PeerIndex& from) const {
  std::vector<PeerIndex> sources;
  if (object.value.kind == ObjectValue::Kind::kShared) sources.push_back(0);
  for (const Copy& copy : places.copies) {
    const auto failed = std::ranges::find(places.failed, std::pair(copy.place, to));
    if (failed != places.failed.end()) continue;
    if (NodeOfPlace(copy.place) == NodeOfPlace(to)) {
      from = copy.place;  // Nothing need travel.
      return true;
    }
    sources.push_back(copy.place);
  }
  std::ptrdiff_t fewest = kPullsMax;
  for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
    const std::ptrdiff_t serves = std::ranges::count(places.pulls, *source, &Pull::from);
    if (serves >= fewest) continue;
    fewest = serves;
    from = *source;
  }
  return fewest < kPullsMax;
}

void Copies::Order(const Object& object, const Pull& pull, std::uint64_t name_there) {
  const Peer* const source = node_.peers.Find(NodeOfPlace(pull.from));
  if (pull.to == 0) {
    return node_.effects.Pull({.pull = pull.name,
                               .source = source,
                               .name = name_there,
                               .bytes = object.value.extent.bytes});
  }
  PeerMessage message{.kind = PeerMessage::Kind::kPull, .kept = pull.name};
  if (source != nullptr) {
    message.source = source->node;
    message.source_epoch = source->epoch;
    message.source_name = name_there;
  }
  message.bytes = object.value.extent.bytes;
  if ((pull.to & kOwnUse) != 0) message.object = object.id;
  message.clean = NodeOfPlace(pull.from) == NodeOfPlace(pull.to);
  node_.peers.Tell(NodeOfPlace(pull.to), message);
}

void Copies::EndPull(Object& object, Places& places, std::uint64_t name) {
  const auto pull = std::ranges::find(places.pulls, name, &Pull::name);
  if (pull->from == 0) node_.objects.EndRead(object);
  places.pulls.erase(pull);
  pulls_.erase(name);
}

bool Copies::Arrived(std::uint64_t pull, const SharedExtent& extent) {
  Object* const object = Find(pull);
  if (object == nullptr) return false;
  Places& places = places_.at(object);
  const auto [name, from, to, since] = *std::ranges::find(places.pulls, pull, &Pull::name);
  paces_.Note(NodeOfPlace(from), NodeOfPlace(to), object->value.extent.bytes, node_.now - since);
  EndPull(*object, places, name);
  if (to != 0) Add(*object, to, name);
  node_.objects.Hold(*object);
  if (to == 0) node_.values.Restored(*object, extent);
  if (object->elsewhere) StartPulls(*object, places_.at(object));
  if (to != 0) node_.values.TellWatches(*object);
  node_.objects.Release(*object);
  return true;
}

void Copies::Failed(std::uint64_t name) {
  Object* const object = Find(name);
  if (object == nullptr) return;
  Places& places = places_.at(object);
  const Pull pull = *std::ranges::find(places.pulls, name, &Pull::name);
  EndPull(*object, places, name);
  if (pull.from != 0 && pull.to != 0) places.failed.emplace_back(pull.from, pull.to);
  places.wanting.push_back(pull.to);
  StartPulls(*object, places);
}

// What a node wanted for its own use it knows of by itself.
void Copies::Refused(std::uint64_t name, const TaskFailure& cause) {
  Object* const object = Find(name);
  if (object == nullptr) return;
  Places& places = places_.at(object);
  const PeerIndex to = std::ranges::find(places.pulls, name, &Pull::name)->to;
  EndPull(*object, places, name);
  node_.objects.Hold(*object);
  if (to == 0) {
    // Others may have wanted it by way of this node; they would ask for that again.
    const std::size_t by_here =
        std::erase_if(places.wanting, [](PeerIndex place) { return (place & kOwnUse) == 0; });
    node_.values.NoRoom(*object, Encode(cause),
                        by_here == 0 ? std::optional<PeerIndex>(0) : std::nullopt);
  } else {
    if ((to & kOwnUse) == 0) node_.values.NoRoom(*object, Encode(cause), to);
    if (object->elsewhere) StartPulls(*object, places_.at(object));
  }
  node_.objects.Release(*object);
}

void Copies::Restored(Object& object) {
  if (object.elsewhere) StartPulls(object, places_.at(&object));
}

// ---- Ends.

// What a node has for its own use it drops when it likes.
bool Copies::MayBeLost(const Object& object) const {
  if (!object.elsewhere || object.foreign) return false;
  if (object.value.kind != ObjectValue::Kind::kRemote) return false;
  const Places& places = places_.at(const_cast<Object*>(&object));
  return std::ranges::all_of(places.copies, [this](const Copy& copy) {
    const Peer* const peer = node_.peers.Find(NodeOfPlace(copy.place));
    return (copy.place & kOwnUse) != 0 || peer == nullptr || peer->leaves;
  });
}

std::vector<ObjectId> Copies::LostWith(PeerIndex node) const {
  std::vector<ObjectId> lost;
  const auto found = of_node_.find(node);
  if (found == of_node_.end()) return lost;
  for (const Object* const object : found->second) {
    if (MayBeLost(*object)) lost.push_back(object->id);
  }
  return lost;
}

void Copies::Forget(Object& object) {
  if (!object.elsewhere) return;
  object.elsewhere = false;
  const auto found = places_.find(&object);
  Places places = std::move(found->second);
  places_.erase(found);
  while (!places.pulls.empty()) EndPull(object, places, places.pulls.back().name);
  for (const Copy& copy : places.copies) node_.peers.DropAt(NodeOfPlace(copy.place), copy.name);
  for (auto& [node, objects] : of_node_) objects.erase(&object);
}

void Copies::PeerDied(PeerIndex node, const TaskFailure& cause) {
  paces_.Forget(node);
  const auto found = of_node_.find(node);
  if (found == of_node_.end()) return;
  const Objects objects = std::move(found->second);
  of_node_.erase(found);
  for (Object* const object : objects) node_.objects.Hold(*object);
  for (Object* const object : objects) {
    if (object->elsewhere) ForgetNode(*object, node, cause);
  }
  for (Object* const object : objects) node_.objects.Release(*object);
}

// With all that was there: for its own use, too.
void Copies::ForgetNode(Object& object, PeerIndex node, const TaskFailure& cause) {
  Places& places = places_.at(&object);
  const auto is_there = [node](PeerIndex place) { return NodeOfPlace(place) == node; };
  std::erase_if(places.copies, [&](const Copy& copy) { return is_there(copy.place); });
  std::erase_if(places.wanting, is_there);
  const std::vector<Pull> pulls = places.pulls;
  for (const Pull& pull : pulls) {
    if (!is_there(pull.from) && !is_there(pull.to)) continue;
    EndPull(object, places, pull.name);
    if (!is_there(pull.to)) places.wanting.push_back(pull.to);
  }
  const bool here = object.value.kind != ObjectValue::Kind::kRemote || object.foreign;
  if (!here && places.copies.empty()) return node_.values.MakeAgain(object, &cause);
  StartPulls(object, places);
}

}  // namespace menger
