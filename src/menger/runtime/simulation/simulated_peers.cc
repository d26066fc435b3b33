#include <utility>

#include "menger/base/error.h"
#include "menger/runtime/simulation/simulated_node.h"

// How simulated nodes reach each other, and how what a lent worker says reaches its borrower.
namespace menger::simulation {
namespace {

constexpr std::int64_t kResendNanoseconds = 2'000'000;

NodeId IdOf(int number) {
  return NodeId{Id{.high = 1, .low = 1000 + static_cast<std::uint64_t>(number)}};
}

}  // namespace

void SimulatedNode::Meet(const SimulatedNode& other) {
  Peer& peer = machine_.AddPeer(IdOf(other.number()), other.epoch(), ResourcesOf(other.plan()));
  neighbours_.erase(other.number());
  neighbours_.emplace(other.number(),
                      Neighbour{.epoch = other.epoch(),
                                .peer = peer.index,
                                .link = Link(epoch_, other.epoch(), kResendNanoseconds)});
}

void SimulatedNode::HearOfDeath(int number, std::uint64_t epoch) {
  const auto found = neighbours_.find(number);
  if (found == neighbours_.end() || found->second.epoch != epoch) return;
  const PeerIndex index = found->second.peer;
  neighbours_.erase(found);
  machine_.PeerDied(*machine_.FindPeer(index), {.kind = FailureKind::kNodeDied,
                                                .code = ErrorCode::kUnavailable,
                                                .text = fmt::format("node {} is gone", number)});
}

Link* SimulatedNode::LinkTo(int number) {
  const auto found = neighbours_.find(number);
  return found != neighbours_.end() ? &found->second.link : nullptr;
}

void SimulatedNode::Arrive(int from, Link::Packet packet) {
  const auto found = neighbours_.find(from);
  if (found == neighbours_.end()) return;
  std::vector<Letter> letters;
  const PeerIndex sender = found->second.peer;
  found->second.link.Arrived(std::move(packet), letters);
  for (const Letter& letter : letters) letter(*this, sender);
}

void SimulatedNode::Send(PeerIndex to, Letter letter) {
  for (auto& [number, neighbour] : neighbours_) {
    if (neighbour.peer == to) return neighbour.link.Send(std::move(letter));
  }
}

void SimulatedNode::TellPeer(const Peer& peer, const PeerMessage& message) {
  if (message.kind == PeerMessage::Kind::kKeep) ++counts_.away;
  Send(peer.index, [message](SimulatedNode& receiver, PeerIndex sender) {
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

void SimulatedNode::GetKept(PeerIndex borrower, std::uint64_t kept, ObjectId id) {
  const Object* const object = machine_.FindKept(*machine_.FindPeer(borrower), kept);
  if (object == nullptr) return;
  Send(borrower, [kept, id, bytes = Read(object->value)](SimulatedNode& owner, PeerIndex lender) {
    owner.TakeFetched(lender, kept, id, bytes);
  });
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

void SimulatedNode::Restore(Object& object) {
  const ObjectValue& value = object.value;
  if (!fetching_.emplace(value.node, value.kept).second) return;
  Send(value.node, [kept = value.kept, id = object.id](SimulatedNode& lender, PeerIndex borrower) {
    lender.GetKept(borrower, kept, id);
  });
}

void SimulatedNode::TakeFetched(PeerIndex from, std::uint64_t kept, ObjectId id,
                                const Payload& bytes) {
  if (fetching_.erase({from, kept}) == 0) return;
  ++counts_.fetched;
  extents_.emplace(++last_extent_, Extent{bytes, 0, true});
  machine_.Restored(*machine_.objects().Find(id), {.offset = last_extent_, .bytes = bytes.size()});
}

}  // namespace menger::simulation
