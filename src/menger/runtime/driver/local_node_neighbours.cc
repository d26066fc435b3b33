#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/driver/local_node.h"

// The part of the driver's node that has to do with other nodes.
namespace menger {

void LocalNode::ServeNeighbours() {
  for (bool any = true; any;) {
    any = neighbours_->Work() || !asks_again_.empty();
    for (const auto& [watch, id] : std::exchange(asks_again_, {})) {
      Object* const object = machine_.objects().Find(id);
      if (object == nullptr) continue;
      if (machine_.WatchObject(watch, *object, /*with_value=*/true)) Ready(watch, *object);
    }
    if (any) machine_.Run();
  }
  std::vector<Neighbours::Flying> packets = neighbours_->TakeOutgoing(MonotonicNanoseconds());
  if (!packets.empty()) place_->post(std::move(packets));
}

void LocalNode::TellNeighbours(FunctionRef<void(Neighbours&)> tell) {
  const std::lock_guard lock(node_mutex_);
  if (stopping()) return;
  machine_.SetTime(MonotonicNanoseconds());
  ++news_;
  tell(*neighbours_);
  RunMachine();
}

void LocalNode::Meet(const NodeLife& node, const Resources& total, std::uint64_t job) {
  TellNeighbours([&](Neighbours& neighbours) {
    Peer* const peer = neighbours.Meet(node, total);
    if (peer != nullptr && job != 0) machine_.AwaitProgram(*peer);
  });
}

void LocalNode::SetProgram(const NodeLife& node, const GuestProgram& program) {
  TellNeighbours([&](Neighbours& neighbours) {
    Peer* const peer = neighbours.FindPeer(node);
    if (peer == nullptr) return;
    programs_[peer->index] = ++last_program_;
    team_->SetProgram(last_program_, program);
    machine_.SetProgram(*peer, last_program_);
  });
}

void LocalNode::CannotServe(const NodeLife& node, const std::string& why) {
  TellNeighbours([&](Neighbours& neighbours) {
    if (Peer* const peer = neighbours.FindPeer(node)) machine_.CannotServe(*peer, why);
  });
}

bool LocalNode::HearOfEnd(const NodeLife& node, const std::string& why) {
  bool parted = false;
  TellNeighbours([&](Neighbours&) { parted = Part(node, why); });
  return parted;
}

void LocalNode::CutOff(const std::string& why) {
  TellNeighbours([&](Neighbours&) { machine_.CutOff(why); });
}

bool LocalNode::Part(const NodeLife& node, const std::string& why) {
  const Peer* const peer = neighbours_->FindPeer(node);
  const auto program = peer != nullptr ? programs_.find(peer->index) : programs_.end();
  if (program != programs_.end()) {
    team_->DropProgram(program->second);
    programs_.erase(program);
  }
  const bool is_neighbour = peer != nullptr;
  neighbours_->HearOfEnd(node, why);
  return is_neighbour;
}

void LocalNode::Arrive(std::vector<Neighbours::Flying> packets) {
  TellNeighbours([&](Neighbours& neighbours) {
    for (Neighbours::Flying& packet : packets) {
      const NodeLife from = packet.node;
      try {
        neighbours.Arrive(std::move(packet));
      } catch (const Error& error) {
        Part(from, error.what());
        if (place_->parted) place_->parted(from, error);
        return;
      }
    }
  });
}

void LocalNode::StreamOpened(const NodeLife& node, PeerLane lane) {
  TellNeighbours([&](Neighbours& neighbours) { neighbours.SendAgain(node, lane); });
}

void LocalNode::Drain() {
  TellNeighbours([&](Neighbours&) { machine_.Drain(); });
}

DrainProgress LocalNode::HowFarDrained() {
  const std::lock_guard lock(node_mutex_);
  return machine_.drain_progress();
}

void LocalNode::SayFarewell() {
  TellNeighbours([](Neighbours& neighbours) { neighbours.SayFarewell(); });
}

}  // namespace menger
