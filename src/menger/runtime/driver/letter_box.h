#pragma once

#include "menger/runtime/net/node_letter.h"
#include "menger/runtime/values/object_value.h"

namespace menger {

// Takes letters to other nodes: each arrives once, and those to one node in order, while both
// live. Under the node's lock.
class LetterBox {
 public:
  virtual void Send(PeerIndex to, NodeLetter letter) = 0;

 protected:
  ~LetterBox() = default;
};

}  // namespace menger
