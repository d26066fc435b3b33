#include "menger/runtime/cluster/store_server.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "menger/base/log.h"
#include "menger/base/mutex.h"
#include "menger/runtime/cluster/fit_answer.h"

namespace menger {
namespace {

constexpr int kPageRecordsMax = 256;
constexpr std::size_t kFrameBytesLeast = std::size_t{16} << 10;

StoreServerOptions Checked(const StoreServerOptions& options) {
  if (options.frame_bytes_max < kFrameBytesLeast) {
    throw InvalidArgument(
        "frame_bytes_max of a control store's server is {}; it must be at least {}",
        options.frame_bytes_max, kFrameBytesLeast);
  }
  if (options.waiting_bytes_max < options.frame_bytes_max) {
    throw InvalidArgument(
        "waiting_bytes_max of a control store's server is {}; it must be at least "
        "frame_bytes_max, {}",
        options.waiting_bytes_max, options.frame_bytes_max);
  }
  return options;
}

}  // namespace

// One stream: how much its client has asked, and what waits to be told to it. Shared with the
// completions and hints of the store, which may come when the stream is over. Any thread; nothing
// here waits or calls the store, so it may be called where the store has locks of its own.
class StoreServer::Client {
 public:
  Client(std::shared_ptr<PeerStream> stream, const StoreServerOptions& options)
      : stream_(std::move(stream)), options_(options) {}

  PeerStream& stream() { return *stream_; }

  // Whether there is room for one more request; its answer, by Answer, gives it back.
  bool Begin(std::size_t bytes) {
    const MutexLock lock(mutex_);
    if (requests_ >= options_.requests_max ||
        (requests_ > 0 && request_bytes_ + bytes > options_.request_bytes_max)) {
      return false;
    }
    ++requests_;
    request_bytes_ += bytes;
    return true;
  }

  // To a request that had begun with so many bytes.
  void Answer(StoreAnswer answer, std::size_t bytes) {
    {
      const MutexLock lock(mutex_);
      --requests_;
      request_bytes_ -= bytes;
    }
    Say(std::move(answer));
  }

  // Throws nothing: what cannot be said closes the stream, by whose end the client learns of it.
  void Say(StoreAnswer answer) {
    Guard([&] {
      FitAnswer(answer, options_.frame_bytes_max);
      std::vector<std::byte> frame = EncodeStoreAnswer(answer);
      const MutexLock lock(mutex_);
      if (!waiting_.empty() || !stream_->TrySend(frame)) Keep(std::move(frame));
    });
  }

  // One that waits stands for all.
  void Hint(std::uint64_t number) {
    Guard([&] {
      const MutexLock lock(mutex_);
      if (!hints_.empty() || !waiting_.empty() || !SendHint(number)) hints_.insert(number);
    });
  }
  void ForgetHint(std::uint64_t number) {
    const MutexLock lock(mutex_);
    hints_.erase(number);
  }

  void SendWaiting() {
    Guard([&] {
      const MutexLock lock(mutex_);
      while (!waiting_.empty() && stream_->TrySend(waiting_.front())) {
        waiting_bytes_ -= waiting_.front().size();
        waiting_.pop_front();
      }
      while (waiting_.empty() && !hints_.empty() && SendHint(*hints_.begin())) {
        hints_.erase(hints_.begin());
      }
    });
  }

  // The stream has ended.
  void End() {
    const MutexLock lock(mutex_);
    over_ = true;
    waiting_.clear();
    hints_.clear();
  }

 private:
  template <typename Function>
  void Guard(Function function) {
    try {
      function();
    } catch (...) {
      LogError("a client of the control store cannot be answered and loses its stream: {}",
               TranslateCurrentException().what());
      stream_->Close();
    }
  }

  bool SendHint(std::uint64_t number) MENGER_REQUIRES(mutex_) {
    return stream_->TrySend(
        EncodeStoreAnswer({.number = number, .kind = StoreAnswer::Kind::kHint}));
  }

  void Keep(std::vector<std::byte> frame) MENGER_REQUIRES(mutex_) {
    if (over_) return;
    waiting_bytes_ += frame.size();
    waiting_.push_back(std::move(frame));
    if (waiting_bytes_ <= options_.waiting_bytes_max) return;
    over_ = true;
    waiting_.clear();
    LogWarning(
        "a client of the control store at '{}' does not read its answers and loses its stream",
        stream_->peer().address);
    stream_->Close();
  }

  const std::shared_ptr<PeerStream> stream_;
  const StoreServerOptions options_;

  Mutex mutex_;
  bool over_ MENGER_GUARDED_BY(mutex_) = false;
  std::size_t requests_ MENGER_GUARDED_BY(mutex_) = 0;
  std::size_t request_bytes_ MENGER_GUARDED_BY(mutex_) = 0;
  std::deque<std::vector<std::byte>> waiting_ MENGER_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ MENGER_GUARDED_BY(mutex_) = 0;
  std::set<std::uint64_t> hints_ MENGER_GUARDED_BY(mutex_);  // Of watches; they wait, too.
};

StoreServer::StoreServer(ControlStore& store, StoreServerOptions options)
    : store_(store), options_(Checked(options)) {}

StoreServer::~StoreServer() {
  for (auto& [stream, served] : served_) {
    served.watches.clear();
    served.client->End();
    served.client->stream().Close();
  }
}

void StoreServer::Opened(std::shared_ptr<PeerStream> stream) {
  const PeerStream* const key = stream.get();
  served_[key].client = std::make_shared<Client>(std::move(stream), options_);
}

void StoreServer::Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) {
  Served& served = served_.at(&stream);
  for (const auto frame : frames) Take(served, DecodeStoreRequest(frame), frame.size());
}

void StoreServer::HasRoom(PeerStream& stream) { served_.at(&stream).client->SendWaiting(); }

void StoreServer::Ended(PeerStream& stream) {
  const auto ended = served_.extract(&stream);
  if (ended.empty()) return;
  ended.mapped().client->End();
}

void StoreServer::Take(Served& served, StoreRequest request, std::size_t bytes) {
  switch (request.kind) {
    case StoreRequest::Kind::kSubmit:
      return Submit(served, std::move(request), bytes);
    case StoreRequest::Kind::kScan:
      return Scan(served, std::move(request), bytes);
    case StoreRequest::Kind::kWatch:
      return Watch(served, std::move(request));
    case StoreRequest::Kind::kUnwatch:
      served.watches.erase(request.number);
      return served.client->ForgetHint(request.number);
  }
}

void StoreServer::Submit(Served& served, StoreRequest request, std::size_t bytes) {
  const std::size_t batch_max = options_.frame_bytes_max / kStoreResultRoom;
  if (request.batch.size() > batch_max) {
    throw InvalidArgument("a batch for the control store has {} operations; {} are the most",
                          request.batch.size(), batch_max);
  }
  StoreAnswer answer{.number = request.number, .kind = StoreAnswer::Kind::kResults};
  if (!served.client->Begin(bytes)) {
    const StoreResult refused{
        .outcome = StoreResult::Outcome::kFailed,
        .error = Unavailable("too many requests of this process wait for the control store")};
    answer.results.assign(request.batch.size(), refused);
    return served.client->Say(std::move(answer));
  }
  store_.Submit(std::move(request.batch), Deadline::After(request.remaining),
                [client = served.client, bytes,
                 answer = std::move(answer)](std::vector<StoreResult> results) mutable {
                  answer.results = std::move(results);
                  client->Answer(std::move(answer), bytes);
                });
}

void StoreServer::Scan(Served& served, StoreRequest request, std::size_t bytes) {
  StoreAnswer answer{.number = request.number, .kind = StoreAnswer::Kind::kPage};
  if (!served.client->Begin(bytes)) {
    answer.page.error = Unavailable("too many requests of this process wait for the control store");
    return served.client->Say(std::move(answer));
  }
  store_.Scan(request.table, std::move(request.prefix), std::move(request.after),
              std::min(request.limit, kPageRecordsMax), Deadline::After(request.remaining),
              [client = served.client, bytes, answer = std::move(answer)](StorePage page) mutable {
                answer.page = std::move(page);
                client->Answer(std::move(answer), bytes);
              });
}

// The first hint comes at once: the client may have missed what changed before the store knew of
// its watch.
void StoreServer::Watch(Served& served, StoreRequest request) {
  const std::uint64_t number = request.number;
  if (served.watches.contains(number)) {
    throw InvalidArgument("a watch of the control store has number {}, which another has", number);
  }
  if (served.watches.size() >= options_.watches_max) {
    return served.client->Say({.number = number,
                               .kind = StoreAnswer::Kind::kNoWatch,
                               .error = Unavailable("a process may have at most {} watches of the "
                                                    "control store",
                                                    options_.watches_max)});
  }
  served.watches.emplace(number,
                         store_.Watch(request.table, std::move(request.prefix),
                                      [client = served.client, number] { client->Hint(number); }));
  served.client->Hint(number);
}

}  // namespace menger
