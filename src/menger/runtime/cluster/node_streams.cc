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
  }
}

std::size_t NodeStreams::connected() const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      nodes_, [](const auto& entry) { return entry.second.lanes[0].stream != nullptr; }));
}

std::uint64_t NodeStreams::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

std::int64_t NodeStreams::Tend(std::int64_t now) {
  std::int64_t wake_at = std::numeric_limits<std::int64_t>::max();
  std::vector<std::pair<NodeLife, std::string>> unreachable;
  {
    const MutexLock lock(mutex_);
    for (auto& [key, node] : nodes_) {
      for (const PeerLane which : kNodeLanes) {
        Lane& lane = node.lanes[PlaceOf(which)];
        if (lane.stream != nullptr) continue;
        const std::int64_t lost_at = lane.since + options_.unreachable_after.count();
        if (now >= lost_at || lane.not_found >= kNotFoundMax) {
          unreachable.emplace_back(node.life, lane.last_failure);
          break;
        }
        wake_at = std::min(wake_at, lost_at);
        if (lane.connecting) continue;
        if (now < lane.next_try) {
          wake_at = std::min(wake_at, lane.next_try);
          continue;
        }
        lane.connecting = true;
        // Who only looks does so on a lane on which nothing is said then.
        streams_.Connect(node.address, lane.dialled->looks() ? PeerLane::kFiles : which,
                         *lane.dialled);
      }
    }
    for (const auto& [life, why] : unreachable) {
      Close(nodes_.at(KeyOf(life)));
      nodes_.erase(KeyOf(life));
    }
  }
  for (const auto& [life, why] : unreachable) {
    hooks_.on_unreachable(life, "it cannot be reached: " + why);
  }
  return wake_at;
}

void NodeStreams::DialFailed(const NodeLife& node, PeerLane which, const Error& why) {
  {
    const MutexLock lock(mutex_);
    const auto found = nodes_.find(KeyOf(node));
    if (found == nodes_.end()) return;
    Lane& lane = found->second.lanes[PlaceOf(which)];
    lane.connecting = false;
    if (lane.stream != nullptr) return;  // It has connected by itself.
    Lost(lane, why);
  }
  hooks_.on_doubt();
}

void NodeStreams::Lost(Lane& lane, const Error& why) {
  const std::int64_t now = MonotonicNanoseconds();
  if (std::exchange(lane.stream, nullptr) != nullptr) {
    lane.since = now;
    ++lost_;
  }
  lane.unsent.clear();
  lane.connecting = false;
  lane.not_found = why.code() == ErrorCode::kNotFound ? lane.not_found + 1 : 0;
  lane.last_failure = why.what();
  lane.next_try = now + lane.pause.count();
  lane.pause = std::min(2 * lane.pause, options_.pause_max);
}

// ---- Streams.

NodeStreams::Lane* NodeStreams::LaneOf(const PeerStream& stream) {
  const auto found = nodes_.find(KeyOf(stream.peer().node));
  if (found == nodes_.end()) return nullptr;
  Lane& lane = found->second.lanes[PlaceOf(stream.peer().lane)];
  return lane.stream.get() == &stream ? &lane : nullptr;
}

void NodeStreams::Opened(std::shared_ptr<PeerStream> stream) {
  const OtherEnd& peer = stream->peer();
  bool met = false;
  {
    const MutexLock lock(mutex_);
    const auto found = nodes_.find(KeyOf(peer.node));
    met = found != nodes_.end();
    if (met) {
      Lane& lane = found->second.lanes[PlaceOf(peer.lane)];
      if (const auto before = std::exchange(lane.stream, stream)) before->Close();
      lane.unsent.clear();
      lane.connecting = false;
      lane.not_found = 0;
      lane.pause = options_.pause;
    }
  }
  if (met) return hooks_.on_opened(peer.node, peer.lane);
  stream->Close();
  hooks_.on_doubt();
}

void NodeStreams::Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) {
  {
    const MutexLock lock(mutex_);
    if (LaneOf(stream) == nullptr) return;
  }
  hooks_.on_packets(Decode(stream, frames));
}

std::vector<Neighbours::Flying> NodeStreams::Decode(
    const PeerStream& stream, std::span<const std::span<const std::byte>> frames) {
  const OtherEnd& peer = stream.peer();
  std::vector<Neighbours::Flying> packets;
  packets.reserve(frames.size());
  try {
    for (const std::span<const std::byte> frame : frames) {
      packets.push_back({peer.node, peer.lane, DecodePacket<NodeLetter>(frame)});
    }
  } catch (const Error& error) {
    // It would say the same again.
    Forget(peer.node);
    hooks_.on_unreachable(peer.node, error.what());
    throw;
  }
  return packets;
}

void NodeStreams::Ended(PeerStream& stream, const Error& why) {
  {
    const MutexLock lock(mutex_);
    Lane* const lane = LaneOf(stream);
    if (lane == nullptr) return;
    Lost(*lane, why);
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
    if (lane.stream != nullptr) {
      SendOn(lane, {EncodePacket<NodeLetter>(flying.packet), flying.packet.letter.part});
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
