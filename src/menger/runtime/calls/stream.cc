#include "menger/runtime/calls/stream.h"

#include <array>

#include "menger/base/error.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// ---- The reader.

StreamReader::~StreamReader() { AtEnd(); }

void StreamReader::Swap(StreamReader& other) noexcept {
  std::swap(call_, other.call_);
  std::swap(end_, other.end_);
  std::swap(item_, other.item_);
  std::swap(next_, other.next_);
}

// Nothing more is wanted.
void StreamReader::AtEnd() {
  if (end_.valid()) client().Take(call_, kStreamDropped);
  item_ = ObjectHandle();
  end_ = ObjectHandle();
}

ObjectHandle StreamReader::Next(std::chrono::nanoseconds timeout) {
  if (!end_.valid()) return {};
  if (!item_.valid()) item_ = client().Adopt(StreamItem(call_, next_));
  const std::array<ObjectHandle, 2> either = {item_, end_};
  const std::vector<std::size_t> ready = client().Wait(either, 1, Deadline::After(timeout));
  if (ready.empty()) {
    throw DeadlineExceeded("item {} of a stream was not ready in time", next_);
  }
  // All items are there before the end is.
  if (ready.front() == 0) {
    client().Take(call_, ++next_);
    return std::exchange(item_, ObjectHandle());
  }
  const Fetched end = client().Get({&end_, 1}, Deadline::After(kNoTimeout));
  AtEnd();
  if (end.failed) throw TaskError(DecodeFailure(Payload::Copy(end.values.front().bytes())));
  return {};
}

// ---- The writer.

void StreamWriter::Emit(std::size_t bytes, FunctionRef<void(std::span<std::byte>)> fill,
                        std::span<const ObjectHandle> references) {
  if (ahead_ == 0) throw FailedPrecondition("a call that is no stream emits an item");
  client_.CheckOwn(references);
  if (next_ == kStreamItemsMax) throw InvalidArgument("a stream of {} items", next_ + 1);
  // Kept all the time, so that the node knows that somebody may wait for it.
  if (!gate_.valid()) gate_ = client_.Adopt(StreamGate(call_));
  if (client_.IsCancelled()) throw Cancelled("the items of the stream are not wanted any longer");
  ObjectValue value;
  const std::span<std::byte> out = client_.Allocate(bytes, value);
  try {
    fill(out);
  } catch (...) {
    client_.Discard(value);
    throw;
  }
  client_.Yield(next_++, std::move(value), references);
  while (next_ >= read_ + ahead_) AwaitReader();
}

namespace {

// While it lives, waits of the call end when it is cancelled, even if it endures that otherwise.
class Impatience {
 public:
  Impatience() : call_(ThisCall()), endured_(call_ != nullptr && call_->endures) {
    if (call_ != nullptr) call_->endures = false;
  }
  ~Impatience() {
    if (call_ != nullptr) call_->endures = endured_;
  }
  Impatience(const Impatience&) = delete;
  Impatience& operator=(const Impatience&) = delete;

 private:
  CallContext* const call_;
  const bool endured_;
};

}  // namespace

void StreamWriter::AwaitReader() {
  const Impatience impatience;
  const Fetched gate = client_.Get({&gate_, 1}, Deadline::After(kNoTimeout));
  if (client_.IsCancelled()) throw Cancelled("the items of the stream are not wanted any longer");
  if (gate.failed) throw Internal("the gate of a stream is broken");
  read_ = std::max(read_, Decode<std::uint64_t>(gate.values.front().bytes()));
}

}  // namespace menger
