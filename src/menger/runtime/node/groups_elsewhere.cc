#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
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

template <typename T>
bool Has(const std::vector<T>& values, const T& value) {
  return std::ranges::find(values, value) != values.end();
}

std::vector<std::size_t> BundlesAt(const Group& group, PeerIndex place) {
  std::vector<std::size_t> bundles;
  for (std::size_t i = 0; i < group.places.size(); ++i) {
    if (group.places[i] == place) bundles.push_back(i);
  }
  return bundles;
}

std::vector<std::size_t> AllOf(const Group& group) {
  std::vector<std::size_t> bundles(group.bundles.size());
  std::iota(bundles.begin(), bundles.end(), std::size_t{0});
  return bundles;
}

// How hard it is to find room for it: whoever needs what few have, and much, chooses first.
std::tuple<int, double> DifficultyOf(const Resources& bundle) {
  int rare = 0;
  double much = 0;
  for (const Resources::Named& amount : bundle.amounts()) {
    rare += amount.name != "cpu" && amount.parts > 0 ? 1 : 0;
    much += bundle.Get(amount.name);
  }
  return {rare, much};
}

// What lies idle beside the bundle on a node that has this free, and another may need more: how
// many kinds that it does not need, and how much of what it does.
std::tuple<int, double> LeftBy(const Resources& bundle, const Resources& free) {
  int kinds = 0;
  double much = 0;
  for (const Resources::Named& amount : free.amounts()) {
    const bool is_set_aside = amount.name.find('@') != std::string::npos;
    if (amount.parts <= 0 || is_set_aside || amount.name.starts_with("node:")) continue;
    const double needed = bundle.Get(amount.name);
    kinds += needed == 0 && amount.name != "cpu" ? 1 : 0;
    much += needed > 0 ? free.Get(amount.name) - needed : 0;
  }
  return {kinds, much};
}

// By what the peer knows bundles that calls of the class may take from; 0: it has none. Of several
// the one that it has had for longest, so that it stays the same.
std::uint64_t NumberAt(const SchedulingClass& scheduling, const Peer& peer) {
  const Group& group = *scheduling.group;
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < group.known_as.size(); ++i) {
    const bool may = scheduling.bundle < 0 || scheduling.bundle == static_cast<int>(i);
    if (!may || group.places[i] != peer.index || !group.bundles[i].Contains(scheduling.wish)) {
      continue;
    }
    if (first == 0 || group.known_as[i] < first) first = group.known_as[i];
  }
  return first;
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
  if (Choose(group, AllOf(group), nodes)) return;
  if (apart && group.bundles.size() > nodes.size()) {
    throw InvalidArgument("a placement group of {} bundles, each on a node of its own: there {} {}",
                          group.bundles.size(), nodes.size() == 1 ? "is" : "are", nodes.size());
  }
  const std::string missing = group.all.MissingFrom(nodes.front().free);
  throw InvalidArgument("the node{} never ha{} what the placement group needs: {}",
                        nodes.size() == 1 ? "" : "s", nodes.size() == 1 ? "s" : "ve", missing);
}

std::optional<std::vector<PeerIndex>> Groups::Choose(const Group& group,
                                                     const std::vector<std::size_t>& bundles,
                                                     std::vector<Node> nodes) {
  using enum PlacementStrategy;
  const bool together = bundles.size() == group.bundles.size() &&
                        (group.strategy == kPack || group.strategy == kStrictPack);
  if (together) {
    for (const Node& node : nodes) {
      if (node.free.Contains(group.all)) return std::vector(bundles.size(), node.index);
    }
  }
  if (group.strategy == kStrictPack) return std::nullopt;
  std::vector<std::size_t> order(bundles.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return DifficultyOf(group.bundles[bundles[i]]); });
  std::vector<PeerIndex> places(bundles.size());
  for (const std::size_t i : order) {
    const Resources& bundle = group.bundles[bundles[i]];
    Node* const node = NodeFor(group, bundle, nodes);
    if (node == nullptr) return std::nullopt;
    node->free.Subtract(bundle);
    ++node->bundles;
    places[i] = node->index;
  }
  return places;
}

Groups::Node* Groups::NodeFor(const Group& group, const Resources& bundle,
                              std::vector<Node>& nodes) {
  const bool pack = group.strategy == PlacementStrategy::kPack;
  Node* best = nullptr;
  std::tuple<int, int, double> least;
  for (Node& node : nodes) {
    if (!node.free.Contains(bundle)) continue;
    if (group.strategy == PlacementStrategy::kStrictSpread && node.bundles > 0) continue;
    const auto [kinds, much] = LeftBy(bundle, node.free);
    const std::tuple rank(pack ? -node.bundles : node.bundles, kinds, much);
    if (best != nullptr && least <= rank) continue;
    best = &node;
    least = rank;
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
  std::optional<std::vector<PeerIndex>> places =
      Choose(group, AllOf(group), Nodes(/*in_all=*/false));
  if (!places) {
    DoubtOthers(group);
    return false;
  }
  SetPlaces(group, std::move(*places));
  if (!node_.scheduler.SetAside(group)) return false;
  std::map<PeerIndex, std::vector<std::size_t>> elsewhere;
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    if (!group.IsHere(i)) elsewhere[group.places[i]].push_back(i);
  }
  if (elsewhere.empty()) return true;
  group.asked_as = ++last_asked_;
  for (const auto& [place, bundles] : elsewhere) {
    group.unanswered.push_back(place);
    AskToReserve(place, group.asked_as, group, bundles);
  }
  return true;
}

void Groups::AskToReserve(PeerIndex place, std::uint64_t number, const Group& group,
                          const std::vector<std::size_t>& bundles) {
  std::string text;
  for (const std::size_t bundle : bundles) {
    text += fmt::format("{}{};{}", text.empty() ? "" : ";", bundle, TextOf(group.bundles[bundle]));
  }
  node_.peers.Tell(place, {.kind = PeerMessage::Kind::kReserve, .kept = number, .text = text});
}

// Also what it was asked for and has not answered.
void Groups::ReleaseElsewhere(const Group& group) {
  std::set<std::pair<PeerIndex, std::uint64_t>> parts;
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    const std::uint64_t number = group.known_as.empty() ? group.asked_as : group.known_as[i];
    if (number != 0 && group.IsElsewhere(i)) parts.emplace(group.places[i], number);
  }
  for (const Group::Move& move : group.moves) parts.emplace(move.to, move.asked_as);
  for (const auto& [place, number] : parts) {
    node_.peers.Tell(place, {.kind = PeerMessage::Kind::kRelease, .kept = number});
  }
}

Group* Groups::FindAsked(std::uint64_t number) {
  for (const auto& [id, group] : groups_) {
    const bool is_it =
        group->asked_as == number || Has(group->known_as, number) ||
        std::ranges::find(group->moves, number, &Group::Move::asked_as) != group->moves.end();
    if (is_it && number != 0) return group.get();
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
  if (group == nullptr) return;
  if (!group->known_as.empty()) return Moved(*group, peer, message);
  if (std::erase(group->unanswered, peer.index) == 0) return;
  if (!reserved) {
    GiveUp(*group);
    return Refused(*group, peer, BundlesAt(*group, peer.index));
  }
  if (group->unanswered.empty()) Commit(*group);
  node_.values.SpreadNews();
}

Resources Groups::Elsewhere() const {
  Resources elsewhere;
  for (const auto& [id, group] : groups_) {
    if (group->known_as.empty()) continue;
    for (std::size_t i = 0; i < group->bundles.size(); ++i) {
      if (group->IsElsewhere(i)) elsewhere.Add(group->bundles[i]);
    }
  }
  return elsewhere;
}

// For now: what is set aside already might be what another group waits for.
void Groups::GiveUp(Group& group) {
  ReleaseElsewhere(group);
  node_.scheduler.ReturnBundles(group);
  group.asked_as = 0;
  group.unanswered.clear();
}

// Where it has said that it has not so much, others may be asked at once.
void Groups::Refused(Group& group, const Peer& peer,
                     const std::vector<std::size_t>& bundles) const {
  Resources wanted;
  for (const std::size_t bundle : bundles) wanted.Add(group.bundles[bundle]);
  if (!peer.free || peer.free->Contains(wanted)) Pause(group);
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
  return NumberAt(scheduling, peer) != 0;
}

std::string Groups::NameFor(const SchedulingClass& scheduling, const Peer& peer) {
  return fmt::format("@{} {} {}", NumberAt(scheduling, peer), scheduling.bundle,
                     TextOf(scheduling.wish));
}

SchedulingClass* Groups::OwnClass(std::string_view name) {
  name.remove_prefix(1);
  const std::uint64_t number = ReadNumber(Cut(name, ' '));
  const Group* const group = FindAsked(number);
  if (group == nullptr || !Has(group->known_as, number)) return nullptr;
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
  for (const auto& [id, group] : groups_) {
    if (!group->known_as.empty()) {
      Lose(*group, peer, cause);
    } else if (!group->unanswered.empty() && Has(group->places, peer.index)) {
      GiveUp(*group);
      Pause(*group);
    }
  }
}

}  // namespace menger
