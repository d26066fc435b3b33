#include <algorithm>
#include <map>
#include <utility>

#include "menger/runtime/node/node_parts.h"

// The part of Groups that places bundles anew whose nodes are gone. Of a group that calls are in
// already, so each node that is asked counts by itself: what it grants is there.
namespace menger {

void Groups::Lose(Group& group, const Peer& dead, const TaskFailure& cause) {
  std::erase_if(group.moves, [&dead](const Group::Move& move) { return move.to == dead.index; });
  bool any = false;
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    if (group.places[i] != dead.index) continue;
    group.places[i] = Group::kNowhere;
    group.known_as[i] = 0;
    any = true;
  }
  if (!any) return;
  group.lost_at = group.again_at = node_.now;
  group.pause = 0;
  group.loss = cause.text;
  if (std::ranges::find(moving_, &group) == moving_.end()) moving_.push_back(&group);
}

std::vector<std::size_t> Groups::HomelessIn(const Group& group) {
  std::vector<std::size_t> homeless;
  for (std::size_t i = 0; i < group.bundles.size(); ++i) {
    const auto comes = [i](const Group::Move& move) {
      return std::ranges::find(move.bundles, i) != move.bundles.end();
    };
    const bool is_homeless = group.places[i] == Group::kNowhere &&
                             std::ranges::find_if(group.moves, comes) == group.moves.end();
    if (is_homeless) homeless.push_back(i);
  }
  return homeless;
}

// With the bundles that they have, or were asked for.
std::vector<Groups::Node> Groups::NodesBut(const Group& group, bool in_all) {
  std::vector<Node> nodes = Nodes(in_all);
  for (Node& node : nodes) {
    node.bundles = static_cast<int>(std::ranges::count(group.places, node.index));
    for (const Group::Move& move : group.moves) {
      if (move.to == node.index) node.bundles += static_cast<int>(move.bundles.size());
    }
  }
  return nodes;
}

void Groups::MoveAll() {
  std::vector<ObjectId> over;
  std::erase_if(moving_, [&](Group* group) {
    if (std::ranges::find(group->places, Group::kNowhere) == group->places.end()) return true;
    if (node_.now < group->again_at || Move(*group)) return false;
    over.push_back(group->id);
    return true;
  });
  for (const ObjectId& id : over) {
    const auto group = groups_.find(id);
    if (group == groups_.end()) continue;  // It ended with another.
    const std::string why = group->second->loss;
    End(*node_.objects.Find(id), FailureKind::kNodeDied, ErrorCode::kUnavailable,
        fmt::format("a node that had bundles of the placement group is gone: {}", why));
  }
}

bool Groups::Move(Group& group) {
  const std::vector<std::size_t> homeless = HomelessIn(group);
  if (homeless.empty()) return true;
  if (!Choose(group, homeless, NodesBut(group, /*in_all=*/true))) {
    return node_.now < group.lost_at + node_.options.node_patience;
  }
  const auto places = Choose(group, homeless, NodesBut(group, /*in_all=*/false));
  if (!places) {
    DoubtOthers(group);
    return true;
  }
  std::map<PeerIndex, std::vector<std::size_t>> moves;
  for (std::size_t i = 0; i < homeless.size(); ++i) moves[(*places)[i]].push_back(homeless[i]);
  for (auto& [place, bundles] : moves) {
    if (place == 0) {  // Again later, where that is not free after all.
      if (node_.scheduler.SetAside(group, bundles)) node_.counts.bundles_moved += bundles.size();
      continue;
    }
    const std::uint64_t number = ++last_asked_;
    AskToReserve(place, number, group, bundles);
    group.moves.push_back({place, number, std::move(bundles)});
  }
  return true;
}

void Groups::Moved(Group& group, const Peer& peer, const PeerMessage& message) {
  const auto found = std::ranges::find(group.moves, message.kept, &Group::Move::asked_as);
  if (found == group.moves.end() || found->to != peer.index) return;
  const Group::Move move = std::move(*found);
  group.moves.erase(found);
  if (message.kind != PeerMessage::Kind::kReserved) return Refused(group, peer, move.bundles);
  node_.counts.bundles_moved += move.bundles.size();
  for (const std::size_t bundle : move.bundles) {
    group.places[bundle] = peer.index;
    group.known_as[bundle] = move.asked_as;
  }
}

}  // namespace menger
