#include <algorithm>
#include <utility>

#include "menger/base/error.h"
#include "menger/runtime/simulation/simulated_node.h"

// How simulated nodes reach each other, and how what a lent worker says reaches its borrower.
namespace menger::simulation {
namespace {

constexpr std::int64_t kResendNanoseconds = 2'000'000;
constexpr std::int64_t kAcknowledgeNanoseconds = 500'000;
constexpr std::uint64_t kBulkWindowBytes = 100;  // One value or two.

}  // namespace

NodeId SimulatedNode::IdOf(int number) {
  return NodeId{Id{.high = 1, .low = 1000 + static_cast<std::uint64_t>(number)}};
}

void SimulatedNode::Meet(const SimulatedNode& other) {
  if (const auto before = neighbours_.find(other.number()); before != neighbours_.end()) {
    HearOfDeath(other.number(), before->second.epoch);
  }
  Peer& peer = machine_.AddPeer(IdOf(other.number()), other.epoch(), ResourcesOf(other.plan()),
                                other.plan().reading_bytes_max);
  if (common_.guests) {
    machine_.AwaitProgram(peer);
    programs_.emplace_back(peer.index, ++last_program_);
  }
  neighbours_.emplace(
      other.number(),
      Neighbour{.epoch = other.epoch(),
                .peer = peer.index,
                .control = Link(epoch_, other.epoch(), kResendNanoseconds, Link::kWindowBytes,
                                kAcknowledgeNanoseconds),
                .bulk = Link(epoch_, other.epoch(), kResendNanoseconds, kBulkWindowBytes)});
}

bool SimulatedNode::Knows(int number, std::uint64_t epoch) const {
  const auto found = neighbours_.find(number);
  return found != neighbours_.end() && found->second.epoch == epoch;
}

void SimulatedNode::HearOfDeath(int number, std::uint64_t epoch) {
  const auto found = neighbours_.find(number);
  if (found == neighbours_.end() || found->second.epoch != epoch) {
    return machine_.NodeIsOver(IdOf(number), epoch);
  }
  const PeerIndex index = found->second.peer;
  neighbours_.erase(found);
  std::erase_if(given_, [&](const Gift& gift) {
    if (gift.other != index) return false;
    machine_.objects().DropReferrer(kDriver, *machine_.objects().Find(gift.object));
    return true;
  });
  const std::uint64_t rebuilt = machine_.counts().rebuilt;
  machine_.PeerDied(*machine_.FindPeer(index), {.kind = FailureKind::kNodeDied,
                                                .code = ErrorCode::kUnavailable,
                                                .text = fmt::format("node {} is gone", number)});
  if (common_.orderly && machine_.counts().rebuilt != rebuilt) {
    throw Internal("a value is made again that lay at node {}, which had drained", number);
  }
  EndPulls({number, epoch}, index);
}

void SimulatedNode::Drain() {
  drains_ = true;
  machine_.Drain();
}

bool SimulatedNode::HasActorsOfOthers() {
  return std::ranges::any_of(workers_, [this](const auto& entry) {
    const Worker* const worker = machine_.FindWorker(entry.first);
    return worker != nullptr && worker->loan != 0 && worker->stays;
  });
}

Link* SimulatedNode::LinkTo(int number, Lane lane) {
  const auto found = neighbours_.find(number);
  if (found == neighbours_.end()) return nullptr;
  return lane == Lane::kControl ? &found->second.control : &found->second.bulk;
}

void SimulatedNode::Arrive(int from, Lane lane, Link::Packet packet) {
  const auto found = neighbours_.find(from);
  if (found == neighbours_.end()) return;
  std::vector<Letter> letters;
  const PeerIndex sender = found->second.peer;
  LinkTo(from, lane)->Arrived(std::move(packet), letters);
  for (const Letter& letter : letters) letter(*this, sender);
}

void SimulatedNode::Send(PeerIndex to, Letter letter) {
  for (auto& [number, neighbour] : neighbours_) {
    if (neighbour.peer == to) return neighbour.control.Send(std::move(letter));
  }
}

void SimulatedNode::TellPeer(const Peer& peer, const PeerMessage& message) {
  if (message.kind == PeerMessage::Kind::kKeep) ++counts_.away;
  if (message.kind == PeerMessage::Kind::kReserve) ++counts_.asked;
  if (message.kind == PeerMessage::Kind::kGiveBack && !message.clean) ++counts_.rests;
  const bool lends = message.kind == PeerMessage::Kind::kLend;
  if (lends && message.scheduling.starts_with('@')) ++counts_.inside;
  if (message.kind == PeerMessage::Kind::kCall) ++counts_.called;
  if (message.kind == PeerMessage::Kind::kPull && message.object.valid()) ++counts_.brought;
  Send(peer.index, [message](SimulatedNode& receiver, PeerIndex sender) {
    if (message.kind == PeerMessage::Kind::kCall) {
      receiver.checker_.Called(*TaskSpec::Copy(message.call.bytes()));
    }
    receiver.machine_.Receive(*receiver.machine_.FindPeer(sender), message);
  });
}

// ---- The lender.

SimulatedWorker* SimulatedNode::FindLent(PeerIndex borrower, LoanNumber loan) {
  const Peer& peer = *machine_.FindPeer(borrower);
  const auto lent = peer.lent.find(loan);
  if (lent == peer.lent.end()) return nullptr;
  SimulatedWorker& worker = *workers_.at(lent->second->index);
  return worker.alive() ? &worker : nullptr;
}

void SimulatedNode::Forward(News news) {
  const Peer* const peer = machine_.FindPeer(news.borrower);
  if (peer == nullptr) {
    for (const ObjectValue& value : news.values) Free(value);
    return;
  }
  for (ObjectValue& value : news.values) {
    if (value.kind != ObjectValue::Kind::kShared) continue;
    const std::uint64_t bytes = value.extent.bytes;
    value = ObjectValue::Remote(0, machine_.KeepFor(*peer, value), bytes);
  }
  Send(news.borrower, [news](SimulatedNode& owner, PeerIndex lender) {
    News told = news;
    owner.Take(lender, told);
  });
}

void SimulatedNode::SayReturned(PeerIndex borrower, LoanNumber loan, LeaseNumber lease) {
  Send(borrower, [loan, lease](SimulatedNode& owner, PeerIndex lender) {
    Worker* const worker = NodeMachine::FindBorrowed(*owner.machine_.FindPeer(lender), loan);
    if (worker != nullptr) owner.machine_.Returned(*worker, lease);
  });
}

Value SimulatedNode::ReadKept(PeerIndex borrower, std::uint64_t kept) {
  const Object* const object = machine_.FindKept(*machine_.FindPeer(borrower), kept);
  if (object == nullptr) throw Internal("value {} does not lie here any longer", kept);
  return DecodeValue(Read(object->value).bytes());
}

// ---- Values that are brought from node to node.

void SimulatedNode::Pull(const PullOrder& order) {
  Pulling pulling{.owner = {number_, epoch_}, .pull = order.pull};
  for (const auto& [number, neighbour] : neighbours_) {
    if (order.owner != nullptr && neighbour.peer == order.owner->index)
      pulling.owner = {number, neighbour.epoch};
  }
  if (order.here) {
    pulling_.push_back(pulling);
    here_already_.push_back({pulling.owner, order.pull, order.name});
    return;
  }
  const Peer& source = order.source != nullptr ? *order.source : *order.owner;
  pulling.source = source.index;
  pulling_.push_back(pulling);
  if (order.owner != nullptr && order.source != nullptr) ++counts_.spread;
  Send(source.index,
       [owner = pulling.owner, pull = order.pull, name = order.name](
           SimulatedNode& has, PeerIndex asker) { has.ServePull(asker, owner, pull, name); });
}

Peer* SimulatedNode::FindPeer(const Owner& owner) {
  const auto found = neighbours_.find(owner.number);
  if (found == neighbours_.end() || found->second.epoch != owner.epoch) return nullptr;
  return machine_.FindPeer(found->second.peer);
}

void SimulatedNode::ServePull(PeerIndex asker, const Owner& owner, std::uint64_t pull,
                              std::uint64_t name) {
  const Object* object = nullptr;
  if (owner == Owner{number_, epoch_}) {
    object = machine_.FindPull(pull);
  } else if (const Peer* const peer = FindPeer(owner)) {
    object = machine_.FindKept(*peer, name);
  }
  std::optional<Payload> bytes;
  if (object != nullptr) bytes = Read(object->value);
  for (auto& [number, neighbour] : neighbours_) {
    if (neighbour.peer != asker) continue;
    neighbour.bulk.Send([owner, pull, bytes](SimulatedNode& wants,
                                             PeerIndex) { wants.TakePulled(owner, pull, bytes); },
                        bytes ? bytes->size() : 0);
  }
}

void SimulatedNode::CopyHere() {
  for (const HereAlready& copy : std::exchange(here_already_, {})) {
    const Peer* const peer = FindPeer(copy.owner);
    const Object* const object = peer != nullptr ? machine_.FindKept(*peer, copy.name) : nullptr;
    std::optional<Payload> bytes;
    if (object != nullptr) bytes = Read(object->value);
    TakePulled(copy.owner, copy.pull, bytes);
  }
}

void SimulatedNode::TakePulled(const Owner& owner, std::uint64_t pull,
                               const std::optional<Payload>& bytes) {
  const auto known = std::erase_if(pulling_, [&](const Pulling& pulling) {
    return pulling.owner == owner && pulling.pull == pull;
  });
  if (known == 0) return;  // Its owner is gone, or who has it.
  Peer* const peer = FindPeer(owner);
  if (!bytes || OneIn(20)) return machine_.NotPulled(peer, pull);
  ++counts_.fetched;
  extents_.emplace(++last_extent_, Extent{*bytes, 0, true});
  machine_.Pulled(peer, pull,
                  ObjectValue::Shared({.offset = last_extent_, .bytes = bytes->size()}));
}

// Of those that are gone nothing comes any longer.
void SimulatedNode::EndPulls(const Owner& gone, PeerIndex source) {
  std::erase_if(pulling_, [&](const Pulling& pulling) { return pulling.owner == gone; });
  std::vector<Pulling> failed;
  std::erase_if(pulling_, [&](const Pulling& pulling) {
    if (pulling.source != source) return false;
    failed.push_back(pulling);
    return true;
  });
  for (const Pulling& pulling : failed) {
    machine_.NotPulled(FindPeer(pulling.owner), pulling.pull);
  }
}

// ---- What drivers give one another.

void SimulatedNode::TakeGift(PeerIndex giver, const ForeignName& name, const Reference& reference,
                             const KnownPointer& known) {
  machine_.Refer(kDriver, name);
  held_.push_back({.reference = reference, .known = known});
  taken_.push_back({giver, name.object});
}

void SimulatedNode::SayThanks() {
  std::erase_if(taken_, [this](const Gift& gift) {
    const Object* const object = machine_.objects().Find(gift.object);
    if (object != nullptr && !machine_.IsRegistered(*object)) return false;
    Send(gift.other, [id = gift.object](SimulatedNode& giver, PeerIndex taker) {
      giver.TakeThanks(taker, id);
    });
    return true;
  });
}

void SimulatedNode::TakeThanks(PeerIndex taker, ObjectId id) {
  const auto gift = std::ranges::find_if(
      given_, [&](const Gift& one) { return one.other == taker && one.object == id; });
  given_.erase(gift);
  machine_.objects().DropReferrer(kDriver, *machine_.objects().Find(id));
}

// ---- The owner.

void SimulatedNode::Take(PeerIndex from, News& news) {
  for (ObjectValue& value : news.values) {
    if (value.kind == ObjectValue::Kind::kRemote) value.node = from;
  }
  const Peer& peer = *machine_.FindPeer(from);
  Worker* const record = NodeMachine::FindBorrowed(peer, news.loan);
  if (record != nullptr) {
    ++counts_.remote;
    return news.tell(*this, *record, news.values);
  }
  // Of a worker that is gone: nobody wants it.
  for (const ObjectValue& value : news.values) {
    if (value.node != 0) TellPeer(peer, {.kind = PeerMessage::Kind::kDrop, .kept = value.kept});
  }
}

void SimulatedNode::Bring(Worker& record, std::uint64_t request, Object& object) {
  SimulatedWorker::Answer answer = SimulatedWorker::MakeAnswer(*this, request, object, record);
  if (record.lender == 0) return workers_.at(record.index)->Ready(std::move(answer));
  Send(record.lender, [loan = record.loan, answer](SimulatedNode& lender, PeerIndex borrower) {
    SimulatedWorker* const lent = lender.FindLent(borrower, loan);
    if (lent == nullptr) return;
    SimulatedWorker::Answer resolved = answer;
    if (answer.kept != 0) resolved.value = lender.ReadKept(borrower, answer.kept);
    lent->Ready(std::move(resolved));
  });
}

}  // namespace menger::simulation
