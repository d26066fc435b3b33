#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/sharing/tcp_socket.h"
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

// Does what it is asked when it is told to, by whom it is told.
class HeldStore final : public ControlStore {
 public:
  explicit HeldStore(ControlStore& store) : store_(store) {}

  void Submit(std::vector<StoreOperation> batch, Deadline deadline,
              Completion completion) override {
    Hold([this, batch = std::move(batch), deadline, completion = std::move(completion)] {
      store_.Submit(batch, deadline, completion);
    });
  }
  void Scan(StoreTable table, std::string prefix, std::string after, int limit, Deadline deadline,
            PageCompletion completion) override {
    Hold([=, this] { store_.Scan(table, prefix, after, limit, deadline, completion); });
  }
  [[nodiscard]] std::unique_ptr<StoreWatch> Watch(StoreTable table, std::string prefix,
                                                  std::function<void()> hint) override {
    return store_.Watch(table, std::move(prefix), std::move(hint));
  }

  bool WaitHeld(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kStreamPatience, [&] { return held_.size() >= count; });
  }
  // Those that are held; `from_now_on`: and later ones at once.
  void Release(bool from_now_on = false) {
    std::vector<std::function<void()>> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
      free_ = from_now_on;
    }
    for (const auto& each : held) each();
  }

 private:
  void Hold(std::function<void()> each) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_) {
        held_.push_back(std::move(each));
        return changed_.notify_all();
      }
    }
    each();
  }

  ControlStore& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> held_;
  bool free_ = false;
};

// What completes some time.
class Asked {
 public:
  ControlStore::Completion results() {
    return [this](std::vector<StoreResult> results) { promise_.set_value(std::move(results)); };
  }
  ControlStore::PageCompletion page() {
    return [this](const StorePage& page) {
      promise_.set_value(
          {{.outcome = page.error ? StoreResult::Outcome::kFailed : StoreResult::Outcome::kDone,
            .error = page.error}});
    };
  }
  bool completed() {
    return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  // Of a page: one for all of it.
  std::vector<StoreResult> Wait() {
    if (future_.wait_for(kStreamPatience) != std::future_status::ready) {
      throw DeadlineExceeded("a request was not completed");
    }
    return future_.get();
  }
  Error WaitError() { return Wait().at(0).error.value(); }

 private:
  std::promise<std::vector<StoreResult>> promise_;
  std::future<std::vector<StoreResult>> future_ = promise_.get_future();
};

// Counts hints.
class Hints {
 public:
  std::function<void()> Counted() {
    return [this] {
      const std::lock_guard lock(mutex_);
      ++count_;
      changed_.notify_all();
    };
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  bool WaitMore(int than) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kStreamPatience, [&] { return count_ > than; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// True once the condition holds.
template <typename Condition>
bool WaitUntil(Condition condition) {
  for (const auto patience = Deadline::After(kStreamPatience); !patience.expired();) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Where nobody listens.
inline std::string FreeAddress() { return ListeningTcpSocket("127.0.0.1:0").address(); }

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
