#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "menger/runtime/net/handshake.h"

namespace menger {

// PEM files of one node: all three are given, or none.
struct TlsFiles {
  std::string certificate;  // Its own, and what leads from there to an authority.
  std::string key;          // Of it; without a passphrase.
  std::string authorities;  // Who has a certificate of one of these is one of the cluster.

  bool given() const { return !certificate.empty(); }
};

// How a node's streams are.
struct PeerStreamOptions {
  NodeLife own;
  std::string token;  // What the cluster's nodes know; "": streams within this machine alone.
  TlsFiles tls;       // Where given, all streams are encrypted, those within this machine, too.

  // Longer takes nobody to come, or to say who he is.
  std::chrono::milliseconds connect_max{4'000};
  std::chrono::milliseconds greeting_max{5'000};
  // A stream with nothing to say says that it lives, and ends where nothing comes for too long: the
  // other machine may have lost its power, or the way there is cut. Where it comes back, a new
  // stream has its first bytes through in a second, while what an old one has lost is sent again at
  // ever longer intervals.
  std::chrono::milliseconds heartbeat_every{1'000};
  std::chrono::milliseconds silence_max{3'000};

  // A longer frame ends its stream at the receiver, and is InvalidArgument at the sender. All that
  // a worker may say at once (kPartsBytesMax) is to have room in one.
  std::size_t frame_bytes_max = std::size_t{257} << 20;
  // Waiting to be sent, a stream; a frame that is longer is sent where nothing else waits.
  std::size_t queue_bytes_max = std::size_t{16} << 20;
  std::size_t greetings_max = 64;  // Who has come and not yet said who he is, a listener.
};

// Throws InvalidArgument that names the option.
void CheckPeerStreamOptions(const PeerStreamOptions& options);

struct NodeAddress {
  std::string host;  // A name, or a number without brackets.
  std::uint16_t port = 0;
  bool loopback = false;
};

// Of "10.0.0.7:7000", "node7:7000", "[fe80::1]:7000", "localhost:7000". Throws InvalidArgument for
// anything else.
NodeAddress ParseHostAndPort(const std::string& address);

// The same for streams: InvalidArgument also unless the options have a token and TLS for what is
// not loopback by its number (or "localhost"): what is said elsewhere can be read and written by
// others.
NodeAddress ParseNodeAddress(const std::string& address, const PeerStreamOptions& options);

}  // namespace menger
