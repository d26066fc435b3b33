#include "menger/runtime/driver/lent_worker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "menger/base/clock.h"
#include "menger/runtime/driver/process_worker.h"

namespace menger {
namespace {

template <typename T>
void Append(std::vector<std::byte>& out, const T& part) {
  const std::size_t at = out.size();
  out.resize(at + MessagePart(sizeof(part)));
  std::memcpy(out.data() + at, &part, sizeof(part));
}

// None of the worker's own has that number.
constexpr std::uint64_t kArgumentRequest = ~std::uint64_t{0};
// So long a call waits until all that it reads is in memory at once: nanoseconds.
constexpr std::int64_t kArgumentsMax = 5'000'000'000;

}  // namespace

// ---- From the owner.

void LentWorker::Tell(std::vector<std::byte> message) {
  ToWorker kind;
  if (message.size() < sizeof(kind)) throw DataLoss("a message of {} bytes", message.size());
  std::memcpy(&kind, message.data(), sizeof(kind));
  switch (kind) {
    case ToWorker::kCall:
      return TellCall(std::move(message));
    case ToWorker::kValue:
      return TellValue(std::move(message));
    case ToWorker::kReady:
    case ToWorker::kNamed:
      return process_.Pass(std::move(message));
    case ToWorker::kGrant:
    case ToWorker::kStop:
      break;
  }
  throw DataLoss("a lent worker is told a message of kind {}", static_cast<std::uint32_t>(kind));
}

// The worker trusts its node: so the lengths are looked at here.
void LentWorker::TellCall(std::vector<std::byte> message) {
  MessageReader reader(message);
  const auto head = reader.Take<CallMessage>();
  const std::span<const std::byte> written =
      reader.TakeBytes(std::uint64_t{head.references} * sizeof(ValueHeader));
  std::vector<ValueHeader> headers(head.references);
  if (!headers.empty()) std::memcpy(headers.data(), written.data(), written.size());
  TaskSpec::Validate(reader.TakeBytes(head.spec_bytes), CallKind::kLoad);
  reader.TakeBytes(head.record_bytes);
  for (const ValueHeader& header : headers) {
    if (header.kind == ObjectValue::Kind::kInline || header.kind == ObjectValue::Kind::kError) {
      reader.TakeBytes(header.bytes);
    } else if (header.kind != ObjectValue::Kind::kRemote &&
               header.kind != ObjectValue::Kind::kNone) {
      throw DataLoss("an argument of kind {}", static_cast<int>(header.kind));
    }
  }
  leases_[head.lease];
  calls_.push_back(
      {.lease = head.lease, .message = std::move(message), .arguments = std::move(headers)});
  if (calls_.size() == 1) PassCalls();
}

// In their order.
void LentWorker::PassCalls() {
  while (!calls_.empty()) {
    WaitingCall& first = calls_.front();
    if (AwaitArguments(first)) {
      const std::int64_t now = MonotonicNanoseconds();
      if (first.since == 0) first.since = now;
      if (now - first.since <= kArgumentsMax) return;
    }
    PassFirst();
  }
}

// What it reads stays in memory from now on; it asks for what is not there.
void LentWorker::PassFirst() {
  WaitingCall call = std::move(calls_.front());
  calls_.pop_front();
  std::vector<ValueHeader>& headers = call.arguments;
  std::vector<ObjectId>& reads = leases_[call.lease];
  for (ValueHeader& header : headers) {
    if (header.kind != ObjectValue::Kind::kRemote) continue;
    Object* const kept = FindKept(header);
    header = kept != nullptr ? Lay(*kept) : ValueHeader();
    if (header.kind != ObjectValue::Kind::kNone) reads.push_back(kept->id);
  }
  if (!headers.empty()) {
    std::memcpy(call.message.data() + MessagePart(sizeof(CallMessage)), headers.data(),
                headers.size() * sizeof(ValueHeader));
  }
  process_.PassCall(call.lease, std::move(call.message));
}

// True if some are on the disk: they are brought back. Those that are in memory are not kept there
// meanwhile: two calls that each had a part of what they need might wait for each other's.
bool LentWorker::AwaitArguments(const WaitingCall& call) {
  bool awaits = false;
  for (const ValueHeader& header : call.arguments) {
    if (header.kind != ObjectValue::Kind::kRemote) continue;
    Object* const kept = FindKept(header);
    if (kept == nullptr || kept->value.kind != ObjectValue::Kind::kSpilled) continue;
    const Watch watch{process_.index(), kArgumentRequest};
    machine_.Unwatch(watch, *kept);
    awaits |= !machine_.WatchObject(watch, *kept, /*with_value=*/true);
  }
  return awaits;
}

Object* LentWorker::FindKept(const ValueHeader& header) {
  const Peer* const peer = machine_.FindPeer(owner_);
  return peer != nullptr ? machine_.FindKept(*peer, header.offset) : nullptr;
}

void LentWorker::TellValue(std::vector<std::byte> message) {
  MessageReader reader(message);
  const auto head = reader.Take<ValueMessage>();
  if (head.value.kind != ObjectValue::Kind::kRemote) {
    if (head.value.kind == ObjectValue::Kind::kShared) {
      throw DataLoss("a value of another node in this one's memory");
    }
    reader.TakeBytes(head.value.bytes);
    return process_.Pass(std::move(message));
  }
  Object* const kept = FindKept(head.value);
  if (kept == nullptr) throw DataLoss("value {} does not lie here", head.value.offset);
  const Watch watch{process_.index(), head.request};
  if (machine_.WatchObject(watch, *kept, /*with_value=*/true)) return Show(head, *kept);
  restoring_.emplace(head.request, head);
}

void LentWorker::Ready(std::uint64_t request, Object& kept) {
  if (request == kArgumentRequest) return PassCalls();
  const auto found = restoring_.find(request);
  if (found == restoring_.end()) return;
  const ValueMessage head = found->second;
  restoring_.erase(found);
  Show(head, kept);
}

void LentWorker::Refuse(std::uint64_t request, const Payload& error) {
  if (request == kArgumentRequest) {
    if (!calls_.empty()) PassFirst();
    return PassCalls();
  }
  const auto found = restoring_.find(request);
  if (found == restoring_.end()) return;
  ValueMessage message = found->second;
  restoring_.erase(found);
  message.value = HeaderOf(ObjectValue::Failed(error));
  std::vector<std::byte> bytes;
  Append(bytes, message);
  bytes.insert(bytes.end(), error.bytes().begin(), error.bytes().end());
  bytes.resize(MessagePart(bytes.size()));
  process_.Pass(std::move(bytes));
}

void LentWorker::Show(const ValueMessage& head, Object& kept) {
  ValueMessage message = head;
  message.value = Lay(kept);
  if (message.value.kind == ObjectValue::Kind::kShared) shown_.emplace(head.object, kept.id);
  std::vector<std::byte> bytes;
  Append(bytes, message);
  process_.Pass(std::move(bytes));
}

ValueHeader LentWorker::Lay(Object& kept) {
  if (kept.value.kind != ObjectValue::Kind::kShared) return {};
  machine_.objects().Pin(process_.index(), kept);
  process_.MapSegment(kept.value.extent.segment);
  return HeaderOf(kept.value);
}

namespace {

auto IsOf(LeaseNumber lease) {
  return [lease](const auto& call) { return call.lease == lease; };
}

}  // namespace

void LentWorker::Recall(LeaseNumber lease) {
  if (!leases_.contains(lease)) return;
  const bool waits = std::erase_if(calls_, IsOf(lease)) > 0;
  if (!waits && !process_.TakeBack(lease)) return;
  EndLease(lease);
  box_.Send(owner_, {.kind = NodeLetter::Kind::kReturned, .loan = loan_, .lease = lease});
}

void LentWorker::GiveBackCalls() {
  std::vector<LeaseNumber> leases;
  for (const auto& [lease, reads] : leases_) leases.push_back(lease);
  for (auto lease = leases.rbegin(); lease != leases.rend(); ++lease) Recall(*lease);
}

void LentWorker::Interrupt(LeaseNumber lease) {
  if (leases_.contains(lease)) process_.InterruptCall(lease);
}

std::vector<LeaseNumber> LentWorker::Begun() {
  std::vector<LeaseNumber> begun;
  for (auto lease = leases_.rbegin(); lease != leases_.rend(); ++lease) {
    const bool waits = std::ranges::any_of(calls_, IsOf(lease->first));
    if (!waits && !process_.TakeBack(lease->first)) begun.push_back(lease->first);
  }
  return begun;
}

void LentWorker::EndLease(LeaseNumber lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  for (const ObjectId id : found->second) {
    if (Object* const kept = machine_.objects().Find(id)) {
      machine_.objects().Unpin(process_.index(), *kept);
    }
  }
  leases_.erase(found);
}

// ---- From the worker.

void LentWorker::Say(ToNode kind, std::span<const std::byte> message) {
  switch (kind) {
    case ToNode::kFinished:
    case ToNode::kFailed:
      return SayEnded(kind, message);
    case ToNode::kPut:
      return SayValue<ReferenceMessage>(message);
    case ToNode::kYield:
      return SayValue<YieldMessage>(message);
    case ToNode::kUnpin:
      return SayUnpinned(MessageReader(message).Take<ReferenceMessage>().object);
    default:
      return SendOn({message.begin(), message.end()});
  }
}

// Its clock is not the owner's.
void LentWorker::SayEnded(ToNode kind, std::span<const std::byte> message) {
  MessageReader reader(message);
  auto head = reader.Take<FinishedMessage>();
  head.ended_at = 0;
  std::vector<std::byte> out;
  Append(out, head);
  if (kind == ToNode::kFailed) {
    out.insert(out.end(), reader.rest().begin(), reader.rest().end());
  } else {
    for (std::uint32_t i = 0; i < head.results; ++i) WriteResultFor(reader, out);
  }
  EndLease(head.lease);
  SendOn(std::move(out));
}

template <typename Head>
void LentWorker::SayValue(std::span<const std::byte> message) {
  MessageReader reader(message);
  std::vector<std::byte> out;
  Append(out, reader.Take<Head>());
  WriteResultFor(reader, out);
  SendOn(std::move(out));
}

void LentWorker::WriteResultFor(MessageReader& reader, std::vector<std::byte>& out) {
  std::vector<ObjectId> contained;
  ObjectValue value = ReadResult(reader, contained);
  process_.CheckValue(value);
  const Peer* const peer = machine_.FindPeer(owner_);
  if (value.kind == ObjectValue::Kind::kShared && peer != nullptr) {
    const std::uint64_t bytes = value.extent.bytes;
    value = ObjectValue::Remote(0, machine_.KeepFor(*peer, std::move(value)), bytes);
  }
  const std::size_t at = out.size();
  out.resize(at + ResultBytes(value, contained.size()));
  MessageWriter writer(std::span<std::byte>(out).subspan(at));
  WriteResult(writer, value, contained);
}

void LentWorker::SayUnpinned(ObjectId object) {
  const auto found = shown_.find(object);
  if (found == shown_.end()) return;
  Object* const kept = machine_.objects().Find(found->second);
  shown_.erase(found);
  if (kept != nullptr) machine_.objects().Unpin(process_.index(), *kept);
}

void LentWorker::SendOn(std::vector<std::byte> message) {
  box_.Send(owner_,
            {.kind = NodeLetter::Kind::kFromWorker, .loan = loan_, .bytes = std::move(message)});
}

}  // namespace menger
