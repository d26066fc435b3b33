#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/mutex.h"
#include "menger/runtime/cluster/meeting.h"
#include "menger/runtime/driver/neighbours.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {

// A node's streams to those that it has met: opens two to each, again where they break, and takes
// packets to and from them. Of two nodes the one with the lower id connects, and the other waits
// for it. Who has not been met, or is no longer, is turned away: he comes again.
//
// A node whose stream has broken is looked for at its address, from both ends: where nobody listens
// there any longer, or another node does, it is over, long before its lease is. One that could not
// be reached for too long is over, too; but it is sought on as long as it is a member, and may be
// found again (meeting.h).
//
// Functions may be called on any thread, unless said otherwise, also under a lock that the hooks
// take: none waits.
class NodeStreams final : public PeerStreamOwner {
 public:
  // What is told, on the thread of the streams, or by Tend.
  struct Hooks {
    // Of one node, in order.
    std::function<void(std::vector<Neighbours::Flying> packets)> on_packets;
    // A stream to it is open: whatever was sent to it before may be lost.
    std::function<void(const NodeLife& node, PeerLane lane)> on_opened;
    // Somebody came who has not been met, or a stream broke: who is there may have changed.
    std::function<void()> on_doubt;
    // It is not at its address, there was no stream to it for too long, here or there, or it said
    // what no node says.
    std::function<void(const NodeLife& node, const std::string& why)> on_unreachable;
    // By Tend: one that was unreachable is there, and has buried this one, too. False: it is not
    // wanted now. Streams to it open later.
    std::function<bool(const NodeLife& node)> on_found;
  };
  struct Options {
    // Between two attempts, at first and at most.
    std::chrono::nanoseconds pause = std::chrono::milliseconds(20);
    std::chrono::nanoseconds pause_max = std::chrono::seconds(1);
    std::chrono::nanoseconds pause_max_of_lost = std::chrono::seconds(5);  // Of who was given up.
    std::chrono::nanoseconds unreachable_after = std::chrono::seconds(30);
  };
  NodeStreams(PeerStreams& streams, NodeLife own, Hooks hooks, Options options);
  ~NodeStreams() override;
  NodeStreams(const NodeStreams&) = delete;
  NodeStreams& operator=(const NodeStreams&) = delete;

  void Meet(const NodeLife& node, std::string address, std::int64_t now);
  void Forget(const NodeLife& node);
  // Packets to a node that has no stream now are dropped (see Hooks::on_opened).
  void Send(const std::vector<Neighbours::Flying>& packets);
  // Connects where that is to be done now; when it wants to be called again, as
  // MonotonicNanoseconds. One thread at a time.
  std::int64_t Tend(std::int64_t now);
  // Nodes that have a stream for control.
  std::size_t connected() const;
  bool IsConnected(const NodeLife& node) const;  // Or it is this one.
  // Streams that were open and have broken.
  std::uint64_t lost() const;

  // ---- As PeerStreamOwner, of those who connect to this node. Of other lanes nothing comes here.
  void Opened(std::shared_ptr<PeerStream> stream) override;
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override;
  void HasRoom(PeerStream& stream) override;
  void Ended(PeerStream& stream, const Error& why) override;
  void Failed(const std::string& address, const Error& why) override;

 private:
  static constexpr std::size_t kLanes = 2;
  using Key = std::pair<Id, std::uint64_t>;
  // Who is told of what this node connects to: an owner of each lane to each node, since a
  // connection that fails says only to which address.
  class Dialled;

  struct Frame {
    std::vector<std::byte> head;
    SharedBytes tail;
  };
  struct Lane {
    std::shared_ptr<PeerStream> stream;
    bool greeted = false;      // It has said that it belongs to this meeting.
    std::int64_t since = 0;    // While there is no stream that has: since then.
    std::deque<Frame> unsent;  // It had no room for these.
    Dialled* dialled = nullptr;
    bool connecting = false;
    int not_found = 0;  // So many attempts, since there was a stream, found nobody.
    std::int64_t next_try = 0;
    std::chrono::nanoseconds pause{0};
    std::string last_failure = "it did not connect";
  };
  struct Node {
    NodeLife life;
    std::string address;
    Meeting meeting{1};
    bool lost = false;   // It is over for this node,
    bool found = false;  // but there.
    std::array<Lane, kLanes> lanes;
  };
  // What becomes of a stream.
  enum class Fate : std::uint8_t { kNone, kOpened, kFound, kOver };

  // The first frame of a stream. Hooks are told of its fate.
  Fate Hear(PeerStream& stream, std::span<const std::byte> frame);
  Fate FateOf(PeerStream& stream, Node& node, const MeetingGreeting& greeting)
      MENGER_REQUIRES(mutex_);
  void Refuse(const NodeLife& node, const Error& error);  // It says what no node says.
  std::vector<Neighbours::Flying> Decode(const PeerStream& stream,
                                         std::span<const std::span<const std::byte>> frames);
  static Key KeyOf(const NodeLife& life) { return {life.node, life.epoch}; }
  // Null if there is none, or it is not the stream that counts.
  Node* NodeOf(const PeerStream& stream) MENGER_REQUIRES(mutex_);
  Lane* LaneOf(const PeerStream& stream) MENGER_REQUIRES(mutex_);
  static void SendOn(Lane& lane, Frame frame);
  void DialFailed(const NodeLife& node, PeerLane lane, const Error& why);
  void Lost(const Node& node, Lane& lane, const Error& why) MENGER_REQUIRES(mutex_);
  static void Close(Node& node);
  void GiveUp(Node& node) MENGER_REQUIRES(mutex_);
  // A lane that shows that the node is over.
  const Lane* TendLanes(Node& node, std::int64_t now, std::int64_t& wake_at)
      MENGER_REQUIRES(mutex_);
  void TellFound();
  void BeginAgain(Node& node) MENGER_REQUIRES(mutex_);

  PeerStreams& streams_;
  const NodeLife own_;
  const Hooks hooks_;
  const Options options_;
  mutable Mutex mutex_;
  std::map<Key, Node> nodes_ MENGER_GUARDED_BY(mutex_);
  std::uint64_t lost_ MENGER_GUARDED_BY(mutex_) = 0;
  std::uint64_t meetings_ MENGER_GUARDED_BY(mutex_) = 0;
  // Until the service of the streams ends, as it asks of owners.
  std::vector<std::unique_ptr<Dialled>> dialled_ MENGER_GUARDED_BY(mutex_);
};

}  // namespace menger
