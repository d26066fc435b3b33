#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "menger/runtime/net/peer_stream.h"
#include "menger/runtime/net/peer_stream_options.h"

namespace menger {

// A node's streams to other nodes: plain TCP, with TLS where its options have it. One thread serves
// them all and calls their owners; it sleeps where nothing is to do, but for a beat of each stream.
//
//     PeerStreams service(options);
//     const std::string address = service.Listen("127.0.0.1:0", owner);   // One node.
//     service.Connect(address, PeerLane::kControl, owner);              // The other.
//
// Connections are not opened again: who wants that asks again when PeerStreamOwner::Ended or Failed
// has been called. All functions may be called on any thread, also by owners.
class PeerStreams {
 public:
  // Throws InvalidArgument for options that are wrong, among them files of TLS that cannot be used.
  explicit PeerStreams(PeerStreamOptions options);
  // Owners are told that their streams have ended, of all of which nothing more comes then. Not by
  // an owner.
  ~PeerStreams();
  PeerStreams(const PeerStreams&) = delete;
  PeerStreams& operator=(const PeerStreams&) = delete;

  // Which life of the node this is, for all streams that begin later.
  void SetEpoch(std::uint64_t epoch);

  // Until the service ends. The address has the port, where 0 was asked for. Throws InvalidArgument
  // as ParseNodeAddress, FailedPrecondition where another process listens, Unavailable where the
  // machine has no such address. Who comes while as many as may have not said who they are waits.
  std::string Listen(const std::string& address, PeerStreamOwner& owner);

  // Returns at once; the owner's Opened or Failed follows. Throws as ParseNodeAddress.
  void Connect(const std::string& address, PeerLane lane, PeerStreamOwner& owner);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace menger
