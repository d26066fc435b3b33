#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/mutex.h"
#include "menger/base/thread.h"
#include "menger/runtime/cluster/open_requests.h"
#include "menger/runtime/cluster/remote_store_options.h"
#include "menger/runtime/cluster/store_codec.h"
#include "menger/runtime/control/control_store.h"
#include "menger/runtime/net/peer_stream.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {

// How a RemoteStore reaches its server: the stream and the next one, what was asked over it and is
// not answered, and a thread that knows when it is too late and when to connect again. It sleeps
// where nothing is to do.
//
// Shared: by the store, its watches, and itself while the streams may call it. So it may live a
// little longer than the store: until the service has told of the end of its last stream.
class StoreConnection final : public PeerStreamOwner,
                              public std::enable_shared_from_this<StoreConnection> {
 public:
  // Throws InvalidArgument for options that are wrong.
  StoreConnection(PeerStreams& streams, std::string address, const RemoteStoreOptions& options);

  // ---- As RemoteStore's; Start is called once, before the others.
  void Start();
  void Stop();
  std::optional<Error> last_failure() const;
  // Gives the request its number, and has it answered or fails it.
  void Ask(StoreRequest request, OpenRequest open);
  // The number by which Unwatch ends it, which waits for a hint that is running.
  std::uint64_t Watch(StoreTable table, std::string prefix, std::function<void()> hint);
  void Unwatch(std::uint64_t number);

  // ---- As PeerStreamOwner.
  void Opened(std::shared_ptr<PeerStream> stream) override;
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override;
  void HasRoom(PeerStream& stream) override;
  void Ended(PeerStream& stream, const Error& why) override;
  void Failed(const std::string& address, const Error& why) override;

 private:
  class Hinted;
  // What a caller has to be told once nothing is locked.
  struct Failing {
    OpenRequest request;
    Error why;
  };

  void Run();
  void Connect();
  void ConnectAgain();
  void ConnectLater(const Error& why) MENGER_REQUIRES(mutex_);
  std::vector<Failing> TakeLate() MENGER_REQUIRES(mutex_);
  static void TellAll(const std::vector<Failing>& failing);

  std::optional<Error> RefuseSize(const StoreRequest& request, std::size_t bytes) const;
  std::optional<Error> Refuse(const OpenRequest& open) const MENGER_REQUIRES(mutex_);
  std::vector<Failing> SendUnsent() MENGER_REQUIRES(mutex_);
  bool TrySend(StoreRequest& request, const OpenRequest* open) MENGER_REQUIRES(mutex_);
  void Take(StoreAnswer answer);

  PeerStreams& streams_;
  const std::string address_;
  const RemoteStoreOptions options_;

  // Each is taken before the next.
  Mutex stop_mutex_;  // Held by Stop.
  Mutex
      telling_mutex_;  // By the streams' thread while it tells callers, so that Stop waits for it.
  mutable Mutex mutex_;
  std::condition_variable changed_;  // For the thread.
  bool stopped_ MENGER_GUARDED_BY(mutex_) = false;

  std::shared_ptr<StoreConnection> self_ MENGER_GUARDED_BY(mutex_);  // While the streams may call.
  std::shared_ptr<PeerStream> stream_ MENGER_GUARDED_BY(mutex_);
  std::optional<std::int64_t> connect_at_ MENGER_GUARDED_BY(mutex_);  // None: it does, or has.
  std::chrono::nanoseconds pause_ MENGER_GUARDED_BY(mutex_);
  std::optional<Error> failure_ MENGER_GUARDED_BY(mutex_);
  bool refused_ MENGER_GUARDED_BY(mutex_) = false;  // By the other end, as failure_ says.

  std::uint64_t last_number_ MENGER_GUARDED_BY(mutex_) = 0;
  OpenRequests open_ MENGER_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::shared_ptr<Hinted>> watches_ MENGER_GUARDED_BY(mutex_);
  // In their order. Each but those of watches is also open.
  std::deque<StoreRequest> unsent_ MENGER_GUARDED_BY(mutex_);

  std::int64_t wake_at_ MENGER_GUARDED_BY(mutex_) = 0;  // When the thread looks next.
  Thread thread_;
};

}  // namespace menger
