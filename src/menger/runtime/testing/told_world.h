#pragma once

#include <utility>
#include <vector>

#include "menger/runtime/testing/node_world.h"

namespace menger {

// A node among others, as tests of its logic see it: what it tells them is kept.
class ToldWorld : public World {
 public:
  using World::World;

  struct Told {
    PeerIndex to = 0;
    PeerMessage message;
  };

  bool Recall(Worker& worker, const Task& task) override {
    return worker.lender == 0 && World::Recall(worker, task);
  }
  void TellPeer(const Peer& to, const PeerMessage& message) override {
    told.push_back({to.index, message});
  }

  // Those of that kind since it was asked last.
  std::vector<Told> Messages(PeerMessage::Kind kind) {
    std::vector<Told> found;
    for (Told& one : std::exchange(told, {})) {
      if (one.message.kind == kind) found.push_back(std::move(one));
    }
    return found;
  }
  void Receive(Peer& peer, const PeerMessage& message) {
    machine.Receive(peer, message);
    machine.Run();
  }

  std::vector<Told> told;
};

}  // namespace menger
