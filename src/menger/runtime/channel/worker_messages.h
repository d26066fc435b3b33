#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/values/ids.h"
#include "menger/runtime/values/object_value.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// What a node and a worker process tell each other: one message an entry of a ring (ring.h). Each
// begins with its kind. Both ends are of one build, so structures go as they are; but a node
// believes nothing that a worker says before it has been read through MessageReader.

enum class ToWorker : std::uint32_t {
  kCall,   // Claimable: CallMessage, then the specification, then the values of its arguments.
  kValue,  // ValueMessage: of a watched object that is ready now.
  kReady,  // ReadyMessage, then a byte for each object: which were ready when they were asked for.
  kGrant,  // GrantMessage: where a value may be written.
  kNamed,  // NamedMessage: the actor of a name.
  kStop,   // Nothing: end when what was claimed is done.
};

enum class ToNode : std::uint32_t {
  kHello,      // HelloMessage: the first; the worker runs.
  kFinished,   // FinishedMessage, then a ResultMessage with its tail for each result.
  kFailed,     // FinishedMessage, then the encoded TaskFailure.
  kSubmit,     // The specification.
  kPut,        // ObjectId, then a ResultMessage with its tail.
  kAdopt,      // ObjectId: the process refers to it once more,
  kForget,     // once less;
  kUnpin,      // reads its bytes once less.
  kWatch,      // WatchMessage, then the ids.
  kUnwatch,    // WatchMessage, then the ids.
  kBlock,      // WatchMessage, then the ids: the call waits for them, which are watched.
  kUnblock,    // Nothing: the call goes on.
  kLeave,      // Nothing: the worker takes no further calls, and is to be ended.
  kAllocate,   // AllocateMessage: room for a value is wanted;
  kReturn,     // ReturnMessage: and not needed any longer.
  kRecord,     // RecordMessage, then what the call was told (call_inputs.h).
  kCancel,     // CancelMessage.
  kKillActor,  // KillMessage.
  kFindActor,  // FindMessage, then the name.
  kYield,      // YieldMessage, then a ResultMessage with its tail.
  kTake,       // TakeMessage: items of a stream were taken.
  kPart,       // PartMessage, then a part of a message that is longer than one may be.
};

// A message in parts has so many bytes together at most.
inline constexpr std::size_t kPartsBytesMax = std::size_t{256} << 20;

// How a value goes along: inline after the message (aligned to 16), or in shared memory.
struct ValueHeader {
  // kInline, kShared or kError; kNone: of an argument that must be asked for. kRemote: between
  // nodes, of what lies where the worker lives.
  ObjectValue::Kind kind = ObjectValue::Kind::kNone;
  std::uint32_t segment = 0;  // kShared.
  std::uint64_t offset = 0;   // kShared; of kRemote what it is called there.
  std::uint64_t bytes = 0;
};

// With the first descriptors that a worker is sent: its channel and the node's bell.
struct WorkerStart {
  TaskId job;      // Its root.
  TaskId process;  // As if it were a run: what threads that do no call make is named after that.
  std::uint32_t index = 0;
  std::uint32_t place = 0;  // Of its flag.
};
// With the descriptor of a segment.
struct SegmentHanding {
  std::uint32_t segment = 0;
  std::uint32_t own = 0;  // The worker writes it; any other it reads.
};

// A call that the worker may claim. The parts that follow lie in this order.
struct CallMessage {
  ToWorker kind = ToWorker::kCall;
  std::uint32_t references = 0;  // So many ValueHeaders follow the message.
  std::uint64_t lease = 0;
  std::uint32_t spec_bytes = 0;
  std::uint32_t record_bytes = 0;  // What an earlier run was told; it follows the specification.
  std::uint32_t run = 0;           // Which one it is.
  std::uint32_t brief = 0;         // Expected to take less than it costs to tell of it.
};
// A value that was watched for is there: in shared memory, inline after the message, or an error.
struct ValueMessage {
  ToWorker kind = ToWorker::kValue;
  std::uint32_t unused = 0;
  std::uint64_t request = 0;
  ObjectId object;
  ValueHeader value;
};
// The request by which a worker asks for room for values to come.
inline constexpr std::uint64_t kAheadRequest = 0;
// The answer to AllocateMessage: room in the segment that the worker writes.
struct GrantMessage {
  ToWorker kind = ToWorker::kGrant;
  std::uint32_t granted = 0;  // 0: the failure follows, encoded.
  std::uint64_t request = 0;
  SharedExtent extent;
};
// The answer to FindMessage; where nobody can say why follows.
struct NamedMessage {
  enum class Found : std::uint16_t { kNone, kActor, kUnknown };
  ToWorker kind = ToWorker::kNamed;
  Found found = Found::kNone;
  std::uint16_t of_another = 0;
  std::uint64_t request = 0;
  ActorId actor;
  ObjectId object;
  std::uint64_t actor_class = 0;  // As of Client::NamedActor.
  FunctionId construction;
};

// The process runs and may be given calls.
struct HelloMessage {
  ToNode kind = ToNode::kHello;
  std::uint32_t process = 0;
};
// A claimed call is over.
struct FinishedMessage {
  ToNode kind = ToNode::kFinished;
  std::uint32_t results = 0;
  std::uint64_t lease = 0;
  double nanoseconds = 0;     // That it took.
  std::int64_t ended_at = 0;  // In MonotonicNanoseconds.
};
// One result of a call, or a value that is put.
struct ResultMessage {
  ValueHeader value;
  std::uint64_t contained = 0;  // So many ObjectIds follow, then the inline value.
};
// The worker waits for objects, or no longer.
struct WatchMessage {
  ToNode kind = ToNode::kWatch;
  std::uint32_t objects = 0;
  std::uint64_t request = 0;     // Even: which are ready; odd: with their values.
  std::uint32_t call_waits = 0;  // The call that the worker does waits for them;
  std::uint32_t timed = 0;       // not for ever.
  // Of an even request: it waits until so many are ready. Which of them are is answered at once;
  // the others are watched only where that is not enough.
  std::uint64_t wanted = 0;
};
// The first answer to an even request; several of these where the objects are many.
inline constexpr std::size_t kReadyBytesMax = 64 * 1024;
struct ReadyMessage {
  ToWorker kind = ToWorker::kReady;
  std::uint32_t last = 0;  // The answer is complete.
  std::uint64_t request = 0;
};
// Room of so many bytes is wanted; the answer comes when there is some.
struct AllocateMessage {
  ToNode kind = ToNode::kAllocate;
  std::uint32_t unused = 0;
  std::uint64_t request = 0;
  std::uint64_t bytes = 0;
};
// An item of the stream that the call of this lease is.
struct YieldMessage {
  ToNode kind = ToNode::kYield;
  std::uint32_t unused = 0;
  std::uint64_t lease = 0;
  std::uint64_t index = 0;
};
// The reader of a stream has its first `count` items, or wants no more (kStreamDropped).
struct TakeMessage {
  ToNode kind = ToNode::kTake;
  std::uint32_t unused = 0;
  TaskId stream;
  std::uint64_t count = 0;
};
// Room that was granted is not needed.
struct ReturnMessage {
  ToNode kind = ToNode::kReturn;
  std::uint32_t unused = 0;
  SharedExtent extent;
};
// What a call was told, before anything that follows from it.
struct RecordMessage {
  ToNode kind = ToNode::kRecord;
  std::uint32_t bytes = 0;
  std::uint64_t lease = 0;
};
// Runtime::Cancel of the call that gives the object.
struct CancelMessage {
  ToNode kind = ToNode::kCancel;
  std::uint16_t force = 0;
  std::uint16_t recursive = 0;
  ObjectId object;
};
// Runtime::Kill.
struct KillMessage {
  ToNode kind = ToNode::kKillActor;
  std::uint32_t may_restart = 0;
  ActorId actor;
  ObjectId object;
};
// Runtime::GetActor.
struct FindMessage {
  ToNode kind = ToNode::kFindActor;
  std::uint32_t unused = 0;
  std::uint64_t request = 0;
};
// One part of a message that is longer than a ring takes at once.
struct PartMessage {
  ToNode kind = ToNode::kPart;
  std::uint32_t last = 0;  // The message is complete.
};
// The kinds that say only which object: kAdopt, kForget, kUnpin. It also begins kPut and kSubmit.
struct ReferenceMessage {
  ToNode kind = ToNode::kForget;
  std::uint32_t unused = 0;
  ObjectId object;
};

// Where the parts of a message lie: everything begins at a multiple of 16.
constexpr std::size_t MessagePart(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

// Fills a message, part by part. The caller has reserved what the parts need together.
class MessageWriter {
 public:
  explicit MessageWriter(std::span<std::byte> out) : out_(out) {}

  template <typename T>
  void Add(const T& part) {
    AddBytes(std::as_bytes(std::span(&part, 1)));
  }
  void AddBytes(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(out_.data(), bytes.data(), bytes.size());
    out_ = out_.subspan(MessagePart(bytes.size()));
  }

 private:
  std::span<std::byte> out_;
};

// Takes a message apart, and believes nothing: throws DataLoss where it ends too early.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    T part;
    std::memcpy(&part, TakeBytes(sizeof(T)).data(), sizeof(T));
    return part;
  }
  // Valid while the message is; the other process may still change them.
  std::span<const std::byte> TakeBytes(std::uint64_t bytes);
  std::vector<ObjectId> TakeIds(std::uint64_t count);
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// What follows a ValueHeader in the message itself.
inline std::size_t TailBytes(const ValueHeader& value) {
  const bool lies =
      value.kind == ObjectValue::Kind::kShared || value.kind == ObjectValue::Kind::kRemote;
  return lies ? 0 : static_cast<std::size_t>(value.bytes);
}
ValueHeader HeaderOf(const ObjectValue& value);

// ---- Larger messages, both ways.

std::size_t ResultBytes(const ObjectValue& value, std::size_t contained);
void WriteResult(MessageWriter& writer, const ObjectValue& value,
                 std::span<const ObjectId> contained);
// An inline value is copied; one that lies elsewhere is as the worker says: to be checked.
ObjectValue ReadResult(MessageReader& reader, std::vector<ObjectId>& contained);

// Whether a call without the values of its references fits a message.
bool FitsMessage(const TaskSpec& spec);
// The values of `values` are those of the references among the arguments, in order; null: one that
// does not go along. `records` is what an earlier run was told.
std::size_t CallBytes(const TaskSpec& spec, std::span<const ObjectValue* const> values,
                      std::span<const std::byte> records);
// Of `head` the lease, the run and whether it is brief.
void WriteCall(std::span<std::byte> out, CallMessage head, const TaskSpec& spec,
               std::span<const ObjectValue* const> values, std::span<const std::byte> records);

}  // namespace menger
