#include "menger/runtime/driver/process_worker.h"

#include <algorithm>
#include <utility>

namespace menger {
namespace {

static_assert(WorkerChannel::kLeasePlaces >= kLeasesMax);

constexpr std::chrono::seconds kLastWords{5};   // For what a program does before it exits.
constexpr std::size_t kWaitingMax = 1'000'000;  // Messages for a worker that does not read.

}  // namespace

ProcessWorker::ProcessWorker(WorkerOwner& owner, NodeMachine& machine, WorkerIndex index,
                             WorkerChannel channel, FileDescriptor control)
    : WorkerTalk(machine, index),
      owner_(owner),
      control_(std::move(control)),
      channel_(std::move(channel)),
      out_(channel_.to_worker()),
      in_(channel_.to_node()) {}

// ---- To the worker.

template <typename Step>
bool ProcessWorker::Try(const Step& step) {
  try {
    return step();
  } catch (const Error& error) {
    End(fmt::format("it broke the protocol: {}", error.what()));
    return false;
  }
}

bool ProcessWorker::Offer(const Task& task) {
  if (ended_) return false;
  if (!waiting_.empty()) return NoRoomFor(1);
  if (loan_ != nullptr) Lend(nullptr);
  std::vector<const ObjectValue*> values(task.references);
  std::size_t bytes = CallBytes(*task.spec, values, task.records);
  for (std::size_t i = 0; i < task.references; ++i) {
    const ObjectValue& value = task.arguments[i]->value;
    const std::size_t tail = MessagePart(TailBytes(HeaderOf(value)));
    // The worker asks for what does not fit.
    if (bytes + tail > WorkerChannel::kMessageBytesMax) continue;
    if (value.kind == ObjectValue::Kind::kShared) owner_.SendSegment(index_, value.extent.segment);
    values[i] = &value;
    bytes += tail;
  }
  return Try([&] {
    const std::span<std::byte> out = out_.Reserve(bytes, RingEntryKind::kClaimable);
    if (out.data() == nullptr) return NoRoomFor(bytes);
    refused_ = 0;
    if (task.header().kind == CallKind::kConstruct) {
      owner_.NameWorker(index_, machine_.NameOf(task));
    }
    WriteCall(out, {.lease = task.lease, .run = task.run, .brief = task.brief ? 1U : 0U},
              *task.spec, values, task.records);
    positions_[task.lease % kPlaces] = out_.last();
    out_.Publish();
    return true;
  });
}

// Its node shall hear when there is room: a worker that does many calls at once may have begun all
// that it was given long before it finishes one.
bool ProcessWorker::NoRoomFor(std::size_t bytes) {
  refused_ = bytes;
  Attend();
  return false;
}

bool ProcessWorker::Recall(const Task& task) {
  return Try([&] { return out_.TryRecall(positions_[task.lease % kPlaces]); });
}

// ---- While it is lent.

// Whoever has it from now on numbers his calls from 1: what was cancelled before is none of them.
void ProcessWorker::Lend(std::unique_ptr<LentWorker> loan) {
  loan_ = std::move(loan);
  if (!std::exchange(interrupted_, false)) return;
  for (std::uint64_t lease = 0; lease < WorkerChannel::kLeasePlaces; ++lease) {
    channel_.interrupted(lease).store(0, std::memory_order_release);
  }
}

bool ProcessWorker::IsForAnother(ToNode kind, std::span<const std::byte> message) {
  const bool here = kind == ToNode::kHello || kind == ToNode::kAllocate ||
                    kind == ToNode::kReturn || kind == ToNode::kPart;
  if (loan_ == nullptr || here) return false;
  loan_->Say(kind, message);
  return true;
}

void ProcessWorker::Ready(std::uint64_t request, Object& object) {
  if (loan_ != nullptr) return loan_->Ready(request, object);
  WorkerTalk::Ready(request, object);
}

void ProcessWorker::Refuse(std::uint64_t request, const Object& object, const Payload& error) {
  if (loan_ != nullptr) return loan_->Refuse(request, error);
  WorkerTalk::Refuse(request, object, error);
}

void ProcessWorker::PassCall(LeaseNumber lease, std::vector<std::byte> message) {
  Enqueue({std::move(message), lease});
}

bool ProcessWorker::TakeBack(LeaseNumber lease) {
  const auto waiting = std::ranges::find(waiting_, lease, &Waiting::lease);
  if (waiting != waiting_.end()) {
    waiting_.erase(waiting);
    return true;
  }
  return Try([&] { return out_.TryRecall(positions_[lease % kPlaces]); });
}

void ProcessWorker::InterruptCall(LeaseNumber lease) {
  interrupted_ = true;
  channel_.interrupted(lease).store(lease, std::memory_order_release);
  Announce();  // It may wait.
}

void ProcessWorker::Announce() { channel_.worker_bell().Advance(); }

void ProcessWorker::Interrupt(const Task& task) { InterruptCall(task.lease); }

void ProcessWorker::End(std::string_view why) {
  ended_ = true;
  owner_.KillWorker(index_, why, {});
}

// What it still has to do is nobody's: it ends what the program wants ended, within bounds.
void ProcessWorker::Dismiss(std::string_view why) {
  Send(Message(ToWorker::kStop));
  if (!waiting_.empty()) return End(why);  // It does not read.
  Announce();
  ended_ = true;
  owner_.KillWorker(index_, why, kLastWords);
}

ValueHeader ProcessWorker::Show(Object& object) {
  if (object.value.kind == ObjectValue::Kind::kShared) {
    machine_.objects().Pin(index_, object);
    owner_.SendSegment(index_, object.value.extent.segment);
  }
  return HeaderOf(object.value);
}

void ProcessWorker::Grant(std::uint64_t request, const SharedExtent* extent,
                          const TaskFailure* refusal) {
  GrantMessage answer{.request = request};
  if (extent == nullptr) return Send(Message(answer, Encode(*refusal).bytes()));
  answer.granted = 1;
  answer.extent = *extent;
  Send(Message(answer));
}

void ProcessWorker::Enqueue(Waiting waiting) {
  if (ended_) return;
  waiting_.push_back(std::move(waiting));
  SendWaiting();
  Attend();
  if (waiting_.size() > kWaitingMax) {
    End(fmt::format("it does not read its messages: {} wait", waiting_.size()));
  }
}

void ProcessWorker::SendWaiting() {
  const auto send_first = [this] {
    const auto& [message, lease] = waiting_.front();
    const auto kind = lease != 0 ? RingEntryKind::kClaimable : RingEntryKind::kPlain;
    const std::span<std::byte> out = out_.Reserve(message.size(), kind);
    if (out.data() == nullptr) return false;
    std::memcpy(out.data(), message.data(), message.size());
    if (lease != 0) positions_[lease % kPlaces] = out_.last();
    out_.Publish();
    waiting_.pop_front();
    return announce_ = true;
  };
  while (!waiting_.empty() && Try(send_first)) {
  }
}

// Calls that it has not begun fill the ring, and those that it does may wait for these messages.
void ProcessWorker::MakeRoom() {
  SendWaiting();
  if (worker_ == nullptr || waiting_.empty()) return;
  if (loan_ != nullptr) {
    loan_->GiveBackCalls();
  } else {
    machine_.TakeBackCalls(*worker_);
  }
  announce_ = true;
}

void ProcessWorker::LookForRoom() {
  if (!waiting_.empty() || !Try([&] { return out_.HasRoomFor(refused_); })) return;
  refused_ = 0;
  machine_.HasRoomAgain(*worker_);
}

// ---- From the worker.

bool ProcessWorker::Drain(NodeMachine&) {
  if (ended_) return false;
  if (!waiting_.empty()) MakeRoom();
  if (refused_ > 0) LookForRoom();
  bool any = false;
  while (const RingEntry entry = in_.Next()) {
    any = true;
    Handle(entry.bytes);
    if (ended_) return true;
  }
  if (any) in_.Release();
  if (std::exchange(announce_, false)) Announce();
  return any;
}

void ProcessWorker::Attend() {
  if (!std::exchange(attended_, true)) owner_.Attend(index_);
}

bool ProcessWorker::Settle(bool more) {
  if (std::exchange(announce_, false)) Announce();
  attended_ = (more || refused_ > 0 || !waiting_.empty()) && !ended_;
  return attended_;
}

void ProcessWorker::Rest() {
  if (ended_) return;
  Try([&] {
    out_.GiveMemoryBack();
    return true;
  });
}

// ---- Of the machine that both live on.

void ProcessWorker::HandleHere(ToNode kind, MessageReader& reader) {
  if (kind == ToNode::kHello) {
    if (worker_ == nullptr) owner_.Connected(index_);
  } else if (kind == ToNode::kAllocate) {
    const auto message = reader.Take<AllocateMessage>();
    owner_.RequestExtent(index_, message.request, message.bytes);
  } else {
    const auto message = reader.Take<ReturnMessage>();
    if (owner_.ReturnExtent(index_, message.extent)) return;
    throw DataLoss("{} bytes at {} of segment {} are not the worker's to return",
                   message.extent.bytes, message.extent.offset, message.extent.segment);
  }
}

void ProcessWorker::Check(ObjectValue& value) {
  const SharedExtent& extent = value.extent;
  if (value.kind != ObjectValue::Kind::kShared || owner_.PublishExtent(index_, extent)) return;
  throw DataLoss("a value at {} of segment {}, {} bytes: not where the worker may write",
                 extent.offset, extent.segment, extent.bytes);
}

}  // namespace menger
