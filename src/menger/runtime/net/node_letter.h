#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "menger/base/sharing/segment.h"
#include "menger/runtime/net/printed_line.h"
#include "menger/runtime/net/wire_bytes.h"
#include "menger/runtime/node/peer_message.h"
#include "menger/runtime/values/shared_bytes.h"

namespace menger {

// What one node tells another: what their machines do (PeerMessage), what a lent worker and the
// node that owns its calls say, and values that are pulled.
//
// What a worker and its owner say lies in `bytes` as it would in a ring on one machine
// (worker_messages.h), but for values that lie where the worker lives: these are of the kind
// kRemote, and `offset` of their ValueHeader is what the lender calls them (NodeMachine::KeepFor).
struct NodeLetter {
  enum class Kind : std::uint8_t {
    kMessage,     // `message`.
    kToWorker,    // The owner tells the worker of `loan` what `bytes` says.
    kRecall,      // It would have the call `lease` back, if the worker has not begun it;
    kInterrupt,   // or the call shall stop.
    kFromWorker,  // The worker of `loan` says what `bytes` says.
    kReturned,    // It has not begun the call `lease`, and will not.
    // The receiver shall send the value that it has as `name`, or knows by `pull` where it is the
    // owner itself; whose it is say `owner` and `epoch`. To a `process` of its own machine it may
    // show it instead.
    kSend,
    kPart,   // Of a value of `total` bytes `part`, in order;
    kNone,   // or there is no such value.
    kLeave,  // The sender's life ends with this.
    kLines,  // `lines` were printed by workers that do, or were to do, the receiver's calls.
    // The sender would know what they have printed until now: the last kLines of that is `last`.
    kLinesWanted,
    // The value that was asked for, `total` bytes, lies at `offset` of the segment `shown`, and
    // stays there; by `name` the sender knows that. No segment: it is not shown.
    kShown,
    kSeen,      // What the receiver shows as `name` the sender needs no longer.
    kShowLess,  // The sender would rather not show `name` any longer.
  };
  Kind kind = Kind::kMessage;
  LoanNumber loan = 0;
  LeaseNumber lease = 0;
  NodeId owner;
  std::uint64_t epoch = 0;
  std::uint64_t pull = 0;
  std::uint64_t name = 0;
  std::uint64_t total = 0;
  bool last = false;
  std::uint32_t process = 0;
  SegmentPlace shown;
  std::uint64_t offset = 0;
  PeerMessage message;
  std::vector<std::byte> bytes;
  SharedBytes part;
  std::vector<PrintedLine> lines;
};

// As links have it: who sends it keeps it until it has arrived, and changes it no more.
using SharedLetter = std::shared_ptr<NodeLetter>;

// Without the part, which is sent behind all others, from where it lies.
void WriteLetter(WireWriter& writer, const SharedLetter& letter);
// Throws InvalidArgument. What `bytes` says is its reader's to check. A part is where it was read.
void ReadLetter(WireReader& reader, SharedLetter& letter);

}  // namespace menger
