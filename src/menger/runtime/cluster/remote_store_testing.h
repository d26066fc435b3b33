#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/cluster/remote_store.h"
#include "menger/runtime/cluster/store_server.h"
#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/net/peer_stream_testing.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {

// The process that has the store: its streams and who serves it over them.
class StoreHead final : public PeerStreamOwner {
 public:
  explicit StoreHead(ControlStore& store, const std::string& address = "127.0.0.1:0",
                     const StoreServerOptions& options = {},
                     const PeerStreamOptions& stream_options = OptionsOfNode(1))
      : server_(store, options),
        service_(stream_options),
        address_(service_.Listen(address, *this)) {}

  const std::string& address() const { return address_; }

  // The `index`th of what a stream ended by; nothing if it does not come.
  std::optional<Error> WaitEnded(std::size_t index = 0) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, kStreamPatience, [&] { return ended_.size() > index; });
    return came ? std::optional(ended_[index]) : std::nullopt;
  }
  // Of all clients.
  void CutStreams() {
    const std::lock_guard lock(mutex_);
    for (const auto& stream : streams_) stream->Close();
  }

 private:
  void Opened(std::shared_ptr<PeerStream> stream) override {
    const std::lock_guard lock(mutex_);
    streams_.push_back(stream);
    server_.Opened(std::move(stream));
  }
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    server_.Arrived(stream, frames);
  }
  void HasRoom(PeerStream& stream) override { server_.HasRoom(stream); }
  void Ended(PeerStream& stream, const Error& why) override {
    server_.Ended(stream);
    const std::lock_guard lock(mutex_);
    std::erase_if(streams_, [&](const auto& each) { return each.get() == &stream; });
    ended_.push_back(why);
    changed_.notify_all();
  }
  void Failed(const std::string& /*address*/, const Error& /*why*/) override {}

  StoreServer server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<PeerStream>> streams_;
  std::vector<Error> ended_;
  PeerStreams service_;  // Ends before what its thread uses.
  const std::string address_;
};

// A process that has none.
class StoreClient {
 public:
  explicit StoreClient(const std::string& address, const RemoteStoreOptions& options = {},
                       const PeerStreamOptions& stream_options = OptionsOfNode(2))
      : service_(stream_options), store_(service_, address, options) {}

  RemoteStore& store() { return store_; }

 private:
  PeerStreams service_;
  RemoteStore store_;
};

}  // namespace menger
