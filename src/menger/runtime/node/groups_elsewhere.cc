#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "menger/base/error.h"
#include "menger/runtime/node/node_parts.h"

// The part of Groups that puts bundles on nodes.
namespace menger {
namespace {

constexpr std::int64_t kPauseMin = 1'000'000;  // Until others are asked again. Nanoseconds.
constexpr std::int64_t kPauseMax = 1'000'000'000;

// Without what is set aside.
std::string TextOf(const Resources& resources) {
  std::string text;
  for (const Resources::Named& amount : resources.amounts()) {
    if (amount.name.find('@') != std::string::npos) continue;
    text +=
        fmt::format("{}{}={}", text.empty() ? "" : " ", amount.name, resources.Get(amount.name));
  }
  return text;
}

std::uint64_t ReadNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InvalidArgument("'{}' is no number", text);
  }
  return number;
}

// What lies before the mark, which goes with it.
std::string_view Cut(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

}  // namespace

// ---- The owner: which bundle where.

std::vector<Groups::Node> Groups::Nodes(bool in_all) {
  std::vector<Node> nodes;
  nodes.push_back({.free = in_all ? node_.options.resources : node_.scheduler.FreeOfIdle()});
  for (const auto& [index, peer] : node_.peers.all()) {
    if (peer->leaves) continue;
    nodes.push_back(
        {.index = index, .free = in_all ? peer->total : peer->free.value_or(peer->total)});
  }
  return nodes;
}

void Groups::CheckThatItMayBe(Group& group) {
  const bool apart = group.strategy == PlacementStrategy::kStrictSpread && group.bundles.size() > 1;
  const bool fits = !apart && node_.options.resources.Contains(group.all);
  const bool more_may_come = node_.options.node_patience > 0;
  if (fits || more_may_come) return;
  const std::vector<Node> nodes = Nodes(/*in_all=*/true);
  if (Place(group, nodes)) return;
  if (apart && group.bundles.size() > nodes.size()) {
    throw InvalidArgument("a placement group of {} bundles, each on a node of its own: there {} {}",
                          group.bundles.size(), nodes.size() == 1 ? "is" : "are", nodes.size());
  }
  const std::string missing = group.all.MissingFrom(nodes.front().free);
  throw InvalidArgument("the node{} never ha{} what the placement group needs: {}",
                        nodes.size() == 1 ? "" : "s", nodes.size() == 1 ? "s" : "ve", missing);
}

// Chooses places for all bundles; false if there are none now.
bool Groups::Place(Group& group, std::vector<Node> nodes) {
  using enum PlacementStrategy;
  if (group.strategy == kPack || group.strategy == kStrictPack) {
    for (const Node& node : nodes) {
      if (!node.free.Contains(group.all)) continue;
      SetPlaces(group, std::vector<PeerIndex>(group.bundles.size(), node.index));
      return true;
    }
    if (group.strategy == kStrictPack) return false;
  }
  std::vector<PeerIndex> places;
  for (const Resources& bundle : group.bundles) {
    Node* const node = NodeFor(group, bundle, nodes);
    if (node == nullptr) return false;
    node->free.Subtract(bundle);
    ++node->bundles;
    places.push_back(node->index);
  }
  SetPlaces(group, std::move(places));
  return true;
}

Groups::Node* Groups::NodeFor(const Group& group, const Resources& bundle,
                              std::vector<Node>& nodes) {
  Node* best = nullptr;
  for (Node& node : nodes) {
    if (!node.free.Contains(bundle)) continue;
    if (group.strategy == PlacementStrategy::kPack) return &node;
    if (group.strategy == PlacementStrategy::kStrictSpread && node.bundles > 0) continue;
    if (best == nullptr || node.bundles < best->bundles) best = &node;
  }
  return best;
}

void Groups::SetPlaces(Group& group, std::vector<PeerIndex> places) {
  group.places = std::move(places);
  group.total = Resources();
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    if (group.IsHere(i)) group.total.Add(group.bundles[i]);
  }
}

// Here at once; others are asked.
bool Groups::TryToSetAside(Group& group) {
  if (node_.peers.all().empty()) {  // There is no choice.
    if (group.total != group.all) SetPlaces(group, std::vector<PeerIndex>(group.bundles.size()));
    return node_.scheduler.SetAside(group);
  }
  if (!Place(group, Nodes(/*in_all=*/false))) {
    DoubtOthers(group);
    return false;
  }
  if (!node_.scheduler.SetAside(group)) return false;
  for (const PeerIndex place : group.places) {
    const bool known = std::ranges::find(group.unanswered, place) != group.unanswered.end();
    if (place != 0 && !known) group.unanswered.push_back(place);
  }
  if (group.unanswered.empty()) return true;
  group.asked_as = ++last_asked_;
  TellPlaces(group, PeerMessage::Kind::kReserve);
  return true;
}

void Groups::TellPlaces(const Group& group, PeerMessage::Kind kind) {
  std::map<PeerIndex, std::string> texts;
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    if (group.IsHere(i)) continue;
    std::string& text = texts[group.places[i]];
    text += fmt::format("{}{};{}", text.empty() ? "" : ";", i, TextOf(group.bundles[i]));
  }
  const bool reserve = kind == PeerMessage::Kind::kReserve;
  for (const auto& [place, text] : texts) {
    node_.peers.Tell(place, {.kind = kind, .kept = group.asked_as, .text = reserve ? text : ""});
  }
}

Group* Groups::FindAsked(std::uint64_t number) {
  for (const auto& [id, group] : groups_) {
    if (group->asked_as == number && number != 0) return group.get();
  }
  return nullptr;
}

void Groups::Answered(Peer& peer, const PeerMessage& message) {
  const bool reserved = message.kind == PeerMessage::Kind::kReserved;
  if (!reserved) {
    try {
      peer.free = Resources::Parse(message.text);
    } catch (const Error&) {
      peer.free.reset();
    }
  }
  Group* const group = FindAsked(message.kept);
  if (group == nullptr || std::erase(group->unanswered, peer.index) == 0) return;
  if (!reserved) return GiveUp(*group);
  if (group->unanswered.empty()) Commit(*group);
  node_.values.SpreadNews();
}

Resources Groups::Elsewhere() const {
  Resources elsewhere;
  for (const auto& [id, group] : groups_) {
    if (group->asked_as == 0 || !group->unanswered.empty()) continue;
    for (std::size_t i = 0; i < group->bundles.size(); ++i) {
      if (!group->IsHere(i)) elsewhere.Add(group->bundles[i]);
    }
  }
  return elsewhere;
}

// For now: what is set aside already might be what another group waits for.
void Groups::GiveUp(Group& group) {
  TellPlaces(group, PeerMessage::Kind::kRelease);
  node_.scheduler.ReturnBundles(group);
  group.asked_as = 0;
  group.unanswered.clear();
  Pause(group);
  // What it said that it had may be otherwise then.
  for (const auto& [index, peer] : node_.peers.all()) {
    if (group.pause >= kPauseMax / 8) peer->free.reset();
  }
}

void Groups::Pause(Group& group) const {
  group.pause = std::clamp(2 * group.pause, kPauseMin, kPauseMax);
  group.again_at = node_.now + group.pause;
}

// There is no place by what they said that they had, and who is not asked again says nothing new.
void Groups::DoubtOthers(Group& group) {
  bool any = false;
  for (const auto& [index, peer] : node_.peers.all()) {
    any |= std::exchange(peer->free, std::nullopt).has_value();
  }
  if (any) Pause(group);
}

// ---- Calls in bundles on other nodes.

bool Groups::IsAt(const SchedulingClass& scheduling, const Peer& peer) {
  const Group& group = *scheduling.group;
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    const bool may = scheduling.bundle < 0 || scheduling.bundle == static_cast<int>(i);
    if (may && group.places[i] == peer.index && group.bundles[i].Contains(scheduling.wish))
      return true;
  }
  return false;
}

std::string Groups::NameFor(const SchedulingClass& scheduling) {
  return fmt::format("@{} {} {}", scheduling.group->asked_as, scheduling.bundle,
                     TextOf(scheduling.wish));
}

SchedulingClass* Groups::OwnClass(std::string_view name) {
  name.remove_prefix(1);
  const Group* const group = FindAsked(ReadNumber(Cut(name, ' ')));
  if (group == nullptr || !group->unanswered.empty()) return nullptr;
  const std::string_view bundle = Cut(name, ' ');
  return &node_.scheduler.ClassIn(*group, Resources::Parse(name),
                                  bundle == "-1" ? -1 : static_cast<int>(ReadNumber(bundle)));
}

SchedulingClass* Groups::ClassOf(const Peer& owner, std::string_view name) {
  name.remove_prefix(1);
  const auto found = owner.groups.find(ReadNumber(Cut(name, ' ')));
  if (found == owner.groups.end()) return nullptr;
  const std::string_view bundle = Cut(name, ' ');
  return &node_.scheduler.ClassIn(*found->second, Resources::Parse(name),
                                  bundle == "-1" ? -1 : static_cast<int>(ReadNumber(bundle)));
}

// ---- Who has bundles of another's group.

void Groups::ReserveFor(Peer& owner, const PeerMessage& message) {
  auto group = std::make_unique<Group>();
  group->name = fmt::format("{}-{}", owner.index, message.kept);
  bool has_room = false;
  try {
    std::string_view text = message.text;
    while (!text.empty()) {
      const std::uint64_t bundle = ReadNumber(Cut(text, ';'));
      if (bundle >= kBundlesMax) throw InvalidArgument("bundle {}", bundle);
      if (bundle >= group->bundles.size()) {
        group->bundles.resize(bundle + 1);
        group->places.resize(bundle + 1, owner.index);
      }
      group->bundles[bundle] = Resources::Parse(Cut(text, ';'));
      group->places[bundle] = 0;
    }
    SetPlaces(*group, std::move(group->places));
    has_room = !node_.drains.begun() && !owner.groups.contains(message.kept) &&
               node_.scheduler.SetAside(*group);
  } catch (const Error&) {
    has_room = false;  // It is none, or takes this node for another than it is.
  }
  if (has_room) owner.groups.emplace(message.kept, std::move(group));
  node_.peers.Tell(owner.index, {.kind = has_room ? PeerMessage::Kind::kReserved
                                                  : PeerMessage::Kind::kNotReserved,
                                 .kept = message.kept,
                                 .text = has_room ? "" : TextOf(node_.scheduler.FreeOfIdle())});
}

void Groups::ReleaseOf(Peer& owner, std::uint64_t number) {
  const auto found = owner.groups.find(number);
  if (found == owner.groups.end()) return;  // It had no room.
  for (const auto& [loan, worker] : owner.lent) node_.scheduler.LeaveGroup(*found->second, *worker);
  node_.scheduler.GiveBack(*found->second);
  owner.groups.erase(found);
}

// ---- A node is gone.

void Groups::PeerDied(Peer& peer, const TaskFailure& cause) {
  while (!peer.groups.empty()) ReleaseOf(peer, peer.groups.begin()->first);
  std::vector<ObjectId> lost;
  for (const auto& [id, group] : groups_) {
    if (std::ranges::find(group->places, peer.index) == group->places.end()) continue;
    if (!group->unanswered.empty()) {
      GiveUp(*group);
    } else if (group->asked_as != 0) {
      lost.push_back(id);
    }
  }
  for (const ObjectId& id : lost) {
    Object* const object = node_.objects.Find(id);
    if (object == nullptr || !groups_.contains(id)) continue;
    End(*object, FailureKind::kNodeDied, ErrorCode::kUnavailable,
        fmt::format("a node that had bundles of the placement group is gone: {}", cause.text));
  }
}

}  // namespace menger
