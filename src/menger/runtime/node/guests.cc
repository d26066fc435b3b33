#include "menger/runtime/node/guests.h"

#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {

void Guests::SetProgram(Peer& peer, ProgramIndex program) {
  peer.program = program;
  if (!std::exchange(peer.told_cannot, false)) return;
  node_.peers.Tell(peer.index, {.kind = PeerMessage::Kind::kCannot});
}

void Guests::CannotServe(Peer& peer, std::string_view why) {
  peer.program.reset();
  peer.told_cannot = true;
  node_.peers.Tell(peer.index, {.kind = PeerMessage::Kind::kCannot, .text = std::string(why)});
}

Peer* Guests::OfProgram(ProgramIndex program) {
  for (const auto& [index, peer] : node_.peers.all()) {
    if (peer->program == program) return peer.get();
  }
  return nullptr;
}

// Null where its borrower is gone: its process is to end.
Worker* Guests::Add(WorkerIndex index, ProgramIndex program) {
  Peer* const peer = OfProgram(program);
  if (peer == nullptr) return nullptr;
  if (peer->guests_starting > 0) --peer->guests_starting;
  Worker& guest = node_.workers.Add(index, program);
  peer->guests.push_back(&guest);
  return &guest;
}

void Guests::StartFailed(ProgramIndex program, std::string_view cause) {
  Peer* const peer = OfProgram(program);
  if (peer == nullptr) return;
  if (peer->guests_starting > 0) --peer->guests_starting;
  if (!cause.empty()) CannotServe(*peer, fmt::format("no worker could be started: {}", cause));
}

namespace {

// So many processes begin side by side at least: more than a node has CPUs would take as long, and
// what the first ones do meanwhile the others need not.
constexpr std::uint32_t kStartsMin = 4;

// A process that has had GPUs, or has not, cannot be had for the opposite.
auto IsFor(const SchedulingClass& need) {
  return [&need](const Worker* one) { return !need.gpus || !one->used; };
}

}  // namespace

bool Guests::AreReadyFor(Peer& peer, const SchedulingClass& need, std::size_t count) {
  if (peer.program == kOwnProgram) return true;
  const auto ready = static_cast<std::size_t>(std::ranges::count_if(peer.guests, IsFor(need)));
  for (; ready + peer.guests_starting < count; ++peer.guests_starting) {
    node_.effects.StartGuest(*peer.program);
  }
  return ready >= count;
}

Worker* Guests::Lend(Peer& peer, SchedulingClass& need, std::uint32_t count) {
  const auto guest = std::ranges::find_if(peer.guests, IsFor(need));
  if (guest != peer.guests.end() && node_.scheduler.Occupy(**guest, need)) {
    Worker* const lent = *guest;
    peer.guests.erase(guest);
    return lent;
  }
  const std::uint32_t room = guest == peer.guests.end() ? FindRoom(need, count) : 0;
  const auto cpus = static_cast<std::uint32_t>(node_.scheduler.total().Get("cpu"));
  const std::uint32_t most = std::min(room, std::max(cpus, kStartsMin));
  for (; peer.guests_starting < most; ++peer.guests_starting) {
    node_.effects.StartGuest(*peer.program);
  }
  return nullptr;
}

std::uint32_t Guests::FindRoom(const SchedulingClass& need, std::uint32_t count) {
  Resources free = node_.scheduler.FreeOfIdle();
  std::uint32_t room = 0;
  for (; room < count && free.Contains(need.need); ++room) free.Subtract(need.need);
  return room;
}

void Guests::TakeIn(Worker& worker) {
  Peer* const peer = OfProgram(worker.program);
  const bool spent = worker.gpus;
  node_.scheduler.Vacate(worker);
  if (peer == nullptr || spent) return End(worker, "it was lent to another node");
  worker.progress_at = node_.now;
  peer->guests.push_back(&worker);
}

// Where it could not be lent again it ends, of which its borrower hears (Peers::EndLoan).
void Guests::Rest(Worker& worker) {
  if (node_.drains.begun()) return End(worker, "its node leaves");
  worker.rests = true;
  TakeIn(worker);
}

void Guests::Forget(const Worker& worker) {
  if (Peer* const peer = OfProgram(worker.program)) std::erase(peer->guests, &worker);
}

void Guests::End(Worker& worker, std::string_view why) {
  node_.effects.EndWorker(worker, why);
  node_.workers.Retire(worker, why);
}

void Guests::PeerDied(Peer& peer) {
  for (Worker* const guest : std::exchange(peer.guests, {})) {
    End(*guest, "the node whose program it runs is gone");
  }
}

// The next one who needs them would have to start them anew, so some wait.
void Guests::EndSpare() {
  std::size_t waiting = 0;
  for (const auto& [index, peer] : node_.peers.all()) waiting += peer->guests.size();
  if (waiting == 0) return;
  const auto cpus = static_cast<std::size_t>(node_.scheduler.total().Get("cpu"));
  for (; waiting > std::max<std::size_t>(cpus, 1); --waiting) {
    Worker* const longest = IdleForLongest();
    if (longest == nullptr) return;
    End(*longest, "it was not needed any longer");
  }
}

// None of those who want some just now.
Worker* Guests::IdleForLongest() const {
  Worker* longest = nullptr;
  for (const auto& [index, peer] : node_.peers.all()) {
    if (peer->guests.empty() || !peer->wanted.empty()) continue;
    Worker* const first = peer->guests.front();
    if (longest == nullptr || first->progress_at < longest->progress_at) longest = first;
  }
  return longest;
}

}  // namespace menger
