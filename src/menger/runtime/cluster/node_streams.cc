#include "menger/runtime/cluster/node_streams.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "menger/base/clock.h"
#include "menger/runtime/net/peer_codec.h"

namespace menger {
namespace {

// Attempts one after the other, with growing pauses: half a second or so.
constexpr int kNotFoundMax = 5;

constexpr std::array<PeerLane, 2> kNodeLanes = {PeerLane::kControl, PeerLane::kBulk};

std::size_t PlaceOf(PeerLane lane) { return lane == PeerLane::kControl ? 0 : 1; }

}  // namespace

class NodeStreams::Dialled final : public PeerStreamOwner {
 public:
  // `looks`: whether anybody is there, but connects for nothing else.
  Dialled(NodeStreams& to, const NodeLife& node, PeerLane lane, bool looks)
      : to_(to), node_(node), lane_(lane), looks_(looks) {}

  bool looks() const { return looks_; }

  void Opened(std::shared_ptr<PeerStream> stream) override {
    const NodeLife& who = stream->peer().node;
    const bool is_it = who.node == node_.node && who.epoch == node_.epoch;
    if (is_it && !looks_) return to_.Opened(std::move(stream));
    stream->Close();
    to_.DialFailed(node_, lane_,
                   who.node == node_.node ? Unavailable("it does not connect, although it is there")
                                          : NotFound("another node answers at its address"));
  }
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    to_.Arrived(stream, frames);
  }
  void HasRoom(PeerStream& stream) override { to_.HasRoom(stream); }
  void Ended(PeerStream& stream, const Error& why) override { to_.Ended(stream, why); }
  void Failed(const std::string&, const Error& why) override { to_.DialFailed(node_, lane_, why); }

 private:
  NodeStreams& to_;
  const NodeLife node_;
  const PeerLane lane_;
  const bool looks_;
};

NodeStreams::NodeStreams(PeerStreams& streams, NodeLife own, Hooks hooks, Options options)
    : streams_(streams), own_(own), hooks_(std::move(hooks)), options_(options) {}

NodeStreams::~NodeStreams() = default;

// ---- Who is there.

void NodeStreams::Meet(const NodeLife& node, std::string address, std::int64_t now) {
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = nodes_.try_emplace(KeyOf(node));
  if (!is_new) return;
  entry->second.life = node;
  entry->second.address = std::move(address);
  entry->second.meeting = Meeting(++meetings_);
  for (const PeerLane which : kNodeLanes) {
    Lane& lane = entry->second.lanes[PlaceOf(which)];
    lane.since = now;
    lane.pause = options_.pause;
    const bool looks = node.node < own_.node;
    if (looks) lane.next_try = now + options_.pause_max.count();  // It is about to connect.
    dialled_.push_back(std::make_unique<Dialled>(*this, node, which, looks));
    lane.dialled = dialled_.back().get();
  }
}

void NodeStreams::Forget(const NodeLife& node) {
  const MutexLock lock(mutex_);
  const auto found = nodes_.find(KeyOf(node));
  if (found == nodes_.end()) return;
  Close(found->second);
  nodes_.erase(found);
}

void NodeStreams::Close(Node& node) {
  for (Lane& lane : node.lanes) {
    if (const auto stream = std::exchange(lane.stream, nullptr)) stream->Close();
    lane.greeted = false;
    lane.unsent.clear();
  }
}

void NodeStreams::GiveUp(Node& node) {
  Close(node);
  node.meeting = Meeting(++meetings_);
  node.lost = true;
  node.found = false;
}

std::size_t NodeStreams::connected() const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      nodes_, [](const auto& entry) { return entry.second.lanes[0].greeted; }));
}

bool NodeStreams::IsConnected(const NodeLife& node) const {
  if (node == own_) return true;
  const MutexLock lock(mutex_);
  const auto found = nodes_.find(KeyOf(node));
  return found != nodes_.end() && found->second.lanes[0].greeted;
}

std::uint64_t NodeStreams::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

std::int64_t NodeStreams::Tend(std::int64_t now) {
  TellFound();
  std::int64_t wake_at = std::numeric_limits<std::int64_t>::max();
  std::vector<std::pair<NodeLife, std::string>> unreachable;
  {
    const MutexLock lock(mutex_);
    for (auto entry = nodes_.begin(); entry != nodes_.end();) {
      Node& node = entry->second;
      const Lane* const over = TendLanes(node, now, wake_at);
      const bool is_dead = over != nullptr && over->not_found >= kNotFoundMax;
      if (over != nullptr && !node.lost) {
        unreachable.emplace_back(node.life, over->last_failure);
        GiveUp(node);
        wake_at = now;
      }
      entry = is_dead ? nodes_.erase(entry) : std::next(entry);
    }
  }
  for (const auto& [life, why] : unreachable) {
    hooks_.on_unreachable(life, "it cannot be reached: " + why);
  }
  return wake_at;
}

const NodeStreams::Lane* NodeStreams::TendLanes(Node& node, std::int64_t now,
                                                std::int64_t& wake_at) {
  for (const PeerLane which : kNodeLanes) {
    Lane& lane = node.lanes[PlaceOf(which)];
    if (lane.greeted) continue;
    if (lane.not_found >= kNotFoundMax) return &lane;
    if (!node.lost) {
      const std::int64_t lost_at = lane.since + options_.unreachable_after.count();
      if (now >= lost_at) return &lane;
      wake_at = std::min(wake_at, lost_at);
    }
    if (lane.stream != nullptr || lane.connecting) continue;
    if (now < lane.next_try) {
      wake_at = std::min(wake_at, lane.next_try);
      continue;
    }
    lane.connecting = true;
    // Who only looks does so on a lane on which nothing is said then.
    streams_.Connect(node.address, lane.dialled->looks() ? PeerLane::kFiles : which, *lane.dialled);
  }
  return nullptr;
}

// They are met, before anything of theirs is taken.
void NodeStreams::TellFound() {
  std::vector<NodeLife> found;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, node] : nodes_) {
      if (node.found) found.push_back(node.life);
    }
  }
  for (const NodeLife& life : found) {
    const bool wanted = hooks_.on_found(life);
    const MutexLock lock(mutex_);
    const auto entry = nodes_.find(KeyOf(life));
    if (entry == nodes_.end()) continue;
    entry->second.found = false;
    if (wanted) BeginAgain(entry->second);
  }
}

void NodeStreams::BeginAgain(Node& node) {
  const std::int64_t now = MonotonicNanoseconds();
  node.lost = false;
  for (Lane& lane : node.lanes) {
    lane.since = lane.next_try = now;
    lane.pause = options_.pause;
    lane.not_found = 0;
  }
}

void NodeStreams::DialFailed(const NodeLife& node, PeerLane which, const Error& why) {
  {
    const MutexLock lock(mutex_);
    const auto found = nodes_.find(KeyOf(node));
    if (found == nodes_.end()) return;
    Lane& lane = found->second.lanes[PlaceOf(which)];
    lane.connecting = false;
    if (lane.stream != nullptr) return;  // It has connected by itself.
    Lost(found->second, lane, why);
  }
  hooks_.on_doubt();
}

void NodeStreams::Lost(const Node& node, Lane& lane, const Error& why) {
  const std::int64_t now = MonotonicNanoseconds();
  lane.stream = nullptr;
  if (std::exchange(lane.greeted, false)) {
    lane.since = now;
    ++lost_;
  }
  lane.unsent.clear();
  lane.connecting = false;
  lane.not_found = why.code() == ErrorCode::kNotFound ? lane.not_found + 1 : 0;
  lane.last_failure = why.what();
  lane.next_try = now + lane.pause.count();
  lane.pause =
      std::min(2 * lane.pause, node.lost ? options_.pause_max_of_lost : options_.pause_max);
}

// ---- Streams.

NodeStreams::Node* NodeStreams::NodeOf(const PeerStream& stream) {
  const auto found = nodes_.find(KeyOf(stream.peer().node));
  return found != nodes_.end() ? &found->second : nullptr;
}

NodeStreams::Lane* NodeStreams::LaneOf(const PeerStream& stream) {
  Node* const node = NodeOf(stream);
  if (node == nullptr) return nullptr;
  Lane& lane = node->lanes[PlaceOf(stream.peer().lane)];
  return lane.stream.get() == &stream ? &lane : nullptr;
}

void NodeStreams::Opened(std::shared_ptr<PeerStream> stream) {
  {
    const MutexLock lock(mutex_);
    if (Node* const node = NodeOf(*stream)) {
      Lane& lane = node->lanes[PlaceOf(stream->peer().lane)];
      if (const auto before = std::exchange(lane.stream, stream)) before->Close();
      if (std::exchange(lane.greeted, false)) lane.since = MonotonicNanoseconds();
      lane.unsent.clear();
      lane.connecting = false;
      stream->TrySend(Encode(node->meeting.greeting()));
      return;
    }
  }
  stream->Close();
  hooks_.on_doubt();
}

void NodeStreams::Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) {
  bool greeted = false;
  {
    const MutexLock lock(mutex_);
    const Lane* const lane = LaneOf(stream);
    if (lane == nullptr) return;
    greeted = lane->greeted;
  }
  if (!greeted) {
    if (Hear(stream, frames.front()) != Fate::kOpened) return;
    frames = frames.subspan(1);
  }
  if (!frames.empty()) hooks_.on_packets(Decode(stream, frames));
}

NodeStreams::Fate NodeStreams::Hear(PeerStream& stream, std::span<const std::byte> frame) {
  const NodeLife& node = stream.peer().node;
  Fate fate = Fate::kNone;
  try {
    const MeetingGreeting greeting = DecodeMeetingGreeting(frame);
    const MutexLock lock(mutex_);
    if (LaneOf(stream) == nullptr) return fate;
    fate = FateOf(stream, *NodeOf(stream), greeting);
  } catch (const Error& error) {
    Refuse(node, error);
    throw;
  }
  if (fate == Fate::kOpened) hooks_.on_opened(node, stream.peer().lane);
  if (fate == Fate::kFound) hooks_.on_doubt();
  if (fate == Fate::kOver) {
    hooks_.on_unreachable(node, "it could not reach this node for too long, and gave it up");
  }
  return fate;
}

NodeStreams::Fate NodeStreams::FateOf(PeerStream& stream, Node& node,
                                      const MeetingGreeting& greeting) {
  const bool was_lost = node.lost;
  switch (node.meeting.Hear(greeting)) {
    case Meeting::Verdict::kOthersIs:
      return Fate::kNone;
    case Meeting::Verdict::kOver:
      GiveUp(node);
      return was_lost ? Fate::kNone : Fate::kOver;
    case Meeting::Verdict::kSame:
      break;
  }
  Lane& lane = *LaneOf(stream);
  if (was_lost) {
    node.found = true;
    lane.stream->Close();
    lane.stream = nullptr;
    return Fate::kFound;
  }
  lane.greeted = true;
  lane.not_found = 0;
  lane.pause = options_.pause;
  return Fate::kOpened;
}

// It would say the same again.
void NodeStreams::Refuse(const NodeLife& node, const Error& error) {
  Forget(node);
  hooks_.on_unreachable(node, error.what());
}

std::vector<Neighbours::Flying> NodeStreams::Decode(
    const PeerStream& stream, std::span<const std::span<const std::byte>> frames) {
  const OtherEnd& peer = stream.peer();
  std::vector<Neighbours::Flying> packets;
  packets.reserve(frames.size());
  try {
    for (const std::span<const std::byte> frame : frames) {
      packets.push_back({peer.node, peer.lane, DecodePacket<SharedLetter>(frame)});
    }
  } catch (const Error& error) {
    Refuse(peer.node, error);
    throw;
  }
  return packets;
}

void NodeStreams::Ended(PeerStream& stream, const Error& why) {
  {
    const MutexLock lock(mutex_);
    Lane* const lane = LaneOf(stream);
    if (lane == nullptr) return;
    Lost(*NodeOf(stream), *lane, why);
  }
  hooks_.on_doubt();
}

// Who he was is not known; he comes again, if he was a node.
void NodeStreams::Failed(const std::string&, const Error&) {}

// ---- What is sent.

void NodeStreams::Send(const std::vector<Neighbours::Flying>& packets) {
  const MutexLock lock(mutex_);
  for (const Neighbours::Flying& flying : packets) {
    const auto found = nodes_.find(KeyOf(flying.node));
    if (found == nodes_.end()) continue;
    Lane& lane = found->second.lanes[PlaceOf(flying.lane)];
    if (lane.greeted) {
      const SharedLetter& letter = flying.packet.letter;
      SendOn(lane, {EncodePacket<SharedLetter>(flying.packet),
                    letter != nullptr ? letter->part : SharedBytes()});
    }
  }
}

void NodeStreams::SendOn(Lane& lane, Frame frame) {
  if (lane.unsent.empty() && lane.stream->TrySend(frame.head, frame.tail)) return;
  lane.unsent.push_back(std::move(frame));
}

void NodeStreams::HasRoom(PeerStream& stream) {
  const MutexLock lock(mutex_);
  Lane* const lane = LaneOf(stream);
  if (lane == nullptr) return;
  while (!lane->unsent.empty()) {
    const Frame& first = lane->unsent.front();
    if (!lane->stream->TrySend(first.head, first.tail)) return;
    lane->unsent.pop_front();
  }
}

}  // namespace menger
