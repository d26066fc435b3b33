#include <algorithm>
#include <bit>
#include <utility>

#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that deals with other nodes.
//
// A node that has more calls than it can place asks the others for workers. Who has one that does
// nothing lends it: for the borrower it is a worker like its own, only further away, and all that
// it does is the borrower's: calls that its calls make, what they put, what they refer to. So every
// call, object and actor has one owner, the node whose driver made it, by however many calls in
// between; the death of any other node costs what a worker's death costs, and the larger values
// that lay there. Of the lender a lent worker occupies the resources, and nothing else.
namespace menger {
namespace {

constexpr std::uint32_t kWantedMax = 64;  // Workers of one class, of one peer at once.
constexpr std::size_t kLentMax = 512;     // Of all peers.
constexpr std::int64_t kLoanIdleNanoseconds = 5'000'000;

}  // namespace

Peer& NodeMachine::AddPeer(NodeId node, std::uint64_t epoch, Resources total) {
  for (const auto& [index, peer] : peers_) {
    if (peer->node != node) continue;
    PeerDied(*peer, {.kind = FailureKind::kNodeDied,
                     .code = ErrorCode::kUnavailable,
                     .text = fmt::format("node {} has begun anew", ToString(node))});
    break;
  }
  auto peer = std::make_unique<Peer>();
  peer->index = ++last_peer_;
  peer->node = node;
  peer->epoch = epoch;
  peer->process = NewWorkerIndex();
  peer->total = std::move(total);
  Peer& result = *peers_.emplace(peer->index, std::move(peer)).first->second;
  TellScheduler();
  return result;
}

Peer* NodeMachine::FindPeer(PeerIndex index) {
  const auto found = peers_.find(index);
  return found != peers_.end() ? found->second.get() : nullptr;
}

Worker* NodeMachine::FindBorrowed(const Peer& peer, LoanNumber loan) {
  const auto found = peer.borrowed.find(loan);
  return found != peer.borrowed.end() ? found->second : nullptr;
}

void NodeMachine::TellScheduler() {
  std::vector<Resources> elsewhere;
  for (const auto& [index, peer] : peers_) elsewhere.push_back(peer->total);
  scheduler_.SetElsewhere(std::move(elsewhere));
}

void NodeMachine::Tell(PeerIndex to, const PeerMessage& message) {
  if (const Peer* const peer = FindPeer(to)) effects_->TellPeer(*peer, message);
}

void NodeMachine::Receive(Peer& peer, const PeerMessage& message) {
  switch (message.kind) {
    case PeerMessage::Kind::kWant:
      peer.wanted[message.scheduling] = std::min(message.count, kWantedMax);
      return;
    case PeerMessage::Kind::kLend:
      return Borrow(peer, message);
    case PeerMessage::Kind::kAskBack:
    case PeerMessage::Kind::kLost:
      if (Worker* const worker = FindBorrowed(peer, message.loan)) {
        if (message.kind == PeerMessage::Kind::kLost) return WorkerDied(*worker, message.cause);
        scheduler_.AskBack(*worker);
      }
      return;
    case PeerMessage::Kind::kDrop:
      if (Object* const object = FindKept(peer, message.kept)) {
        objects_.DropReferrer(peer.process, *object);
      }
      return;
    case PeerMessage::Kind::kGiveBack:
    case PeerMessage::Kind::kEnd:
    case PeerMessage::Kind::kBlocked:
    case PeerMessage::Kind::kUnblocked:
      const auto lent = peer.lent.find(message.loan);
      if (lent != peer.lent.end()) return ReceiveOfLent(*lent->second, message);
  }
}

void NodeMachine::ReceiveOfLent(Worker& worker, const PeerMessage& message) {
  std::vector<Task*> none;
  switch (message.kind) {
    case PeerMessage::Kind::kGiveBack:
      return TakeIn(worker, message.clean);
    case PeerMessage::Kind::kEnd:
      effects_->EndWorker(worker, message.text);
      return Retire(worker, message.text);
    case PeerMessage::Kind::kBlocked:
      return scheduler_.Block(worker, none);
    default:
      return scheduler_.Unblock(worker);
  }
}

// ---- The borrower.

void NodeMachine::Borrow(Peer& peer, const PeerMessage& message) {
  std::uint32_t& asked = peer.asked[message.scheduling];
  if (asked > 0) --asked;
  auto worker = std::make_unique<Worker>();
  worker->index = NewWorkerIndex();
  worker->loan = message.loan;
  worker->lender = peer.index;
  worker->progress_at = now_;
  worker->ended_at = now_;
  peer.borrowed.emplace(message.loan, worker.get());
  scheduler_.AddBorrowed(*worker, scheduler_.ClassFor(message.scheduling));
  NoteWorker(NodeEventKind::kWorkerStarted, *worker);
  workers_.emplace(worker->index, std::move(worker));
}

// It had not begun the call when it was asked for it, or died.
void NodeMachine::Returned(Worker& worker, LeaseNumber lease) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) return;
  scheduler_.Done(worker, *task, -1);
  RunAgain(*task, /*begun=*/false, {});
}

void NodeMachine::ServePeers() {
  for (const auto& scheduling : scheduler_.classes()) {
    if (scheduling->foreign && scheduling->ready_count > 0 &&
        !scheduler_.IsElsewhere(scheduling->need)) {
      FailForeign(*scheduling);
    }
  }
  SpreadNews();
  for (const auto& [index, peer] : peers_) {
    AskFor(*peer);
    GiveBackIdle(*peer);
    LendTo(*peer);
  }
  AskBack();
}

// Calls that wait for what no node has any longer.
void NodeMachine::FailForeign(SchedulingClass& scheduling) {
  while (Task* const task = Scheduler::Front(scheduling)) {
    End(*task,
        Describe(FailureKind::kNodeDied, ErrorCode::kUnavailable, *task,
                 fmt::format("the node that had what it needs is gone: {}",
                             scheduling.need.MissingFrom(scheduler_.total()))),
        /*force=*/false);
  }
}

void NodeMachine::AskFor(Peer& peer) {
  for (const auto& scheduling : scheduler_.classes()) {
    const std::size_t here = scheduling->foreign ? 0 : options_.waiting_here_max;
    const bool wants = scheduling->ready_count > here && peer.total.Contains(scheduling->need);
    if (!wants && peer.asked.empty()) continue;
    std::uint32_t& asked = peer.asked[scheduling->text];
    // In powers of two, and not less before there is nothing: what changes all the time is not
    // told.
    const std::size_t count =
        wants ? std::bit_ceil(std::min<std::size_t>(scheduling->ready_count - here, kWantedMax))
              : 0;
    if (count == asked || (count > 0 && count < asked)) continue;
    asked = static_cast<std::uint32_t>(count);
    Tell(peer.index,
         {.kind = PeerMessage::Kind::kWant, .count = asked, .scheduling = scheduling->text});
  }
}

void NodeMachine::GiveBackIdle(Peer& peer) {
  std::vector<Worker*> idle;
  for (const auto& [loan, worker] : peer.borrowed) {
    if (!worker->outstanding.empty() || worker->blocked()) continue;
    const bool unused =
        worker->serving->ready_count == 0 && now_ - worker->progress_at >= kLoanIdleNanoseconds;
    if (unused || worker->asked_back) idle.push_back(worker);
  }
  for (Worker* const worker : idle) {
    const bool clean = !objects_.IsUsedBy(worker->index);
    const LoanNumber loan = worker->loan;
    Retire(*worker, "it was given back");
    CloseStreamsOf(worker->index);
    Tell(peer.index, {.kind = PeerMessage::Kind::kGiveBack, .clean = clean, .loan = loan});
  }
  SpreadNews();
}

void NodeMachine::DropAt(const ObjectValue& value) {
  Tell(value.node, {.kind = PeerMessage::Kind::kDrop, .kept = value.kept});
}

// What lies at a node that is gone.
void NodeMachine::LoseAt(PeerIndex node, const TaskFailure& cause) {
  std::vector<Object*> there;
  objects_.ForEach([&](Object& object) {
    if (object.value.node == node) there.push_back(&object);
  });
  for (Object* const object : there) objects_.Hold(*object);
  for (Object* const object : there) {
    // It may have been made again, elsewhere.
    if (object->value.kind == ObjectValue::Kind::kRemote && object->value.node == node) {
      MakeAgain(*object, &cause);
    } else if (object->value.node == node) {
      object->value.node = 0;
    }
  }
  for (Object* const object : there) objects_.Release(*object);
}

// ---- The lender.

void NodeMachine::LendTo(Peer& peer) {
  if (options_.threads) return;  // They are part of the driver.
  for (auto& [text, count] : peer.wanted) {
    while (count > 0) {
      std::size_t lent = 0;
      for (const auto& [index, other] : peers_) lent += other->lent.size();
      if (lent >= kLentMax) return;
      Worker* const worker = LendOne(text);
      if (worker == nullptr) break;
      --count;
      worker->loan = ++last_loan_;
      worker->borrower = peer.index;
      peer.lent.emplace(worker->loan, worker);
      effects_->Lent(*worker, peer);
      Tell(peer.index,
           {.kind = PeerMessage::Kind::kLend, .loan = worker->loan, .scheduling = text});
    }
  }
  std::erase_if(peer.wanted, [](const auto& wanted) { return wanted.second == 0; });
}

Worker* NodeMachine::LendOne(const std::string& scheduling) {
  try {
    SchedulingClass& need = scheduler_.ClassFor(scheduling);
    return need.foreign ? nullptr : scheduler_.Lend(need);
  } catch (const Error&) {
    return nullptr;  // It takes this node for another than it is.
  }
}

// Calls of this node wait for what is lent.
void NodeMachine::AskBack() {
  std::size_t count = waiting_actors_.size();
  for (const auto& scheduling : scheduler_.classes()) {
    if (!scheduling->foreign) count += scheduling->ready_count;
  }
  for (const auto& [index, peer] : peers_) {
    for (const auto& [loan, worker] : peer->lent) {
      if (count == 0) return;
      --count;
      if (std::exchange(worker->asked_back, true)) continue;
      Tell(index, {.kind = PeerMessage::Kind::kAskBack, .loan = loan});
    }
  }
}

void NodeMachine::TakeIn(Worker& worker, bool clean) {
  if (Peer* const peer = FindPeer(worker.borrower)) peer->lent.erase(worker.loan);
  worker.loan = 0;
  worker.borrower = 0;
  worker.asked_back = false;
  scheduler_.TakeIn(worker);
  if (clean && !scheduler_.HasTooMany()) return;
  effects_->EndWorker(worker, "it was lent to another node");
  Retire(worker, "it was lent to another node");
}

namespace {

// For this node it is an object like others, under an id that nobody else uses.
ObjectId KeptId(const Peer& peer, std::uint64_t kept) {
  const TaskId borrower = ChildTask(TaskId{peer.node}, peer.epoch);
  return ResultOf(ChildTask(borrower, kept), 0);
}

}  // namespace

std::uint64_t NodeMachine::KeepFor(const Peer& peer, ObjectValue value) {
  Object& object = objects_.FindOrMake(KeptId(peer, ++last_kept_));
  objects_.AddReferrer(peer.process, object);
  Fill(object, std::move(value), {});
  return last_kept_;
}

Object* NodeMachine::FindKept(const Peer& peer, std::uint64_t kept) const {
  return objects_.Find(KeptId(peer, kept));
}

// ---- Ends.

// A loan is over because its worker is.
void NodeMachine::EndLoan(Worker& worker, const TaskFailure& cause) {
  if (worker.lender != 0) {
    if (Peer* const peer = FindPeer(worker.lender)) peer->borrowed.erase(worker.loan);
  } else if (Peer* const peer = FindPeer(worker.borrower)) {
    peer->lent.erase(worker.loan);
    Tell(peer->index, {.kind = PeerMessage::Kind::kLost, .loan = worker.loan, .cause = cause});
  }
  worker.loan = 0;
}

void NodeMachine::PeerDied(Peer& peer, const TaskFailure& cause) {
  const auto found = peers_.find(peer.index);
  const std::unique_ptr<Peer> dead = std::move(found->second);
  peers_.erase(found);
  TellScheduler();
  for (const auto& [loan, worker] : dead->lent) {
    effects_->EndWorker(*worker, "the node that it was lent to is gone");
    Retire(*worker, "the node that it was lent to is gone");
  }
  for (const auto& [loan, worker] : dead->borrowed) WorkerDied(*worker, cause);
  objects_.DropProcess(dead->process);
  LoseAt(dead->index, cause);
  SpreadNews();
}

}  // namespace menger
