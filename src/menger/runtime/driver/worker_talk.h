#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "menger/runtime/channel/worker_messages.h"
#include "menger/runtime/driver/worker_host.h"
#include "menger/runtime/node/node_machine.h"

namespace menger {

// What a worker process and the node that owns its calls tell each other, by whatever way: through
// rings, where both live on one machine (ProcessWorker), or in letters from node to node
// (BorrowedWorker). Of what the worker says nothing is believed unchecked: DataLoss means that it
// broke the protocol and must be ended.
//
// What it says of the machine that it lives on, its memory above all, is not part of this.
class WorkerTalk : public WorkerHost {
 public:
  WorkerTalk(NodeMachine& machine, WorkerIndex index) : machine_(machine), index_(index) {}

  WorkerIndex index() const { return index_; }
  Worker* worker() const { return worker_; }
  void set_worker(Worker* worker) { worker_ = worker; }  // Once it is connected.

  void Ready(std::uint64_t request, Object& object) override;
  void Refuse(std::uint64_t request, const Object& object, const Payload& error) override;
  void Named(std::uint64_t request, const NameAnswer& answer) override;

 protected:
  // A message that begins with `head` and goes on with `tail`.
  template <typename T>
  static std::vector<std::byte> Message(const T& head, std::span<const std::byte> tail = {}) {
    std::vector<std::byte> message(MessagePart(sizeof(head)) + MessagePart(tail.size()));
    MessageWriter writer(message);
    writer.Add(head);
    writer.AddBytes(tail);
    return message;
  }

  // Tells the machine what a message says, which may be a part of a longer one.
  void Handle(std::span<const std::byte> bytes);

  // A message that must arrive.
  virtual void Send(std::vector<std::byte> message) = 0;
  // Where the worker finds a value that it has asked for, until it says that it has read it
  // (ToNode::kUnpin).
  virtual ValueHeader Show(Object& object) = 0;
  // A value that the worker has made: throws DataLoss where it cannot lie there.
  virtual void Check(ObjectValue& value) = 0;
  // True for a whole message that is another's affair.
  virtual bool IsForAnother(ToNode, std::span<const std::byte>) { return false; }
  // Of the machine that the worker lives on: kHello, kAllocate, kReturn.
  virtual void HandleHere(ToNode kind, MessageReader& reader) = 0;

  NodeMachine& machine_;
  const WorkerIndex index_;
  Worker* worker_ = nullptr;

 private:
  void HandleSubmit(MessageReader& reader);
  void HandleFinished(MessageReader& reader);
  void HandleFailed(MessageReader& reader);
  void HandlePut(MessageReader& reader);
  void HandleYield(MessageReader& reader);
  void HandleReference(ToNode kind, ObjectId id);
  void HandleWatch(MessageReader& reader, bool begin);
  void HandleWait(const WatchMessage& message, std::span<const ObjectId> ids);
  void SayWhichAreReady(std::uint64_t request, std::span<const std::byte> ready);
  void HandleBlock(MessageReader& reader);
  void HandleCancel(MessageReader& reader);
  void HandleKill(MessageReader& reader);
  void HandleFind(MessageReader& reader);
  void HandlePart(MessageReader& reader);
  ObjectValue TakeResult(MessageReader& reader, std::vector<ObjectId>& contained);

  std::vector<std::byte> parts_;  // Of a message that is not complete yet.
};

}  // namespace menger
