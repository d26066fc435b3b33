#include "menger/runtime/driver/neighbours.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "menger/runtime/driver/process_worker.h"

namespace menger {
namespace {

// A stream loses nothing while it lives; once it is another SendAgain is called.
constexpr std::int64_t kNeverResend = std::numeric_limits<std::int64_t>::max();
// One who is asked answers, mostly, and with that acknowledges.
constexpr std::int64_t kAcknowledgeAfter = 1'000'000;
constexpr std::uint64_t kBulkWindowBytes = std::uint64_t{16} << 20;

// Whether a message of a worker says what has become of a call.
bool EndsCall(std::span<const std::byte> message) {
  ToNode kind;
  if (message.size() < sizeof(kind)) return false;
  std::memcpy(&kind, message.data(), sizeof(kind));
  return kind == ToNode::kFinished || kind == ToNode::kFailed;
}

}  // namespace

// ---- Who is there.

Peer* Neighbours::Meet(const NodeRecord& node, bool beside) {
  const NodeLife life{node.id, node.epoch};
  if (Find(life) != nullptr) return nullptr;
  Peer& peer =
      machine_.AddPeer(node.id, node.epoch, node.resources, ReadingRooms::PartOf(node.store_bytes));
  // An earlier life of it is over with that.
  std::erase_if(neighbours_,
                [this](const auto& entry) { return machine_.FindPeer(entry.first) == nullptr; });
  neighbours_.emplace(
      peer.index, Neighbour{.life = life,
                            .peer = peer.index,
                            .control = Link(own_.epoch, node.epoch, kNeverResend,
                                            Link::kWindowBytes, kAcknowledgeAfter),
                            .bulk = Link(own_.epoch, node.epoch, kNeverResend, kBulkWindowBytes),
                            .shows = beside});
  return &peer;
}

void Neighbours::HearOfEnd(const NodeLife& node, const std::string& why) {
  Neighbour* const found = Find(node);
  if (found == nullptr) return machine_.NodeIsOver(node.node, node.epoch);
  const PeerIndex index = found->peer;
  // Its workers' hosts are asked until the machine has done with them.
  const auto gone = neighbours_.extract(index);
  machine_.PeerDied(*machine_.FindPeer(index),
                    {.kind = FailureKind::kNodeDied, .code = ErrorCode::kUnavailable, .text = why});
  shown_.PeerGone(index);
  const std::vector<Coming> coming = std::exchange(coming_, {});
  for (const Coming& one : coming) {
    const bool orphan = one.owner == node;
    if (orphan || one.source == index) {
      EndComing(one, /*arrived=*/false);
    } else {
      coming_.push_back(one);
    }
  }
}

void Neighbours::SayFarewell() {
  shown_.SayFarewell();
  for (const auto& [index, neighbour] : neighbours_) {
    Send(index, {.kind = NodeLetter::Kind::kLeave});
  }
}

bool Neighbours::KnowAll() const {
  return std::ranges::all_of(neighbours_,
                             [](const auto& entry) { return entry.second.control.all_arrived(); });
}

void Neighbours::SendAgain(const NodeLife& node, PeerLane lane) {
  Neighbour* const found = Find(node);
  if (found == nullptr) return;
  (lane == PeerLane::kControl ? found->control : found->bulk).SendAgain();
}

Neighbours::Neighbour* Neighbours::Find(PeerIndex peer) {
  const auto found = neighbours_.find(peer);
  return found != neighbours_.end() ? &found->second : nullptr;
}

Neighbours::Neighbour* Neighbours::Find(const NodeLife& life) {
  const auto found = std::ranges::find_if(
      neighbours_, [&life](const auto& entry) { return entry.second.life == life; });
  return found != neighbours_.end() ? &found->second : nullptr;
}

PeerIndex Neighbours::PeerOf(const NodeLife& life) {
  const Neighbour* const found = Find(life);
  return found != nullptr ? found->peer : 0;
}

// ---- Letters.

void Neighbours::Send(PeerIndex to, NodeLetter letter) {
  if (letter.kind == NodeLetter::Kind::kFromWorker && EndsCall(letter.bytes)) ++traffic_.calls;
  const std::uint64_t bytes = letter.bytes.size();
  if (Neighbour* const neighbour = Find(to)) {
    neighbour->control.Send(std::make_shared<NodeLetter>(std::move(letter)), bytes);
  }
}

void Neighbours::SendBulk(PeerIndex to, NodeLetter letter) {
  const std::uint64_t bytes = letter.part.size();
  if (Neighbour* const neighbour = Find(to)) {
    neighbour->bulk.Send(std::make_shared<NodeLetter>(std::move(letter)), bytes);
  }
}

std::vector<Neighbours::Flying> Neighbours::TakeOutgoing(std::int64_t now) {
  std::vector<Flying> outgoing;
  for (auto& [index, neighbour] : neighbours_) {
    ForgetReturned(neighbour);
    for (const PeerLane lane : {PeerLane::kControl, PeerLane::kBulk}) {
      Link& link = lane == PeerLane::kControl ? neighbour.control : neighbour.bulk;
      for (Link::Packet& packet : link.Outgoing(now)) {
        outgoing.push_back({neighbour.life, lane, std::move(packet)});
      }
    }
  }
  return outgoing;
}

void Neighbours::Arrive(Flying flying) {
  Neighbour* const from = Find(flying.node);
  if (from == nullptr) return;
  std::vector<SharedLetter> letters;
  Link& link = flying.lane == PeerLane::kControl ? from->control : from->bulk;
  // It waits for others.
  if (flying.packet.number > link.next()) {
    NodeLetter& letter = *flying.packet.letter;
    letter.part = letter.part.Kept();
  }
  link.Arrived(std::move(flying.packet), letters);
  for (const SharedLetter& next : letters) Take(*from, *next);
}

void Neighbours::Take(Neighbour& from, NodeLetter& letter) {
  switch (letter.kind) {
    case NodeLetter::Kind::kMessage:
      // Its workers have numbers that are used here, too.
      if (std::string& worker = letter.message.cause.worker; !worker.empty()) {
        worker += fmt::format(", node {}", ShortName(from.life.node));
      }
      return TakeMessage(from, letter.message);
    case NodeLetter::Kind::kToWorker:
    case NodeLetter::Kind::kRecall:
    case NodeLetter::Kind::kInterrupt:
      return TakeForWorker(from, letter);
    case NodeLetter::Kind::kFromWorker:
    case NodeLetter::Kind::kReturned:
      return TakeFromWorker(from, letter);
    case NodeLetter::Kind::kSend:
      return SendValue(from, std::move(letter), 0);
    case NodeLetter::Kind::kPart:
    case NodeLetter::Kind::kNone:
      return TakePart(letter);
    case NodeLetter::Kind::kShown:
      return TakeShown(from, letter);
    case NodeLetter::Kind::kSeen:
      return shown_.Seen(from.peer, letter.name);
    case NodeLetter::Kind::kShowLess:
      return shown_.NeedLess(from.peer, letter.name);
    case NodeLetter::Kind::kLeave:
      throw Unavailable("it has left the cluster");
    case NodeLetter::Kind::kLines:
      return TakeLines(from, letter);
    case NodeLetter::Kind::kLinesWanted:
      return hooks_.on_lines_wanted(from.peer);
  }
}

void Neighbours::Tell(const Peer& peer, const PeerMessage& message) {
  Send(peer.index, {.message = message});
}

void Neighbours::TakeMessage(Neighbour& from, const PeerMessage& message) {
  Peer& peer = *machine_.FindPeer(from.peer);
  machine_.Receive(peer, message);
  if (message.kind != PeerMessage::Kind::kLend) return;
  from.has_lent = true;
  Worker* const worker = NodeMachine::FindBorrowed(peer, message.loan);
  if (worker == nullptr || worker->host != nullptr) return;
  auto host = std::make_unique<BorrowedWorker>(machine_, *worker, static_cast<LetterBox&>(*this));
  worker->host = host.get();
  from.borrowed.insert_or_assign(message.loan, std::move(host));
}

// Hosts of workers that were given back, or are gone.
void Neighbours::ForgetReturned(Neighbour& from) {
  const Peer& peer = *machine_.FindPeer(from.peer);
  std::erase_if(from.borrowed, [&peer](const auto& entry) {
    return NodeMachine::FindBorrowed(peer, entry.first) == nullptr;
  });
}

// ---- Workers.

void Neighbours::Lent(Worker& worker) {
  ProcessWorker* const process = hooks_.find_process(worker.index);
  if (process == nullptr) return;
  process->Lend(
      std::make_unique<LentWorker>(*process, machine_, worker, static_cast<LetterBox&>(*this)));
}

std::vector<LeaseNumber> Neighbours::BegunBy(const Worker& worker) {
  ProcessWorker* const process = hooks_.find_process(worker.index);
  if (process == nullptr || process->loan() == nullptr) return {};
  return process->loan()->Begun();
}

void Neighbours::TakeForWorker(Neighbour& from, NodeLetter& letter) {
  const Peer& peer = *machine_.FindPeer(from.peer);
  const auto lent = peer.lent.find(letter.loan);
  if (lent == peer.lent.end()) return;
  ProcessWorker* const process = hooks_.find_process(lent->second->index);
  LentWorker* const loan = process != nullptr ? process->loan() : nullptr;
  if (loan == nullptr) return;
  if (letter.kind == NodeLetter::Kind::kToWorker) return loan->Tell(std::move(letter.bytes));
  if (letter.kind == NodeLetter::Kind::kRecall) return loan->Recall(letter.lease);
  loan->Interrupt(letter.lease);
}

void Neighbours::TakeFromWorker(Neighbour& from, const NodeLetter& letter) {
  const Peer& peer = *machine_.FindPeer(from.peer);
  Worker* const worker = NodeMachine::FindBorrowed(peer, letter.loan);
  if (worker == nullptr) return DropValuesOf(from, letter.bytes);
  if (letter.kind == NodeLetter::Kind::kReturned) return machine_.Returned(*worker, letter.lease);
  from.borrowed.at(letter.loan)->Take(letter.bytes);
}

// Of a worker that is gone: nobody wants what it has made.
void Neighbours::DropValuesOf(Neighbour& from, std::span<const std::byte> message) {
  ToNode kind;
  if (message.size() < sizeof(kind)) return;
  std::memcpy(&kind, message.data(), sizeof(kind));
  MessageReader reader(message);
  std::uint32_t values = 1;
  if (kind == ToNode::kFinished) {
    values = reader.Take<FinishedMessage>().results;
  } else if (kind == ToNode::kPut) {
    reader.Take<ReferenceMessage>();
  } else if (kind == ToNode::kYield) {
    reader.Take<YieldMessage>();
  } else {
    return;
  }
  for (; values > 0; --values) {
    std::vector<ObjectId> contained;
    const ObjectValue value = ReadResult(reader, contained);
    if (value.kind != ObjectValue::Kind::kRemote) continue;
    Tell(*machine_.FindPeer(from.peer), {.kind = PeerMessage::Kind::kDrop, .kept = value.kept});
  }
}

// ---- What workers print.

void Neighbours::SendLines(PeerIndex to, std::vector<PrintedLine> lines, bool last) {
  std::uint64_t bytes = 0;
  for (const PrintedLine& line : lines) bytes += LineQueue<PrintedLine>::BytesOf(line);
  Neighbour* const neighbour = Find(to);
  if (neighbour == nullptr) return;
  NodeLetter letter{.kind = NodeLetter::Kind::kLines, .last = last, .lines = std::move(lines)};
  neighbour->control.Send(std::make_shared<NodeLetter>(std::move(letter)), bytes);
}

void Neighbours::AskForLines() {
  for (auto& [index, neighbour] : neighbours_) {
    if (!neighbour.has_lent) continue;
    neighbour.owes_lines = true;
    Send(index, {.kind = NodeLetter::Kind::kLinesWanted});
  }
}

bool Neighbours::AwaitsLines() const {
  return std::ranges::any_of(neighbours_,
                             [](const auto& entry) { return entry.second.owes_lines; });
}

// By its node a worker has a number; the actor that lives there is known here.
void Neighbours::TakeLines(Neighbour& from, NodeLetter& letter) {
  if (letter.last) from.owes_lines = false;
  const Peer& peer = *machine_.FindPeer(from.peer);
  std::vector<DistantLine> lines;
  for (PrintedLine& line : letter.lines) {
    const Worker* const worker = NodeMachine::FindBorrowed(peer, line.loan);
    const Actor* const actor = worker != nullptr ? worker->actor : nullptr;
    lines.push_back({.node = from.life.node,
                     .name = actor != nullptr ? std::string(machine_.NameOf(*actor->construction))
                                              : fmt::format("worker {}", line.worker),
                     .worker = static_cast<int>(line.worker),
                     .process = static_cast<pid_t>(line.process),
                     .left_out = line.left_out,
                     .text = std::move(line.text)});
  }
  if (!lines.empty()) hooks_.on_lines(std::move(lines));
}

}  // namespace menger
