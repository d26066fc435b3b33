#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/values/object_value.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// An object, and the life of the node that owns it.
struct ForeignName {
  ObjectId object;
  NodeId node;
  std::uint64_t epoch = 0;
};

// What the machines of two nodes tell each other: who lends workers to whom, where values are to
// lie, and who refers to whose objects. Whatever lent workers do travels as it does between a node
// and a worker of its own.
//
// Between two lives of two nodes these arrive in order, each once, and in order with what the lent
// workers say (peer_link.h).
struct PeerMessage {
  enum class Kind : std::uint8_t {
    kWant,  // The sender would have `count` more workers for calls of the class `scheduling`.
    // The sender can lend none, as `text` says: the receiver's program does not run here. "": it
    // does after all.
    kCannot,
    kLend,     // Here is one of them.
    kAskBack,  // The lender needs it itself.
    kKeep,     // The borrower has an actor live in it: it will not be given back, only ended.
    // The borrower does not need it now; `clean`: nothing in it refers to an object of his. Else it
    // is his still (Worker::rests): kLend follows by the same number, or kLost.
    kGiveBack,
    // The borrower wishes its end, as `text` says; `clean`: its process may end of itself first.
    kEnd,
    kLost,       // It has died, as `cause` says; of the calls offered to it `begun` were begun.
    kBlocked,    // Its call waits for objects: what it occupies may be used meanwhile.
    kUnblocked,  // No longer.
    kDrop,       // The value `kept` that lies there is not needed any longer.
    // A copy of the sender's value shall lie there as `kept`, to be had of the life `source_epoch`
    // of the node `source`, which keeps it as `source_name`, or of the sender, if none is named;
    kPull,
    kPulled,     // it does,
    kNotPulled,  // or does not; `cause`: there is no room for it there.
    // Bundles of a placement group are to be set aside as `kept`, of which `text` says the numbers
    // and what is in them: "0;cpu=1;2;gpu=1".
    kReserve,
    kReserved,     // They are,
    kNotReserved,  // or are not: the sender has free what `text` says.
    kRelease,      // They are not needed any longer.
    // References to objects of another owner (foreign_objects.h). The sender
    kRefer,     // refers to the receiver's `object`: once more;
    kReferred,  // knows which the receiver refers to (`clean`), or knows it no longer;
    kForget,    // refers to the receiver's `object` no longer: so many times as `count` says;
                // `clean`: but calls that it keeps would need it again,
    kDismiss,   // which is over;
    kAsk,       // wants to know when it is ready,
    kValue,     // or says that its own is: what it is, and which objects it refers to;
    kFetch,     // wants it in its own memory: kPull follows, or kValue where it is small;
    kGone,      // has it there no longer, as `kept`;
    kCall,      // makes a call of an actor of the receiver, which refers to `references`,
    kCalled,    // or has become a referrer of all of these;
    kItem,      // has yielded item `kept` of the receiver's call `object` of an actor of its own,
    kTake,      // or has taken `bytes` of those of the sender's, or wants no more (kStreamDropped);
    kCancel,    // would have the receiver's `object` cancelled; `clean`: by force, `count` 1: an
                // actor may be made again.
    // Nodes that will leave (drains.h). The sender
    kLeaving,  // is one, and lends nothing more;
    // needs nothing of the receiver's any longer (`clean`), having taken `count` values of `bytes`;
    // or does again.
    kLetGo,
    // The sender has no room for more workers of the class `scheduling` that the receiver wants, of
    // those whose calls nodes do in turn: it will lend them when it has, and need not be waited
    // for.
    kFull,
    kSharers,  // Calls of `count` nodes read in the sender's memory, the receiver's among them.
  };
  Kind kind = Kind::kWant;
  bool clean = false;
  std::uint32_t count = 0;
  LoanNumber loan = 0;  // Of what is about one.
  std::uint64_t kept = 0;
  NodeId source;
  std::uint64_t source_epoch = 0;
  std::uint64_t source_name = 0;
  std::uint64_t bytes = 0;  // So large is what is pulled.
  std::string scheduling;
  std::string text;
  TaskFailure cause;
  std::vector<LeaseNumber> begun;
  // Of what is about an object. kPull: for the receiver's own use; `clean`: it lies there already.
  ObjectId object;
  ObjectValue value;
  std::vector<ForeignName> references;
  Payload call;  // The bytes of a TaskSpec.
};

}  // namespace menger
