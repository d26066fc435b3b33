#include "menger/runtime/node/drains.h"

#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {
namespace {

constexpr std::size_t kComingMax = 16;  // Values that come home side by side.

}  // namespace

// ---- The node that will leave.

// What was said before he got his last worker says nothing: he says it again. He takes it back
// where he comes to need something here after all.
void Drains::LetsGo(Peer& peer, const PeerMessage& message) {
  values_ += message.count;
  bytes_ += message.bytes;
  peer.lets_go = message.clean && peer.lent.empty();
}

DrainProgress Drains::progress() const {
  DrainProgress progress{.values = values_, .bytes = bytes_};
  for (const auto& [index, peer] : node_.peers.all()) {
    progress.lent += peer->lent.size();
    progress.groups += peer->groups.size();
    if (!peer->lets_go && node_.objects.IsUsedBy(peer->process)) ++progress.holders;
  }
  return progress;
}

// ---- Who has something there.

void Drains::Leaves(Peer& peer) {
  if (peer.leaves) return;
  peer.leaves = true;
  node_.peers.TellScheduler();
  std::vector<Worker*> borrowed;
  for (const auto& [loan, worker] : peer.borrowed) borrowed.push_back(worker);
  for (Worker* const worker : borrowed) {
    if (worker->rests) {
      node_.peers.EndResting(*worker, "its node leaves");
    } else if (worker->actor != nullptr) {
      node_.actors.AskToMove(*worker);
    } else if (worker->serving->group == nullptr) {
      node_.scheduler.AskBack(*worker);
    }
  }
  LookForValues(peer.index, leaving_[peer.index]);
}

// Whether or not it is seen to be borrowed, what was said before says nothing now.
void Drains::Lent(PeerIndex node) {
  const auto found = leaving_.find(node);
  if (found != leaving_.end()) found->second.all_known = found->second.told = false;
}

// Actors that stay until it goes make more.
void Drains::Lies(PeerIndex node, const Object& object) {
  const auto found = leaving_.find(node);
  if (found != leaving_.end()) found->second.values.push_back(object.id);
}

// What others that will leave have may have lain there, too.
void Drains::PeerDied(PeerIndex node) {
  leaving_.erase(node);
  for (auto& [index, leaving] : leaving_) leaving.all_known = false;
}

void Drains::Serve(Peer& peer) {
  if (begun_ && !std::exchange(peer.told, true)) {
    node_.peers.Tell(peer.index, {.kind = PeerMessage::Kind::kLeaving});
  }
  const auto found = leaving_.find(peer.index);
  if (found == leaving_.end()) return;
  Leaving& leaving = found->second;
  BringHome(leaving);
  if (!peer.borrowed.empty()) {
    leaving.all_known = leaving.told = false;
    return;
  }
  if (!std::exchange(leaving.all_known, true)) LookForValues(peer.index, leaving);
  const bool needs_it = !leaving.values.empty() || !leaving.coming.empty();
  if (leaving.told && needs_it) node_.peers.Tell(peer.index, {.kind = PeerMessage::Kind::kLetGo});
  if (std::exchange(leaving.told, !needs_it) || needs_it) return;
  node_.peers.Tell(peer.index,
                   {.kind = PeerMessage::Kind::kLetGo,
                    .clean = true,
                    .count = static_cast<std::uint32_t>(std::exchange(leaving.taken, 0)),
                    .bytes = std::exchange(leaving.taken_bytes, 0)});
}

void Drains::LookForValues(PeerIndex node, Leaving& leaving) {
  const std::vector<ObjectId> values = node_.copies.LostWith(node);
  leaving.values.assign(values.begin(), values.end());
  leaving.coming.clear();  // They are among these.
  BringHome(leaving);
}

void Drains::BringHome(Leaving& leaving) {
  const auto has_come = [&](const ObjectId& id) {
    const Object* const object = node_.objects.Find(id);
    if (object != nullptr && node_.copies.MayBeLost(*object)) return false;
    if (object != nullptr && object->state == Object::State::kReady) {
      ++leaving.taken;
      leaving.taken_bytes += object->value.extent.bytes;
    }
    return true;
  };
  std::erase_if(leaving.coming, has_come);
  while (!leaving.values.empty() && leaving.coming.size() < kComingMax) {
    leaving.coming.push_back(leaving.values.front());
    leaving.values.pop_front();
    Object* const object = node_.objects.Find(leaving.coming.back());
    if (object != nullptr && node_.copies.MayBeLost(*object)) {
      node_.copies.Bring(*object, 0);
    } else {
      leaving.coming.pop_back();
    }
  }
}

}  // namespace menger
