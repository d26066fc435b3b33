#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/function_ref.h"
#include "menger/base/process_mark.h"
#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/values/ids.h"
#include "menger/runtime/values/object_ref.h"
#include "menger/runtime/values/object_value.h"

namespace menger {

inline constexpr std::chrono::nanoseconds kNoTimeout = std::chrono::hours(24 * 365);

class CallInputs;
class Client;

// Who calls: the driver, or one run of a call. Names what it makes by counting it; calls, values
// and streams of random numbers apart.
struct CallContext {
  const Client* client = nullptr;  // Whose call it is; null for a client's own.
  TaskId task;
  TaskId run;                    // RunOf(task, which): what its calls and puts are named after.
  void* execution = nullptr;     // Of whoever runs the call; null for the driver.
  CallInputs* inputs = nullptr;  // Null where no further run is to be told the same.
  bool endures = false;          // Its waits go on when it is cancelled: it asks for that itself.
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> puts{0};
  std::atomic<std::uint64_t> streams{0};

  TaskId NextCall() { return ChildTask(run, calls.fetch_add(1, std::memory_order_relaxed)); }
  ObjectId NextPut() { return PutBy(run, puts.fetch_add(1, std::memory_order_relaxed)); }
  Id NextSeed() { return RandomSeed(task, streams.fetch_add(1, std::memory_order_relaxed)); }
};

// Bytes of a value that stay where they are while this lives. Movable.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(Payload payload) : bytes_(payload.bytes()), payload_(std::move(payload)) {}
  // Bytes in shared memory, until `client` is told.
  PinnedBytes(std::span<const std::byte> bytes, Client& client, ObjectHandle object)
      : bytes_(bytes), client_(&client), object_(std::move(object)) {}
  PinnedBytes(PinnedBytes&& other) noexcept { Swap(other); }
  PinnedBytes& operator=(PinnedBytes other) noexcept {
    Swap(other);
    return *this;
  }
  ~PinnedBytes();

  std::span<const std::byte> bytes() const { return bytes_; }
  bool shared() const { return client_ != nullptr; }  // They lie in shared memory.

 private:
  void Swap(PinnedBytes& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(payload_, other.payload_);
    std::swap(client_, other.client_);
    std::swap(object_, other.object_);
  }

  std::span<const std::byte> bytes_;
  Payload payload_;
  Client* client_ = nullptr;
  ObjectHandle object_;
};

// What has become of objects: the encoded values of all, in order. Where one has failed, its place
// and nothing else but its encoded TaskFailure.
struct Fetched {
  std::vector<PinnedBytes> values;
  std::optional<std::size_t> failed;
};

// The call that this thread runs now, or null.
CallContext*& ThisCall();

// How a process reaches its node: the driver directly, a worker through its rings. Runtime is the
// typed face of it. Any thread may call; what waits has a deadline and throws DeadlineExceeded.
//
// Calls are made in the name of the call that the thread runs, or of the process as a whole.
class Client : public ReferenceOwner {
 public:
  // `job`: the root of the job; `root`: in whose name what is no call's is called and put.
  Client(TaskId job, TaskId root) : job_(job), root_{.task = root, .run = RunOf(root, 0)} {}

  // Makes a call; fills in a handle on each of its results.
  virtual void Submit(SpecPointer spec, std::span<ObjectHandle> results) = 0;

  // Makes an object of `bytes` bytes, which `fill` writes; `contained` are the references inside.
  ObjectHandle Put(std::size_t bytes, FunctionRef<void(std::span<std::byte>)> fill,
                   std::span<const ObjectHandle> contained) {
    return PutAs(Caller().NextPut(), bytes, fill, contained);
  }
  // The same under a name that says what it is: where somebody knows that already, his value stays.
  ObjectHandle PutAs(ObjectId id, std::size_t bytes, FunctionRef<void(std::span<std::byte>)> fill,
                     std::span<const ObjectHandle> contained);

  // The same in steps: an object that is to get a value, room for that, and the end: either the
  // value is the object's or the room is given back.
  virtual ObjectHandle NewObject(ObjectId id) = 0;
  virtual std::span<std::byte> Allocate(std::size_t bytes, ObjectValue& value) = 0;
  virtual void Publish(const ObjectHandle& object, ObjectValue value,
                       std::span<const ObjectHandle> contained) = 0;
  virtual void Discard(const ObjectValue& value) noexcept = 0;

  // Returns when all are there, or as soon as one has failed: of those that had failed before the
  // first in their order, else the first that does.
  virtual Fetched Get(std::span<const ObjectHandle> objects, const Deadline& deadline) = 0;

  // Returns when `count` of them are ready or the deadline has passed: the places of those that
  // are, at least of the first `count`; no more is looked at than that takes. First those that were
  // ready before, then the others, in the order in which they became so. No error.
  virtual std::vector<std::size_t> Wait(std::span<const ObjectHandle> objects, std::size_t count,
                                        const Deadline& deadline) = 0;

  // Of the call that this thread runs: item `index` of a stream, which Allocate made room for.
  virtual void Yield(std::uint64_t index, ObjectValue value,
                     std::span<const ObjectHandle> contained) = 0;
  // The first `count` items of a stream are taken; kStreamDropped, kStreamLeft: no more are.
  virtual void Take(TaskId stream, std::uint64_t count) noexcept = 0;

  virtual void Cancel(const ObjectHandle& object, bool force, bool recursive) = 0;

  // `object` stands for it: another program's actor is found by that.
  virtual void KillActor(ActorId actor, ObjectId object, bool may_restart) = 0;

  static constexpr char kKeeperName[] = " @keeper";  // No actor has it.
  struct NamedActor {
    ActorId id;
    ObjectHandle object;
    std::uint64_t actor_class = 0;  // SpecHeader::callee of its construction, which is
    FunctionId construction;        // a call of this.
    bool of_another = false;        // Program of the cluster.
  };
  // Throws Unavailable where nobody can say, DeadlineExceeded where nobody does. By kKeeperName
  // what stands for the process that owns the program's detached actors, where that is not this
  // one.
  virtual std::optional<NamedActor> FindActor(std::string_view name) = 0;

  // Of an actor that does several calls at once: the call that this thread runs has begun, so the
  // next one may begin before it ends. And it is going to wait for something other than objects:
  // the next one begins now, not only when that is noticed.
  virtual void Begun() {}
  virtual void PassOn() {}
  // The process of a worker ends after the call that it does; of threads nothing ends.
  virtual void LeaveAfterCall() {}

  // Whether the call that this thread runs should stop.
  virtual bool IsCancelled() const = 0;

  // The bytes of a shared value are no longer read.
  virtual void Unpin(const ObjectHandle& object) noexcept = 0;

  // Throws unless the reference is this client's, or refers to nothing: FailedPrecondition if its
  // runtime has ended, InvalidArgument if it is another's.
  void CheckOwn(const ObjectHandle& handle) const {
    if (handle.valid() && handle.reference()->owner != this) FailForeign(handle);
  }
  void CheckOwn(std::span<const ObjectHandle> handles) const {
    for (const ObjectHandle& handle : handles) CheckOwn(handle);
  }

  // Whether a wait for all of them is over without a question. Checks them as CheckOwn does.
  bool AreKnownReady(std::span<const ObjectHandle> objects) const;

  // This process is a fork of the one whose client it is. Everything but the dropping of what one
  // has throws FailedPrecondition then, and nothing reaches the node.
  bool InFork() const { return mark_.InFork(); }

  // The call of this client that the thread runs, or null.
  CallContext* RunningCall() const {
    CallContext* const call = ThisCall();
    return call != nullptr && call->client == this ? call : nullptr;
  }
  CallContext& Caller() {
    CallContext* const call = RunningCall();
    return call != nullptr ? *call : root_;
  }
  TaskId job() const { return job_; }

 protected:
  ~Client() = default;

  void CheckProcess() const {
    if (InFork()) FailFork();
  }

 private:
  [[noreturn]] static void FailForeign(const ObjectHandle& handle);
  [[noreturn]] static void FailFork();

  const ProcessMark mark_;
  const TaskId job_;
  CallContext root_;
};

inline PinnedBytes::~PinnedBytes() {
  if (client_ != nullptr) client_->Unpin(object_);
}

}  // namespace menger
