#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

// The part of Peers that has workers of other nodes, and gives them back.
namespace menger {
namespace {

constexpr std::int64_t kLoanIdleNanoseconds = 5'000'000;

}  // namespace

void Peers::Borrow(Peer& peer, const PeerMessage& message) {
  node_.drains.Lent(peer.index);
  Worker* const rested = FindBorrowed(peer, message.loan);
  SchedulingClass* const scheduling = FindClass(message.scheduling);
  if (scheduling == nullptr) {  // Its group is no more, or what could run it.
    return Tell(
        peer.index,
        {.kind = PeerMessage::Kind::kGiveBack, .clean = rested == nullptr, .loan = message.loan});
  }
  const auto asked = peer.asked.find(scheduling->text);
  if (asked != peer.asked.end() && asked->second > 0) --asked->second;
  if (asked == peer.asked.end() || asked->second == 0) {
    Scheduler::SetFull(*scheduling, peer.index, false);
  }
  if (rested != nullptr) {
    rested->rests = false;
    rested->progress_at = node_.now;
    return node_.scheduler.AddBorrowed(*rested, *scheduling);
  }
  auto worker = std::make_unique<Worker>();
  worker->index = node_.workers.NewIndex();
  worker->loan = message.loan;
  worker->lender = peer.index;
  worker->progress_at = node_.now;
  worker->ended_at = node_.now;
  peer.borrowed.emplace(message.loan, worker.get());
  node_.scheduler.AddBorrowed(*worker, *scheduling);
  node_.notes.NoteWorker(NodeEventKind::kWorkerStarted, *worker, ToString(peer.node));
  node_.workers.AddBorrowed(std::move(worker));
}

// What is said of workers that nobody asks for any longer says nothing of the next ones.
void Peers::IsFull(const Peer& peer, const PeerMessage& message) {
  SchedulingClass* const scheduling = FindClass(message.scheduling);
  if (scheduling == nullptr) return;
  const auto asked = peer.asked.find(scheduling->text);
  if (asked == peer.asked.end() || asked->second == 0) return;
  Scheduler::SetFull(*scheduling, peer.index, true);
}

SchedulingClass* Peers::FindClass(const std::string& name) {
  try {
    return name.starts_with('@') ? node_.groups.OwnClass(name) : &node_.scheduler.ClassFor(name);
  } catch (const Error&) {
    return nullptr;
  }
}

void Peers::Serve() {
  if (last_peer_ == 0 && node_.options.node_patience == 0) return;  // There has never been any.
  for (const auto& scheduling : node_.scheduler.classes()) {
    if (scheduling->ready_count > 0 && IsHopeless(*scheduling)) FailForeign(*scheduling);
  }
  FailForeignActors();
  CountHomeless();
  node_.values.SpreadNews();
  for (const auto& [index, peer] : peers_) {
    node_.foreign.Meet(*peer);
    GiveBackIdle(*peer);
  }
  AskForWorkers();
  for (const auto& [index, peer] : peers_) node_.drains.Serve(*peer);
  LendToAll();
  AskBackForOwn();
  TellSharers();
}

bool Peers::IsWaitedFor(const SchedulingClass& scheduling) const {
  return scheduling.ready_count > 0 || homeless_.contains(&scheduling);
}

// Calls that the peer could do wait for what the worker occupies.
bool Peers::IsInTheWay(const Peer& peer, const Worker& worker) const {
  return std::ranges::any_of(node_.scheduler.classes(), [&](const auto& other) {
    return IsWaitedFor(*other) && other->need.Overlaps(worker.serving->need) &&
           MayServe(peer, *other);
  });
}

// After a while; at once if it is in the way.
void Peers::GiveBackIdle(Peer& peer) {
  std::vector<Worker*> idle;
  for (const auto& [loan, worker] : peer.borrowed) {
    if (worker->dedicated || worker->rests || worker->blocked() || worker->awaits != nullptr ||
        !worker->outstanding.empty()) {
      continue;
    }
    const bool unused =
        !IsWaitedFor(*worker->serving) &&
        (node_.now - worker->progress_at >= kLoanIdleNanoseconds || IsInTheWay(peer, *worker));
    if (unused || worker->asked_back) idle.push_back(worker);
  }
  for (Worker* const worker : idle) GiveBack(*worker);
  node_.values.SpreadNews();
}

void Peers::GiveBack(Worker& worker) {
  const bool clean = !node_.objects.IsUsedBy(worker.index);
  Tell(worker.lender, {.kind = PeerMessage::Kind::kGiveBack, .clean = clean, .loan = worker.loan});
  if (clean) return node_.workers.Retire(worker, "it was given back");
  node_.scheduler.RemoveBorrowed(worker);
  worker.rests = true;
  worker.asked_back = false;
}

void Peers::EndResting(Worker& worker, std::string_view why) {
  node_.workers.End(worker, why);
  node_.workers.Retire(worker, why);
}

void Peers::GiveBackOf(const Group& group) {
  std::vector<Worker*> borrowed;
  for (const auto& scheduling : node_.scheduler.classes()) {
    if (scheduling->group != &group) continue;
    for (const auto& [index, peer] : peers_) peer->asked.erase(scheduling->text);
    for (Worker* const worker : scheduling->workers) {
      if (worker->lender != 0) borrowed.push_back(worker);
    }
  }
  for (Worker* const worker : borrowed) GiveBack(*worker);
}

Worker* Peers::Dedicate(SchedulingClass& need) {
  Worker* const worker = node_.scheduler.FreeBorrowed(need);
  if (worker == nullptr) return nullptr;
  Scheduler::Keep(*worker);
  Tell(worker->lender, {.kind = PeerMessage::Kind::kKeep, .loan = worker->loan});
  return worker;
}

void Peers::DropAt(PeerIndex node, std::uint64_t name) {
  Tell(node, {.kind = PeerMessage::Kind::kDrop, .kept = name});
}

}  // namespace menger
