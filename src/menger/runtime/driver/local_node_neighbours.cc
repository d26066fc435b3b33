#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/driver/local_node.h"
#include "menger/runtime/driver/process_team.h"

// The part of the driver's node that has to do with other nodes.
namespace menger {

void LocalNode::ServeNeighbours() {
  const std::int64_t now = MonotonicNanoseconds();
  for (bool any = true; any;) {
    any = neighbours_->Work(now) || !asks_again_.empty();
    any |= spiller_->has_work() && spiller_->Work();
    for (const auto& [watch, id] : std::exchange(asks_again_, {})) {
      Object* const object = machine_.objects().Find(id);
      if (object == nullptr) continue;
      if (machine_.WatchObject(watch, *object, /*with_value=*/true)) Ready(watch, *object);
    }
    if (any) machine_.Run();
  }
  std::vector<Neighbours::Flying> packets = neighbours_->TakeOutgoing(now);
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

void LocalNode::Meet(const NodeRecord& node, bool beside) {
  TellNeighbours([&](Neighbours& neighbours) {
    Peer* const peer = neighbours.Meet(node, beside);
    if (peer == nullptr || node.job == 0) return;
    machine_.AwaitProgram(*peer);
    machine_.LendsNothing(*peer);
  });
}

bool LocalNode::HasMet(const NodeLife& node) {
  const std::lock_guard lock(node_mutex_);
  return stopping() || node == place_->own || neighbours_->FindPeer(node) != nullptr;
}

std::vector<NodeLife> LocalNode::Strangers() {
  const std::lock_guard lock(node_mutex_);
  std::vector<NodeLife> strangers;
  for (const ForeignName& one : machine_.Strangers()) strangers.push_back({one.node, one.epoch});
  return strangers;
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

// ---- What workers print.

Neighbours::Hooks LocalNode::NeighbourHooks(ProcessTeam& team) {
  if (place_->role != Place::Role::kNode) {
    line_printer_ = std::make_unique<LinePrinter>(
        options_, [this](const NodeId& node) { return NameOfNode(node); });
  }
  return {.find_process = [&team](WorkerIndex index) { return team.FindHost(index); },
          .on_lines =
              [this](std::vector<DistantLine> lines) {
                if (line_printer_ != nullptr) line_printer_->Add(std::move(lines));
              },
          .on_lines_wanted = [this](PeerIndex peer) { TellLinesSoon(peer); },
          .ask_room =
              [this](std::uint32_t segment, std::uint64_t bytes, Spiller::Taken taken) {
                spiller_->Request(kDriver, segment, bytes, std::move(taken));
              },
          .restore = [this](Object& object) { spiller_->Restore(object); }};
}

void LocalNode::SendLines() {
  const std::int64_t now = MonotonicNanoseconds();
  for (const auto& [peer, program] : programs_) {
    GuestOutput::Batch batch = guest_output_.Take(program, now);
    for (PrintedLine& line : batch.lines) {
      const Worker* const worker = machine_.FindWorker(line.worker);
      if (worker != nullptr) line.loan = worker->loan;
    }
    if (batch.lines.empty() && !batch.last) continue;
    neighbours_->SendLines(peer, std::move(batch.lines), batch.last);
  }
}

void LocalNode::TellLinesSoon(PeerIndex to) {
  const auto program = programs_.find(to);
  if (program == programs_.end()) return neighbours_->SendLines(to, {}, /*last=*/true);
  team_->AfterOutput([this, of = program->second] {
    guest_output_.Mark(of);
    bell().Ring();
  });
}

void LocalNode::AskForLines() {
  TellNeighbours([](Neighbours& neighbours) { neighbours.AskForLines(); });
}

bool LocalNode::AwaitsLines() {
  bool awaits = false;
  TellNeighbours([&](Neighbours& neighbours) { awaits = neighbours.AwaitsLines(); });
  return awaits;
}

// By the thread that shows lines.
std::string LocalNode::NameOfNode(const NodeId& id) {
  if (place_->members) {
    for (const NodeRecord& node : place_->members()) {
      if (node.id == id && !node.name.empty()) return node.name;
    }
  }
  return ShortName(id);
}

// ----

bool LocalNode::OthersKnowAll() {
  const std::lock_guard lock(node_mutex_);
  return neighbours_->KnowAll();
}

void LocalNode::SayFarewell() {
  TellNeighbours([](Neighbours& neighbours) { neighbours.SayFarewell(); });
}

}  // namespace menger
