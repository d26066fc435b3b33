#pragma once

#include <string>

#include "menger/runtime/calls/runtime_options.h"
#include "menger/runtime/net/peer_stream_options.h"

namespace menger {

// Where a cluster is, and what its nodes are known by.
struct ClusterAccess {
  std::string address;  // Of its head; "": none, this machine alone.
  std::string token;
  TlsFiles tls;
};

// What the options say, and for what they do not say the environment: MENGER_ADDRESS;
// MENGER_CLUSTER_TOKEN, or the first line of the file MENGER_CLUSTER_TOKEN_FILE;
// MENGER_TLS_CERTIFICATE, MENGER_TLS_KEY and MENGER_TLS_AUTHORITIES. The address "local" means
// none. Throws InvalidArgument for a file that cannot be read, or has no token.
ClusterAccess AccessOf(const RuntimeOptions& options);

// A free port at the address by which this machine reaches another, which so may reach it by that:
// for Listen. Throws Unavailable where there is no way there.
std::string OwnAddressTowards(const std::string& address, const PeerStreamOptions& options);

}  // namespace menger
