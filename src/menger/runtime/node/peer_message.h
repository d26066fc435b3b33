#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// What the machines of two nodes tell each other: who lends workers to whom. Whatever those workers
// then do travels as it does between a node and a worker of its own.
//
// Between two lives of two nodes these arrive in order, each once, and in order with what the lent
// workers say (peer_link.h).
struct PeerMessage {
  enum class Kind : std::uint8_t {
    kWant,     // The sender would have `count` more workers for calls of the class `scheduling`.
    kLend,     // Here is one of them.
    kAskBack,  // The lender needs it itself.
    kKeep,     // The borrower has an actor live in it: it will not be given back, only ended.
    // The borrower does not need it any longer; `clean`: nothing in it refers to an object of his.
    kGiveBack,
    // The borrower wishes its end, as `text` says; `clean`: its process may end of itself first.
    kEnd,
    kLost,       // It has died, as `cause` says; of the calls offered to it `begun` were begun.
    kBlocked,    // Its call waits for objects: what it occupies may be used meanwhile.
    kUnblocked,  // No longer.
    kDrop,       // The value `kept` that lies there is not needed any longer.
  };
  Kind kind = Kind::kWant;
  bool clean = false;
  std::uint32_t count = 0;
  LoanNumber loan = 0;  // Of all but kWant and kDrop.
  std::uint64_t kept = 0;
  std::string scheduling;
  std::string text;
  TaskFailure cause;
  std::vector<LeaseNumber> begun;
};

}  // namespace menger
