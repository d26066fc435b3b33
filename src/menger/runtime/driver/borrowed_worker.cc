#include "menger/runtime/driver/borrowed_worker.h"

#include <utility>

#include "menger/runtime/channel/worker_channel.h"

namespace menger {
namespace {

// Not begun: as many as its ring holds of small ones; these can be had back.
constexpr std::size_t kAheadMax = 64;

// What an actor does side by side may all wait for what comes after.
std::size_t OutstandingMax(const Worker& worker) {
  if (worker.actor == nullptr) return kAheadMax;
  return kAheadMax + worker.actor->construction->header().concurrency;
}

}  // namespace

BorrowedWorker::BorrowedWorker(NodeMachine& machine, Worker& worker, LetterBox& box)
    : WorkerTalk(machine, worker.index), box_(box) {
  set_worker(&worker);
}

void BorrowedWorker::Send(std::vector<std::byte> message) {
  box_.Send(
      worker_->lender,
      {.kind = NodeLetter::Kind::kToWorker, .loan = worker_->loan, .bytes = std::move(message)});
}

bool BorrowedWorker::Offer(const Task& task) {
  if (worker_->outstanding.size() >= OutstandingMax(*worker_)) return false;
  std::vector<ObjectValue> there(task.references);
  std::vector<const ObjectValue*> values(task.references);
  std::size_t bytes = CallBytes(*task.spec, values, task.records);
  for (std::size_t i = 0; i < task.references; ++i) {
    const Object& argument = *task.arguments[i];
    const ObjectValue* value = &argument.value;
    if (const std::uint64_t name = machine_.NameAt(argument, worker_->lender)) {
      there[i] = ObjectValue::Remote(0, name, argument.value.extent.bytes);
      value = &there[i];
    }
    const bool travels = value->kind == ObjectValue::Kind::kInline ||
                         value->kind == ObjectValue::Kind::kError || value == &there[i];
    const std::size_t tail = MessagePart(TailBytes(HeaderOf(*value)));
    // It asks for what does not fit, or is not there.
    if (!travels || bytes + tail > WorkerChannel::kMessageBytesMax) continue;
    values[i] = value;
    bytes += tail;
  }
  std::vector<std::byte> message(bytes);
  WriteCall(message, {.lease = task.lease, .run = task.run, .brief = task.brief ? 1U : 0U},
            *task.spec, values, task.records);
  Send(std::move(message));
  return true;
}

bool BorrowedWorker::Recall(const Task& task) {
  box_.Send(worker_->lender,
            {.kind = NodeLetter::Kind::kRecall, .loan = worker_->loan, .lease = task.lease});
  return false;
}

void BorrowedWorker::Interrupt(const Task& task) {
  box_.Send(worker_->lender,
            {.kind = NodeLetter::Kind::kInterrupt, .loan = worker_->loan, .lease = task.lease});
}

ValueHeader BorrowedWorker::Show(Object& object) {
  if (const std::uint64_t name = machine_.NameAt(object, worker_->lender)) {
    return HeaderOf(ObjectValue::Remote(0, name, object.value.extent.bytes));
  }
  return HeaderOf(object.value);
}

void BorrowedWorker::Check(ObjectValue& value) {
  if (value.kind == ObjectValue::Kind::kShared) {
    throw DataLoss("a lent worker has a value in this node's memory");
  }
  if (value.kind == ObjectValue::Kind::kRemote) value.node = worker_->lender;
}

void BorrowedWorker::HandleHere(ToNode kind, MessageReader&) {
  throw DataLoss("a lent worker says what only its own node can know: a message of kind {}",
                 static_cast<int>(kind));
}

}  // namespace menger
