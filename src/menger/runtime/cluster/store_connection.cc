#include "menger/runtime/cluster/store_connection.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/log.h"
#include "menger/base/mutex.h"
#include "menger/base/thread.h"
#include "menger/runtime/cluster/fit_answer.h"
#include "menger/runtime/cluster/open_requests.h"
#include "menger/runtime/cluster/store_codec.h"

namespace menger {
namespace {

// Longer the thread never sleeps at a time.
constexpr std::chrono::nanoseconds kSleepMax = std::chrono::minutes(1);

bool IsOfWatch(const StoreRequest& request) {
  return request.kind == StoreRequest::Kind::kWatch || request.kind == StoreRequest::Kind::kUnwatch;
}

RemoteStoreOptions Checked(const RemoteStoreOptions& options) {
  CheckRemoteStoreOptions(options);
  return options;
}

}  // namespace

// Who wants to be hinted, until he goes.
class StoreConnection::Hinted {
 public:
  Hinted(StoreTable table, std::string prefix, std::function<void()> hint)
      : table_(table), prefix_(std::move(prefix)), hint_(std::move(hint)) {}

  StoreRequest RequestAs(std::uint64_t number) const {
    return {
        .number = number, .kind = StoreRequest::Kind::kWatch, .table = table_, .prefix = prefix_};
  }

  void Hint() {
    const MutexLock lock(mutex_);
    if (hint_) hint_();
  }
  void End() {
    const MutexLock lock(mutex_);
    hint_ = nullptr;
  }

 private:
  const StoreTable table_;
  const std::string prefix_;
  Mutex mutex_;  // Held while it is hinted.
  std::function<void()> hint_ MENGER_GUARDED_BY(mutex_);
};

StoreConnection::StoreConnection(PeerStreams& streams, std::string address,
                                 const RemoteStoreOptions& options)
    : streams_(streams),
      address_(std::move(address)),
      options_(Checked(options)),
      pause_(options.pause_min) {}

void StoreConnection::TellAll(const std::vector<Failing>& failing) {
  for (const Failing& each : failing) each.request.Fail(each.why);
}

std::optional<Error> StoreConnection::last_failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

// ---- Its own thread

void StoreConnection::Start() {
  Connect();
  thread_ = Thread({.name = "store client"}, [this] { Run(); });
}

void StoreConnection::Stop() {
  const MutexLock stopping(stop_mutex_);
  std::shared_ptr<PeerStream> stream;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    stream = stream_;
    changed_.notify_all();
  }
  thread_.Join();
  if (stream != nullptr) stream->Close();
  const MutexLock telling(telling_mutex_);
  std::vector<OpenRequest> open;
  {
    const MutexLock lock(mutex_);
    open = open_.TakeAll();
    unsent_.clear();
  }
  const Error why = Unavailable(
      "this process has left the control store at '{}' before an answer; a change may have been "
      "made",
      address_);
  for (const OpenRequest& request : open) request.Fail(why);
}

void StoreConnection::Run() {
  MutexLock lock(mutex_);
  while (!stopped_) {
    const std::vector<Failing> late = TakeLate();
    const bool connects = connect_at_ && *connect_at_ <= MonotonicNanoseconds();
    if (connects || !late.empty()) {
      lock.Unlock();
      TellAll(late);
      if (connects) ConnectAgain();
      lock.Lock();
      continue;
    }
    wake_at_ = open_.look_at();
    if (connect_at_) wake_at_ = std::min(wake_at_, *connect_at_);
    const std::chrono::nanoseconds sleep(wake_at_ - MonotonicNanoseconds());
    if (sleep.count() > 0) changed_.wait_for(lock.native(), std::min(sleep, kSleepMax));
  }
}

// Called by the constructor and then by the thread alone. Throws as PeerStreams::Connect.
void StoreConnection::Connect() {
  {
    const MutexLock lock(mutex_);
    connect_at_.reset();
    self_ = shared_from_this();
  }
  try {
    streams_.Connect(address_, PeerLane::kStore, *this);
  } catch (...) {
    const MutexLock lock(mutex_);
    self_.reset();
    throw;
  }
}

void StoreConnection::ConnectAgain() {
  try {
    Connect();
  } catch (...) {
    const MutexLock lock(mutex_);
    ConnectLater(TranslateCurrentException());
  }
}

void StoreConnection::ConnectLater(const Error& why) {
  failure_.emplace(why);
  stream_.reset();
  if (stopped_) return;
  connect_at_ = MonotonicNanoseconds() + pause_.count();
  pause_ = std::min<std::chrono::nanoseconds>(2 * pause_, options_.pause_max);
  changed_.notify_all();
}

std::vector<StoreConnection::Failing> StoreConnection::TakeLate() {
  std::vector<Failing> late;
  for (OpenRequest& request : open_.TakeLate()) {
    const Error why =
        request.sent
            ? DeadlineExceeded("the control store at '{}' has not answered in time", address_)
            : DeadlineExceeded(
                  "a request to the control store at '{}' could not be sent in time{}{}", address_,
                  failure_ ? ": " : "", failure_ ? failure_->what() : "");
    late.push_back({std::move(request), why});
  }
  if (late.empty()) return late;
  std::erase_if(unsent_, [this](const StoreRequest& request) {
    mutex_.AssertHeld();
    return !IsOfWatch(request) && open_.Find(request.number) == nullptr;
  });
  return late;
}

// ---- Asking

std::optional<Error> StoreConnection::RefuseSize(const StoreRequest& request,
                                                 std::size_t bytes) const {
  if (bytes > options_.frame_bytes_max) {
    return InvalidArgument(
        "a request of {} bytes cannot be sent to the control store of another process; it may have "
        "{}",
        bytes, options_.frame_bytes_max);
  }
  const std::size_t batch_max =
      std::min(kStoreBatchMax, options_.frame_bytes_max / kStoreResultRoom);
  if (request.batch.size() > batch_max) {
    return InvalidArgument(
        "a batch of {} operations cannot be sent to the control store of another process; it may "
        "have {}",
        request.batch.size(), batch_max);
  }
  return std::nullopt;
}

std::optional<Error> StoreConnection::Refuse(const OpenRequest& open) const {
  if (stopped_) {
    return Unavailable("this process has left the control store at '{}'", address_);
  }
  if (open.deadline.expired()) {
    return DeadlineExceeded(
        "the deadline of a request to the control store at '{}' had passed "
        "before",
        address_);
  }
  if (refused_) {
    return Unavailable("the control store at '{}' takes no requests of this process: {}", address_,
                       failure_->what());
  }
  if (open_.size() >= options_.requests_max ||
      (open_.size() > 0 && open_.bytes() + open.bytes > options_.request_bytes_max)) {
    return Unavailable("{} requests with {} bytes wait for the control store at '{}' already",
                       open_.size(), open_.bytes(), address_);
  }
  return std::nullopt;
}

void StoreConnection::Ask(StoreRequest request, OpenRequest open) {
  open.bytes = EncodedBytes(request);
  std::optional<Error> refused = RefuseSize(request, open.bytes);
  std::vector<Failing> failing;
  {
    const MutexLock lock(mutex_);
    if (!refused) refused = Refuse(open);
    if (refused) {
      failing.push_back({std::move(open), *refused});
    } else {
      if (MonotonicNanoseconds() + open.deadline.slice().count() < wake_at_) changed_.notify_all();
      request.number = ++last_number_;
      open_.Add(request.number, std::move(open));
      unsent_.push_back(std::move(request));
      failing = SendUnsent();
    }
  }
  TellAll(failing);
}

// As much as there is room for. What fails by itself, where the streams take shorter frames than
// the options say, keeps nothing else up.
std::vector<StoreConnection::Failing> StoreConnection::SendUnsent() {
  std::vector<Failing> failing;
  while (stream_ != nullptr && !unsent_.empty()) {
    StoreRequest& request = unsent_.front();
    OpenRequest* const open = open_.Find(request.number);
    try {
      if (!TrySend(request, open)) break;
      if (open != nullptr) open->sent = true;
    } catch (...) {
      const Error why = TranslateCurrentException();
      if (open != nullptr) failing.push_back({open_.Take(request.number), why});
    }
    unsent_.pop_front();
  }
  return failing;
}

bool StoreConnection::TrySend(StoreRequest& request, const OpenRequest* open) {
  if (open != nullptr) request.remaining = open->deadline.remaining();
  return stream_->TrySend(EncodeStoreRequest(request));
}

std::uint64_t StoreConnection::Watch(StoreTable table, std::string prefix,
                                     std::function<void()> hint) {
  auto hinted = std::make_shared<Hinted>(table, std::move(prefix), std::move(hint));
  const MutexLock lock(mutex_);
  const std::uint64_t number = ++last_number_;
  if (stream_ != nullptr) {
    unsent_.push_back(hinted->RequestAs(number));
    SendUnsent();
  }
  watches_.emplace(number, std::move(hinted));
  return number;
}

void StoreConnection::Unwatch(std::uint64_t number) {
  std::shared_ptr<Hinted> hinted;
  {
    const MutexLock lock(mutex_);
    hinted = std::move(watches_.extract(number).mapped());
    const bool unknown = std::erase_if(unsent_, [number](const StoreRequest& request) {
                           return request.number == number;
                         }) > 0;
    if (stream_ != nullptr && !unknown) {
      unsent_.push_back({.number = number, .kind = StoreRequest::Kind::kUnwatch});
      SendUnsent();
    }
  }
  hinted->End();
}

// ---- The stream

// Watches come first, so that what is read later misses nothing.
void StoreConnection::Opened(std::shared_ptr<PeerStream> stream) {
  const MutexLock telling(telling_mutex_);
  std::vector<Failing> failing;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return stream->Close();
    stream_ = std::move(stream);
    failure_.reset();
    refused_ = false;
    std::erase_if(unsent_, IsOfWatch);
    for (auto watch = watches_.rbegin(); watch != watches_.rend(); ++watch) {
      unsent_.push_front(watch->second->RequestAs(watch->first));
    }
    failing = SendUnsent();
  }
  TellAll(failing);
}

void StoreConnection::Arrived(PeerStream& /*stream*/,
                              std::span<const std::span<const std::byte>> frames) {
  const MutexLock telling(telling_mutex_);
  for (const auto frame : frames) Take(DecodeStoreAnswer(frame));
}

void StoreConnection::Take(StoreAnswer answer) {
  std::shared_ptr<Hinted> hinted;
  std::optional<OpenRequest> answered;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    pause_ = options_.pause_min;  // It is a store that serves this process.
    const auto watch = watches_.find(answer.number);
    const OpenRequest* const open = open_.Find(answer.number);
    if (watch != watches_.end() && answer.kind == StoreAnswer::Kind::kHint) {
      hinted = watch->second;
    } else if (open != nullptr) {  // Otherwise nobody waits for it any longer.
      if (!open->sent || !open->Expects(answer)) {
        throw InvalidArgument(
            "the control store at '{}' has answered a request by what is no "
            "answer to it",
            address_);
      }
      answered.emplace(open_.Take(answer.number));
    }
  }
  if (hinted != nullptr) hinted->Hint();
  if (answer.kind == StoreAnswer::Kind::kNoWatch) {
    LogWarning("the control store at '{}' does not hint: {}", address_, answer.error->what());
  }
  if (answered) answered->Complete(std::move(answer));
}

void StoreConnection::HasRoom(PeerStream& /*stream*/) {
  const MutexLock telling(telling_mutex_);
  std::vector<Failing> failing;
  {
    const MutexLock lock(mutex_);
    failing = SendUnsent();
  }
  TellAll(failing);
}

void StoreConnection::Ended(PeerStream& /*stream*/, const Error& why) {
  const std::shared_ptr<StoreConnection> self =
      shared_from_this();  // Goes after all that is locked.
  const MutexLock telling(telling_mutex_);
  std::vector<OpenRequest> sent;
  {
    const MutexLock lock(mutex_);
    self_.reset();
    sent = open_.TakeSent();
    ConnectLater(why);
  }
  const Error lost = Unavailable(
      "the stream to the control store at '{}' has ended before an answer, a change may have been "
      "made: {}",
      address_, why.what());
  for (const OpenRequest& request : sent) request.Fail(lost);
}

void StoreConnection::Failed(const std::string& /*address*/, const Error& why) {
  const std::shared_ptr<StoreConnection> self =
      shared_from_this();  // Goes after all that is locked.
  const MutexLock telling(telling_mutex_);
  std::vector<OpenRequest> refused;
  {
    const MutexLock lock(mutex_);
    self_.reset();
    refused_ =
        why.code() == ErrorCode::kFailedPrecondition || why.code() == ErrorCode::kInvalidArgument;
    ConnectLater(why);
    if (refused_) {
      refused = open_.TakeAll();
      unsent_.clear();
    }
  }
  const Error told = Unavailable("the control store at '{}' takes no requests of this process: {}",
                                 address_, why.what());
  for (const OpenRequest& request : refused) request.Fail(told);
}

}  // namespace menger
