#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/files.h"
#include "menger/base/sharing/ring.h"
#include "menger/runtime/channel/worker_channel.h"
#include "menger/runtime/channel/worker_messages.h"
#include "menger/runtime/driver/lent_worker.h"
#include "menger/runtime/driver/worker_talk.h"

namespace menger {

// What the node's end of a worker process needs of its node.
class WorkerOwner {
 public:
  // The process runs and may be given calls.
  virtual void Connected(WorkerIndex index) = 0;
  // Once `after` is over, if it has not ended by then.
  virtual void KillWorker(WorkerIndex index, std::string_view why,
                          std::chrono::nanoseconds after) = 0;
  // A request of the process for room; the answer, by Grant, may come at once. kAheadRequest: of
  // what is free now a part, which may be less.
  virtual void RequestExtent(WorkerIndex index, std::uint64_t request, std::uint64_t bytes) = 0;
  // It does not need all the room that it has: false if that is not its to say.
  virtual bool ReturnExtent(WorkerIndex index, const SharedExtent& extent) = 0;
  // The worker says that a result lies there: false if that is not its to say.
  virtual bool PublishExtent(WorkerIndex index, const SharedExtent& extent) = 0;
  // Makes sure that the worker can map the segment.
  virtual void SendSegment(WorkerIndex index, std::uint32_t segment) = 0;
  // Something for the worker waits for room, or for being announced: see ProcessWorker::Settle.
  virtual void Attend(WorkerIndex) {}
  // An actor comes to live there: what the process prints is that actor's.
  virtual void NameWorker(WorkerIndex, std::string_view) {}

 protected:
  ~WorkerOwner() = default;
};

// The node's end of a worker process on its machine: writes calls and answers into its ring, reads
// what it says out of the other, and gives it memory for its values.
class ProcessWorker final : public WorkerTalk {
 public:
  ProcessWorker(WorkerOwner& owner, NodeMachine& machine, WorkerIndex index, WorkerChannel channel,
                FileDescriptor control);

  const FileDescriptor& control() const { return control_; }
  bool ended() const { return ended_; }  // Its end was wished for.
  WorkerChannel& channel() { return channel_; }

  bool Offer(const Task& task) override;
  bool Recall(const Task& task) override;
  void Announce() override;
  void Interrupt(const Task& task) override;
  void End(std::string_view why) override;
  void Dismiss(std::string_view why) override;
  void Ready(std::uint64_t request, Object& object) override;
  void Refuse(std::uint64_t request, const Object& object, const Payload& error) override;
  bool Drain(NodeMachine& machine) override;
  // Its owner shall look after it (WorkerOwner::Attend): Drain whenever it works, then Settle.
  void Attend();
  // Wakes the worker if there is something for it. True as long as the owner must look after it:
  // messages wait for room, or `more`.
  bool Settle(bool more);
  // Gives memory back that the way to an idle worker took in busier times.
  void Rest();
  // Another node has it from now on: what it says is for that one, until it is offered a call of
  // this node's again. Null: that is so.
  void Lend(std::unique_ptr<LentWorker> loan);
  LentWorker* loan() { return loan_.get(); }

  // ---- For its loan.
  void Pass(std::vector<std::byte> message) { Send(std::move(message)); }
  void PassCall(LeaseNumber lease, std::vector<std::byte> message);
  // True if it had not begun the call, and will not.
  bool TakeBack(LeaseNumber lease);
  void InterruptCall(LeaseNumber lease);
  void MapSegment(std::uint32_t segment) { owner_.SendSegment(index_, segment); }
  void CheckValue(ObjectValue& value) { Check(value); }

  // Room for a value, or why there is none.
  void Grant(std::uint64_t request, const SharedExtent* extent, const TaskFailure* refusal);

 private:
  static constexpr std::size_t kPlaces = 1024;  // More than calls can be outstanding.

  // A message that waits here while the ring is full.
  struct Waiting {
    std::vector<std::byte> message;
    LeaseNumber lease = 0;  // Of a call, which can be taken back.
  };
  void Send(std::vector<std::byte> message) override { Enqueue({std::move(message), 0}); }
  void Enqueue(Waiting waiting);
  bool IsForAnother(ToNode kind, std::span<const std::byte> message) override;
  ValueHeader Show(Object& object) override;
  void Check(ObjectValue& value) override;
  void HandleHere(ToNode kind, MessageReader& reader) override;
  // What the worker can make fail by what it writes into the ring: nothing that it may, so that is
  // its end.
  template <typename Step>
  bool Try(const Step& step);
  bool NoRoomFor(std::size_t bytes);
  void SendWaiting();
  void MakeRoom();
  void LookForRoom();

  WorkerOwner& owner_;
  FileDescriptor control_;
  WorkerChannel channel_;
  RingWriter out_;
  RingReader in_;
  std::array<RingPosition, kPlaces> positions_{};  // By lease.
  std::deque<Waiting> waiting_;
  std::size_t refused_ = 0;  // Bytes of a call that found no room; 0: the last one did.
  std::unique_ptr<LentWorker> loan_;
  bool interrupted_ = false;  // Some call, since Lend.
  bool announce_ = false;
  bool attended_ = false;  // The owner knows.
  bool ended_ = false;
};

}  // namespace menger
