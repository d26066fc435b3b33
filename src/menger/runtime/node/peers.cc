#include "menger/runtime/node/peers.h"

#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {
namespace {

// For this node it is an object like others, under an id that nobody else uses.
ObjectId KeptId(const Peer& peer, std::uint64_t kept) {
  const TaskId borrower = ChildTask(TaskId{peer.node}, peer.epoch);
  return ResultOf(ChildTask(borrower, kept), 0);
}

}  // namespace

Peer& Peers::Add(NodeId node, std::uint64_t epoch, Resources total,
                 std::uint64_t reading_bytes_max) {
  for (const auto& [index, peer] : peers_) {
    if (peer->node != node) continue;
    Died(*peer, {.kind = FailureKind::kNodeDied,
                 .code = ErrorCode::kUnavailable,
                 .text = fmt::format("node {} has begun anew", ToString(node))});
    break;
  }
  auto peer = std::make_unique<Peer>();
  peer->index = ++last_peer_;
  peer->node = node;
  peer->epoch = epoch;
  peer->process = node_.workers.NewIndex();
  peer->total = std::move(total);
  Peer& result = *peers_.emplace(peer->index, std::move(peer)).first->second;
  node_.scheduler.reading_rooms().Open(result.index, reading_bytes_max);
  TellScheduler();
  return result;
}

Peer* Peers::Find(PeerIndex index) {
  const auto found = peers_.find(index);
  return found != peers_.end() ? found->second.get() : nullptr;
}

const Peer* Peers::OfProcess(ProcessIndex process) const {
  for (const auto& [index, peer] : peers_) {
    if (peer->process == process) return peer.get();
  }
  return nullptr;
}

Peer* Peers::OfProcess(ProcessIndex process) {
  return const_cast<Peer*>(std::as_const(*this).OfProcess(process));
}

Peer* Peers::FindLife(NodeId node, std::uint64_t epoch) {
  for (const auto& [index, peer] : peers_) {
    if (peer->node == node && peer->epoch == epoch) return peer.get();
  }
  return nullptr;
}

Worker* Peers::FindBorrowed(const Peer& peer, LoanNumber loan) {
  const auto found = peer.borrowed.find(loan);
  return found != peer.borrowed.end() ? found->second : nullptr;
}

void Peers::TellScheduler() {
  std::vector<Scheduler::Elsewhere> elsewhere;
  for (const auto& [index, peer] : peers_) {
    if (!peer->lends || !peer->cannot_serve.empty() || peer->leaves) continue;
    elsewhere.push_back({index, peer->total});
  }
  node_.scheduler.SetElsewhere(std::move(elsewhere));
}

void Peers::Cannot(Peer& peer, const std::string& why) {
  peer.cannot_serve = why;
  peer.asked.clear();
  TellScheduler();
  if (why.empty()) return;
  node_.effects.Warn(
      fmt::format("node {} does no calls of this program: {}", ToString(peer.node), why));
}

void Peers::LendsNothing(Peer& peer) {
  peer.lends = false;
  TellScheduler();
}

void Peers::Tell(PeerIndex to, const PeerMessage& message) {
  if (const Peer* const peer = Find(to)) node_.effects.TellPeer(*peer, message);
}

void Peers::Receive(Peer& peer, const PeerMessage& message) {
  switch (message.kind) {
    case PeerMessage::Kind::kWant: {
      auto& wanted = peer.wanted[message.scheduling];
      if (wanted == 0) peer.told_full.erase(message.scheduling);
      wanted = std::min(message.count, kWantedMax);
      return;
    }
    case PeerMessage::Kind::kFull:
      return IsFull(peer, message);
    case PeerMessage::Kind::kSharers:
      return node_.scheduler.reading_rooms().Share(peer.index, message.count);
    case PeerMessage::Kind::kCannot:
      return Cannot(peer, message.text);
    case PeerMessage::Kind::kLend:
      return Borrow(peer, message);
    case PeerMessage::Kind::kAskBack:
    case PeerMessage::Kind::kLost:
      if (Worker* const worker = FindBorrowed(peer, message.loan)) {
        if (message.kind == PeerMessage::Kind::kLost) {
          return worker->rests ? node_.workers.Retire(*worker, message.cause.text)
                               : node_.workers.Died(*worker, message.cause, &message.begun);
        }
        if (!worker->dedicated && !worker->rests) node_.scheduler.AskBack(*worker);
      }
      return;
    case PeerMessage::Kind::kDrop:
      return Drop(peer, message.kept);
    case PeerMessage::Kind::kReserve:
      return node_.groups.ReserveFor(peer, message);
    case PeerMessage::Kind::kReserved:
    case PeerMessage::Kind::kNotReserved:
      return node_.groups.Answered(peer, message);
    case PeerMessage::Kind::kRelease:
      return node_.groups.ReleaseOf(peer, message.kept);
    case PeerMessage::Kind::kPull:
      return PullFor(peer, message);
    case PeerMessage::Kind::kPulled:
      if (!node_.copies.Arrived(message.kept, {})) DropAt(peer.index, message.kept);
      return;
    case PeerMessage::Kind::kNotPulled:
      return message.cause.text.empty() ? node_.copies.Failed(message.kept)
                                        : node_.copies.Refused(message.kept, message.cause);
    case PeerMessage::Kind::kKeep:
    case PeerMessage::Kind::kGiveBack:
    case PeerMessage::Kind::kEnd:
    case PeerMessage::Kind::kBlocked:
    case PeerMessage::Kind::kUnblocked:
      if (const auto lent = peer.lent.find(message.loan); lent != peer.lent.end()) {
        ReceiveOfLent(*lent->second, message);
      }
      return;
    case PeerMessage::Kind::kLeaving:
      return node_.drains.Leaves(peer);
    case PeerMessage::Kind::kLetGo:
      return node_.drains.LetsGo(peer, message);
    default:
      return node_.foreign.Receive(peer, message);
  }
}

void Peers::Drop(Peer& peer, std::uint64_t kept) {
  if (node_.foreign.CopyIsNoSource(peer, kept)) return;
  Object* const object = node_.objects.Find(KeptId(peer, kept));
  if (object != nullptr) node_.objects.DropReferrer(peer.process, *object);
}

void Peers::ReceiveOfLent(Worker& worker, const PeerMessage& message) {
  if (worker.rests && message.kind != PeerMessage::Kind::kEnd) return;  // He had given it back.
  std::vector<Task*> none;
  switch (message.kind) {
    case PeerMessage::Kind::kGiveBack:
      return TakeIn(worker, message.clean);
    case PeerMessage::Kind::kKeep:
      worker.stays = true;
      return;
    case PeerMessage::Kind::kEnd:
      node_.workers.End(worker, message.text, /*gently=*/message.clean);
      return node_.workers.Retire(worker, message.text);
    case PeerMessage::Kind::kBlocked:
      return node_.scheduler.Block(worker, none);
    default:
      return node_.scheduler.Unblock(worker);
  }
}

std::uint64_t Peers::KeepFor(const Peer& peer, ObjectValue value) {
  Keep(peer, ++last_kept_, std::move(value));
  return last_kept_;
}

void Peers::Keep(const Peer& peer, std::uint64_t name, ObjectValue value) {
  Object& object = node_.objects.FindOrMake(KeptId(peer, name));
  node_.objects.AddReferrer(peer.process, object);
  node_.values.Fill(object, std::move(value), {});
}

// ---- Copies of another's values.

void Peers::PullFor(Peer& owner, const PeerMessage& message) {
  PullOrder order{
      .owner = &owner, .pull = message.kept, .name = message.source_name, .bytes = message.bytes};
  if (message.object.valid()) owner.own_pulls[message.kept] = message.object;
  order.here = message.clean;
  if (message.source.valid() && !order.here) {
    order.source = FindLife(message.source, message.source_epoch);
    if (order.source == nullptr) return NotPulled(&owner, message.kept);
  }
  node_.effects.Pull(order);
}

void Peers::Pulled(Peer* owner, std::uint64_t pull, ObjectValue value) {
  if (owner == nullptr) {
    if (!node_.copies.Arrived(pull, value.extent)) node_.values.Free(value);
    return node_.values.SpreadNews();
  }
  if (!node_.foreign.Arrived(*owner, pull, value)) Keep(*owner, pull, std::move(value));
  Tell(owner->index, {.kind = PeerMessage::Kind::kPulled, .kept = pull});
}

void Peers::NotPulled(Peer* owner, std::uint64_t pull) {
  if (owner == nullptr) return node_.copies.Failed(pull);
  owner->own_pulls.erase(pull);
  Tell(owner->index, {.kind = PeerMessage::Kind::kNotPulled, .kept = pull});
}

void Peers::PullRefused(Peer* owner, std::uint64_t pull, const TaskFailure& cause) {
  if (owner == nullptr) return node_.copies.Refused(pull, cause);
  node_.foreign.Refused(*owner, pull, cause);
  Tell(owner->index, {.kind = PeerMessage::Kind::kNotPulled, .kept = pull, .cause = cause});
}

Object* Peers::FindKept(const Peer& peer, std::uint64_t kept) const {
  if (Object* const own = node_.foreign.FindCopy(peer, kept)) return own;
  return node_.objects.Find(KeptId(peer, kept));
}

bool Peers::HasBorrowed() const {
  return std::ranges::any_of(peers_, [](const auto& entry) {
    return std::ranges::any_of(entry.second->borrowed, [](const auto& loan) {
      return !loan.second->dedicated && !loan.second->rests;
    });
  });
}

// ---- Ends.

void Peers::EndLoan(Worker& worker, const TaskFailure& cause) {
  if (worker.lender != 0) {
    if (Peer* const peer = Find(worker.lender)) peer->borrowed.erase(worker.loan);
  } else if (Peer* const peer = Find(worker.borrower)) {
    peer->lent.erase(worker.loan);
    Tell(peer->index, {.kind = PeerMessage::Kind::kLost,
                       .loan = worker.loan,
                       .cause = cause,
                       .begun = node_.effects.BegunBy(worker)});
  }
  worker.loan = 0;
}

void Peers::Died(Peer& peer, const TaskFailure& cause) {
  const auto found = peers_.find(peer.index);
  const std::unique_ptr<Peer> dead = std::move(found->second);
  peers_.erase(found);
  TellScheduler();
  node_.guests.PeerDied(*dead);
  for (const auto& [loan, worker] : dead->lent) {
    if (worker->gone()) continue;
    node_.effects.EndWorker(*worker, "the node that it was lent to is gone");
    node_.workers.Retire(*worker, "the node that it was lent to is gone");
  }
  for (const auto& [loan, worker] : dead->borrowed) node_.workers.Died(*worker, cause);
  node_.scheduler.reading_rooms().Close(dead->index);
  node_.streams.CloseOf(dead->process);
  node_.objects.DropProcess(dead->process);
  node_.groups.PeerDied(*dead, cause);
  node_.drains.PeerDied(dead->index);
  node_.copies.PeerDied(dead->index, cause);
  node_.foreign.PeerDied(*dead);
  node_.values.SpreadNews();
}

}  // namespace menger
