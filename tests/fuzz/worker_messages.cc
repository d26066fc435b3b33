// What a worker process tells its node, through the real ring into the real machine. The driver has
// made a few calls that the worker may have finished, or not. The input is a list of messages: a
// 16-byte head with the length, then the message.

#include "menger/runtime/channel/worker_messages.h"

#include <array>
#include <chrono>
#include <cstring>

#include "fuzz.h"
#include "menger/base/error.h"
#include "menger/runtime/driver/process_worker.h"
#include "menger/runtime/node/node_machine.h"
#include "menger/tensor/memory.h"

namespace menger::fuzz {
namespace {

constexpr WorkerIndex kIndex = 1;
constexpr std::uint32_t kSegment = 1;
constexpr int kCalls = 6;

TaskId DriverCall(std::uint64_t number) { return ChildTask(RootTask(1), number); }

SpecPointer Call(TaskId task, CallKind kind, std::uint16_t results, ObjectId argument = {}) {
  SpecHeader header{.kind = kind, .task = task, .parent = RootTask(1), .results = results};
  if (kind == CallKind::kConstruct) header.actor = ActorOf(task);
  SpecBuilder builder(header, argument.valid() ? 1 : 0, {}, "", "call", 0);
  if (argument.valid()) builder.AddReference(argument);
  return builder.Finish();
}

// A node around one worker, which has no process.
class Node final : private NodeEffects, private WorkerOwner {
 public:
  Node()
      : machine_({.resources = Resources(2, 0), .job = 1}, *this),
        worker_(*this, machine_, kIndex,
                WorkerChannel(AllocateSharedMemory("menger-fuzz", WorkerChannel::kBytes)),
                FileDescriptor()),
        channel_(MapSharedMemory(worker_.channel().descriptor(), WorkerChannel::kBytes)),
        ring_(channel_.to_node()) {
    machine_.NewWorkerIndex();
    machine_.StartWorkers();
    Tell(std::as_bytes(std::span(&kHello, 1)));
    machine_.Submit(kDriver, Call(DriverCall(1), CallKind::kConstruct, 1));
    for (std::uint64_t i = 2; i < kCalls; ++i) {
      machine_.Submit(kDriver, Call(DriverCall(i), CallKind::kFunction, 1,
                                    i > 3 ? ResultOf(DriverCall(i - 1), 0) : ObjectId{}));
    }
    machine_.Run();
  }

  void Tell(std::span<const std::byte> message) {
    if (message.size() > ring_.max_bytes()) return;
    const std::span<std::byte> out = ring_.Reserve(message.size());
    if (out.data() == nullptr) return;
    if (!message.empty()) std::memcpy(out.data(), message.data(), message.size());
    ring_.Publish();
    machine_.SetTime(++now_);
    worker_.Drain(machine_);
    machine_.Run();
  }

 private:
  static constexpr HelloMessage kHello{};

  // ---- NodeEffects; workers that are started beside the one stay away.
  bool Offer(Worker& worker, const Task& task) override { return worker.host->Offer(task); }
  bool Recall(Worker& worker, const Task& task) override { return worker.host->Recall(task); }
  void Announce(Worker& worker) override { worker.host->Announce(); }
  void StartWorker() override {}
  void Ready(const Watch& watch, Object& object) override {
    if (Worker* const worker = machine_.FindWorker(watch.process)) {
      worker->host->Ready(watch.request, object);
    }
  }
  void Free(const ObjectValue&) override {}
  void EndWorker(Worker& worker, std::string_view why) override { worker.host->End(why); }
  void Interrupt(Worker& worker, const Task& task) override { worker.host->Interrupt(task); }

  // ---- WorkerOwner.
  void Connected(WorkerIndex index) override {
    Worker& worker = machine_.AddWorker(index);
    worker.host = &worker_;
    worker_.set_worker(&worker);
  }
  void KillWorker(WorkerIndex, std::string_view, std::chrono::nanoseconds) override {}
  void RequestExtent(WorkerIndex, std::uint64_t request, std::uint64_t bytes) override {
    const SharedExtent extent{kSegment, 0, bytes};
    worker_.Grant(request, &extent, nullptr);
  }
  bool ReturnExtent(WorkerIndex, const SharedExtent& extent) override {
    return extent.segment == kSegment;
  }
  bool PublishExtent(WorkerIndex, const SharedExtent& extent) override {
    return extent.segment == kSegment;
  }
  void SendSegment(WorkerIndex, std::uint32_t) override {}

  NodeMachine machine_;
  ProcessWorker worker_;
  WorkerChannel channel_;  // The worker's view of it.
  RingWriter ring_;
  std::int64_t now_ = 1;
};

class Messages {
 public:
  template <typename T>
  Messages& Add(const T& head, std::span<const std::byte> tail = {}) {
    Bytes message(MessagePart(sizeof(head)) + MessagePart(tail.size()));
    MessageWriter writer(message);
    writer.Add(head);
    writer.AddBytes(tail);
    return AddBytes(message);
  }
  Messages& AddBytes(std::span<const std::byte> message) {
    bytes_.resize(bytes_.size() + 16);
    bytes_[bytes_.size() - 16] = static_cast<std::byte>(message.size() % 256);
    bytes_[bytes_.size() - 15] = static_cast<std::byte>(message.size() / 256);
    bytes_.insert(bytes_.end(), message.begin(), message.end());
    return *this;
  }
  Messages& AddFinished(LeaseNumber lease, const ObjectValue& value) {
    Bytes message(MessagePart(sizeof(FinishedMessage)) + ResultBytes(value, 1));
    MessageWriter writer(message);
    writer.Add(FinishedMessage{.results = 1, .lease = lease, .nanoseconds = 1000});
    WriteResult(writer, value, std::array{ResultOf(DriverCall(2), 0)});
    return AddBytes(message);
  }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

Bytes WorkingSeed() {
  const Bytes value(40, std::byte{5});
  const ObjectValue inline_value = ObjectValue::Inline(Payload::Copy(value));
  Messages messages;
  for (LeaseNumber lease = 1; lease < kCalls; ++lease) messages.AddFinished(lease, inline_value);
  messages.AddFinished(3, ObjectValue::Shared({kSegment, 4096, 100'000}));
  const TaskFailure failure{.type = "std::out_of_range", .text = "no 7"};
  messages.Add(FinishedMessage{.kind = ToNode::kFailed, .lease = 4}, Encode(failure).bytes());
  return messages.bytes();
}

Bytes CallingSeed() {
  Messages messages;
  const ObjectId result = ResultOf(ChildTask(DriverCall(2), 0), 0);
  for (const CallKind kind : {CallKind::kFunction, CallKind::kConstruct}) {
    const SpecPointer spec = Call(ChildTask(DriverCall(2), 0), kind, 1, ResultOf(DriverCall(2), 0));
    messages.Add(ReferenceMessage{.kind = ToNode::kSubmit}, spec->bytes());
  }
  for (const ToNode kind : {ToNode::kAdopt, ToNode::kForget, ToNode::kUnpin, ToNode::kUnblock}) {
    messages.Add(ReferenceMessage{.kind = kind, .object = result});
  }
  const auto ids = std::as_bytes(std::span(&result, 1));
  for (const ToNode kind : {ToNode::kWatch, ToNode::kUnwatch}) {
    messages.Add(WatchMessage{.kind = kind, .objects = 1, .request = 3, .call_waits = 1}, ids);
  }
  messages.Add(AllocateMessage{.request = 5, .bytes = 100'000});
  messages.Add(CancelMessage{.force = 1, .object = result});
  messages.Add(KillMessage{.may_restart = 1, .actor = ActorOf(DriverCall(1))});
  messages.Add(FindMessage{.request = 7}, std::as_bytes(std::span("call")));
  return messages.bytes();
}

Bytes PuttingSeed() {
  const ObjectValue value = ObjectValue::Inline(Payload::Copy(Bytes(20, std::byte{1})));
  const std::array contained = {ResultOf(DriverCall(2), 0)};
  Bytes message(MessagePart(sizeof(ReferenceMessage)) + ResultBytes(value, contained.size()));
  MessageWriter writer(message);
  writer.Add(ReferenceMessage{.kind = ToNode::kPut, .object = ResultOf(DriverCall(9), 0)});
  WriteResult(writer, value, contained);
  return Messages().AddBytes(message).AddBytes(message).bytes();
}

}  // namespace

void Read(std::span<const std::byte> input) {
  Node node;
  while (input.size() >= 16) {
    const std::size_t bytes =
        static_cast<std::size_t>(input[0]) + 256 * static_cast<std::size_t>(input[1]);
    input = input.subspan(16);
    node.Tell(input.first(std::min(bytes, input.size())));
    input = input.subspan(std::min(bytes, input.size()));
  }
}

std::vector<Bytes> Seeds() { return {WorkingSeed(), CallingSeed(), PuttingSeed()}; }

}  // namespace menger::fuzz
