#pragma once

#include <cstring>

#include "menger/runtime/net/token_proof.h"
#include "menger/runtime/values/ids.h"

namespace menger {

// Of a node that begins: no two have one, whatever seeds their users give.
inline NodeId DrawNodeId() {
  const Nonce nonce = DrawNonce();
  NodeId id;
  std::memcpy(&id.high, nonce.data(), sizeof id.high);
  std::memcpy(&id.low, nonce.data() + sizeof id.high, sizeof id.low);
  return id;
}

}  // namespace menger
