#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/sharing/tcp_socket.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {

// For tests of streams: what their owner was told, and an end of a connection that says what it is
// told to.

constexpr std::chrono::seconds kStreamPatience{60};

inline std::vector<std::byte> BytesOf(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
inline std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline PeerStreamOptions OptionsOfNode(std::uint64_t node, std::string token = "") {
  PeerStreamOptions options;
  options.own.node.low = node;
  options.own.epoch = node * 10;
  options.silence_max = std::chrono::seconds(60);  // A RawEnd does not say that it lives.
  options.token = std::move(token);
  return options;
}

// Remembers everything; any thread may look and wait.
class RecordingOwner : public PeerStreamOwner {
 public:
  void Opened(std::shared_ptr<PeerStream> stream) override {
    Note([&] { streams_.push_back(std::move(stream)); });
  }
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override {
    for (const auto frame : frames) OnFrame(stream, frame);
    Note([&] {
      for (const auto frame : frames) frames_.push_back(TextOf(frame));
    });
  }
  void HasRoom(PeerStream&) override {
    Note([&] { ++rooms_; });
  }
  void Ended(PeerStream&, const Error& why) override {
    Note([&] { ended_.push_back(why); });
  }
  void Failed(const std::string&, const Error& why) override {
    Note([&] { failed_.push_back(why); });
  }

  // The `index`th of each; null or nothing if it does not come.
  std::shared_ptr<PeerStream> WaitStream(std::size_t index = 0) {
    return Wait([&] { return streams_.size() > index; }) ? streams_[index] : nullptr;
  }
  std::vector<std::string> WaitFrames(std::size_t count) {
    Wait([&] { return frames_.size() >= count; });
    const std::lock_guard lock(mutex_);
    return frames_;
  }
  std::optional<Error> WaitEnded(std::size_t index = 0) {
    return Wait([&] { return ended_.size() > index; }) ? std::optional(ended_[index])
                                                       : std::nullopt;
  }
  std::optional<Error> WaitFailed(std::size_t index = 0) {
    return Wait([&] { return failed_.size() > index; }) ? std::optional(failed_[index])
                                                        : std::nullopt;
  }
  bool WaitRoom() {
    return Wait([&] { return rooms_ > 0; });
  }
  std::size_t opened() {
    const std::lock_guard lock(mutex_);
    return streams_.size();
  }

 protected:
  virtual void OnFrame(PeerStream&, std::span<const std::byte>) {}

 private:
  template <typename Change>
  void Note(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  template <typename Condition>
  bool Wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kStreamPatience, condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<PeerStream>> streams_;
  std::vector<std::string> frames_;
  std::vector<Error> ended_;
  std::vector<Error> failed_;
  int rooms_ = 0;
};

// Sends back what comes.
class EchoingOwner final : public RecordingOwner {
 protected:
  void OnFrame(PeerStream& stream, std::span<const std::byte> frame) override {
    stream.TrySend(frame);
  }
};

// A socket with nothing behind it.
class RawEnd {
 public:
  explicit RawEnd(const std::string& address)
      : RawEnd(ConnectTcpSocket(address, Deadline::After(kStreamPatience))) {}
  explicit RawEnd(FileDescriptor socket) : socket_(std::move(socket)) {}

  // As much as the other end takes until it leaves.
  void Say(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
      } else if ((errno != EAGAIN && errno != EINTR) || !Poll(POLLOUT)) {
        return;
      }
    }
  }
  // So many bytes, or fewer if the other end leaves.
  std::vector<std::byte> Hear(std::size_t count) {
    std::vector<std::byte> heard(count);
    std::size_t here = 0;
    while (here < count && Poll(POLLIN)) {
      const ssize_t came = recv(socket_.get(), &heard[here], count - here, 0);
      if (came <= 0) break;
      here += static_cast<std::size_t>(came);
    }
    heard.resize(here);
    return heard;
  }
  // Throws as Handshake does.
  void Greet(Handshake& handshake) {
    for (;;) {
      Say(handshake.TakeOutgoing());
      if (handshake.wanted() == 0) return;
      const std::vector<std::byte> heard = Hear(handshake.wanted());
      if (heard.size() < handshake.wanted()) throw Unavailable("the other end left");
      handshake.Take(heard);
    }
  }
  void Close() { socket_.Close(); }
  const FileDescriptor& socket() const { return socket_; }

 private:
  bool Poll(short events) {
    pollfd entry{.fd = socket_.get(), .events = events, .revents = 0};
    return poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(kStreamPatience).count())) >
           0;
  }

  FileDescriptor socket_;
};

// Of a connector that is as it should be.
inline Handshake ConnectorGreeting(std::uint64_t node, std::string token = "",
                                   std::uint32_t version = Handshake::kVersion) {
  return Handshake({.side = Handshake::Side::kConnector,
                    .own = OptionsOfNode(node).own,
                    .token = std::move(token),
                    .version = version},
                   DrawNonce());
}

}  // namespace menger
