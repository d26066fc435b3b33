#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "menger/base/sharing/ring.h"
#include "menger/runtime/calls/client.h"
#include "menger/runtime/channel/worker_channel.h"
#include "menger/runtime/channel/worker_flags.h"
#include "menger/runtime/channel/worker_messages.h"
#include "menger/runtime/memory/room_ahead.h"
#include "menger/runtime/worker/call_threads.h"
#include "menger/runtime/worker/executor.h"
#include "menger/runtime/worker/lending.h"
#include "menger/runtime/worker/look_around.h"

namespace menger {

// Where a worker reads values that others have written, and writes its own.
class WorkerSegments {
 public:
  virtual ~WorkerSegments() = default;
  virtual std::span<const std::byte> Read(const SharedExtent& extent) = 0;
  virtual std::span<std::byte> Write(const SharedExtent& extent) = 0;
};

// The worker's end: does the calls that its node offers, one after the other, and is the way of
// those calls to the node.
//
// The main thread serves. Other threads, which a call may have started, may call as well, and
// those of an actor with concurrency do its calls.
//
// Lock order: that of lending_, reading_, writing_.
class WorkerClient final : public Client, private ResultStore {
 public:
  WorkerClient(const WorkerStart& start, WorkerChannel channel, NodeBell& node,
               std::unique_ptr<WorkerSegments> segments);

  // Until the node says that it is enough. Actors are gone then; references that the program still
  // has may be dropped, and that is all.
  void Serve();

  void Submit(SpecPointer spec, std::span<ObjectHandle> results) override;
  ObjectHandle NewObject(ObjectId id) override { return NewHandle(id); }
  std::span<std::byte> Allocate(std::size_t bytes, ObjectValue& value) override;
  void Publish(const ObjectHandle& object, ObjectValue value,
               std::span<const ObjectHandle> contained) override;
  void Discard(const ObjectValue& value) noexcept override;
  Fetched Get(std::span<const ObjectHandle> objects, const Deadline& deadline) override;
  std::vector<std::size_t> Wait(std::span<const ObjectHandle> objects, std::size_t count,
                                const Deadline& deadline) override;
  void Yield(std::uint64_t index, ObjectValue value,
             std::span<const ObjectHandle> contained) override;
  void Take(TaskId stream, std::uint64_t count) noexcept override;
  void Cancel(const ObjectHandle& object, bool force, bool recursive) override;
  void KillActor(ActorId actor, ObjectId object, bool may_restart) override;
  std::optional<NamedActor> FindActor(std::string_view name) override;
  void Begun() override;
  void PassOn() override;
  void LeaveAfterCall() override { leaves_.store(true, std::memory_order_relaxed); }
  bool IsCancelled() const override;
  void Unpin(const ObjectHandle& object) noexcept override;
  ObjectHandle Adopt(ObjectId id) override;
  void Forget(Reference* reference) noexcept override;
  bool open() const noexcept override {
    return !ended_.load(std::memory_order_relaxed) && !InFork();
  }
  void CheckOpen() const override;

 private:
  // For what a node answers at once, or when it has made room.
  static constexpr std::chrono::seconds kAnswer{60};

  // A call that was claimed: a copy of its message.
  using CallBuffer = std::unique_ptr<std::byte[]>;
  struct Claimed {
    CallBuffer memory;
    std::size_t bytes = 0;
  };
  // What a thread of this process has asked the node.
  struct Request {
    std::size_t missing = 0;
    std::size_t wanted = 0;
    std::unordered_map<ObjectId, PinnedBytes, IdHash> values;
    ObjectId failed;               // The first of these that is an error.
    std::vector<ObjectId> order;   // In which they became ready,
    std::vector<std::byte> ready;  // after those that were: a byte for each that is watched.
    bool answered = false;         // That is complete.
    NamedMessage named;
    GrantMessage grant;
    Payload refusal;
  };

  std::optional<SharedExtent> TakeAhead(std::size_t bytes);
  SharedExtent RequestRoom(std::size_t bytes);

  ObjectHandle NewHandle(ObjectId id);
  void DoCalls();
  void Leave();
  bool AwaitCall(Claimed& call);
  void ReadMessages();
  Claimed ClaimNext();
  void ReleaseDone();
  void ReleaseThrough(const RingEntry& entry);
  void HandleAnswer(std::span<const std::byte> bytes);
  void Do(const Claimed& call);
  void Begin(const SpecHeader& construction);
  std::uint64_t ThisLease() const;
  void Report(const CallMessage& call, CallOutcome outcome, std::int64_t began_at,
              std::int64_t ended_at);
  void SendReference(ToNode kind, ObjectId id);
  // When the node learns of a message that it could read at once.
  enum class Urgency : std::uint8_t {
    kLater,  // With the next that is more urgent, or with many of these; in a tenth of a second.
    kSoon,   // When it works the next time.
    kNow,    // It is woken.
  };
  // Writes a message of `bytes` bytes, by `fill`; waits while the ring is full.
  void Send(std::size_t bytes, FunctionRef<void(MessageWriter&)> fill, Urgency urgency);
  void SendParts(std::size_t bytes, FunctionRef<void(MessageWriter&)> fill);
  std::span<std::byte> Reserve(std::size_t bytes);
  Fetched FetchMissing(const TaskSpec& spec, std::span<const ValueHeader> headers);
  void RaiseFlag();
  void TellNode();
  void TellNodeAll();
  void Rest();
  // `look` is called whenever nothing has come for a while.
  void Await(
      Request& request, const Deadline& deadline, FunctionRef<void()> look = [] {});
  bool IsInterrupted() const;
  void CheckNotCancelled() const;
  std::uint64_t NewRequest(Request& request, bool with_values);
  Request* FindRequest(std::uint64_t number) const;
  void HandleValue(MessageReader& reader);
  void Ask(WatchMessage watch, std::span<const ObjectId> ids,
           FunctionRef<bool(FunctionRef<void()>)> await);
  void SendUnblock();
  Fetched ValuesOf(Request& request, std::span<const ObjectHandle> objects);
  void SendWatch(const WatchMessage& watch, std::span<const ObjectId> ids);
  void AwaitReady(Request& request, std::span<const ObjectId> ids, const Deadline& deadline);

  const WorkerIndex index_;
  std::atomic<bool> ended_{false};                           // Nobody listens any longer.
  const std::thread::id main_ = std::this_thread::get_id();  // Serves.
  WorkerChannel channel_;
  NodeBell& node_;
  const std::size_t place_;  // Of its flag.
  std::unique_ptr<WorkerSegments> segments_;
  ActorInstances actors_;

  std::mutex reading_;
  RingReader in_;  // Guarded by reading_.
  // Calls that were read and are still the node's to take back.
  std::deque<RingEntry> offered_;                         // Guarded by reading_.
  bool stop_ = false;                                     // Guarded by reading_.
  std::unordered_map<std::uint64_t, Request*> requests_;  // Guarded by reading_.
  std::uint64_t next_request_ = 0;                        // Guarded by reading_.
  RoomAhead room_;                                        // Guarded by reading_.

  std::mutex writing_;
  RingWriter out_;          // Guarded by writing_.
  std::size_t untold_ = 0;  // Messages since the node's bell was rung. Guarded by writing_.
  // Of the actor that lives here, if it has concurrency.
  std::unique_ptr<CallThreads> call_threads_;
  LookAround idle_;  // Of the thread that awaits calls.
  std::atomic<CallThreads*> threads_{
      nullptr};      // The same, for threads that its constructor starts.
  Lending lending_;  // Of the call that the main thread does.
  std::atomic<bool> leaves_{false};
};

}  // namespace menger
