#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/net/peer_codec.h"
#include "menger/runtime/net/peer_stream_testing.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {

// One node's end of the way to another: a link over whichever stream there is.
class LinkedNode final : public PeerStreamOwner {
 public:
  LinkedNode(std::uint64_t own, std::uint64_t peer)
      : link_(own * 10, peer * 10, /*resend_after=*/20'000'000), service_(OptionsOfNode(own)) {}

  PeerStreams& service() { return service_; }

  void Send(PeerMessage message) {
    const std::lock_guard lock(mutex_);
    link_.Send(std::move(message));
  }
  // What a node's caretaker would do now and then.
  void SendOutgoing() {
    const std::lock_guard lock(mutex_);
    if (stream_ == nullptr) return;
    for (const auto& packet : link_.Outgoing(MonotonicNanoseconds())) {
      if (!stream_->TrySend(EncodePacket<PeerMessage>(packet))) return;  // It will be sent again.
    }
  }
  void CutStream() {
    const std::lock_guard lock(mutex_);
    if (stream_ != nullptr) stream_->Close();
  }
  std::vector<PeerMessage> letters() {
    const std::lock_guard lock(mutex_);
    return letters_;
  }
  std::vector<PeerMessage> TakeLetters() {
    const std::lock_guard lock(mutex_);
    return std::exchange(letters_, {});
  }
  bool WaitStream(bool there) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kStreamPatience, [&] { return (stream_ != nullptr) == there; });
  }

 private:
  void Opened(std::shared_ptr<PeerStream> stream) override {
    const std::lock_guard lock(mutex_);
    stream_ = std::move(stream);
    changed_.notify_all();
  }
  void Arrived(PeerStream&, std::span<const std::span<const std::byte>> frames) override {
    const std::lock_guard lock(mutex_);
    for (const auto frame : frames) {
      link_.Arrived(DecodePacket<PeerMessage>(frame), letters_);
    }
  }
  void Ended(PeerStream& stream, const Error&) override {
    const std::lock_guard lock(mutex_);
    if (stream_.get() == &stream) stream_ = nullptr;
    changed_.notify_all();
  }
  void Failed(const std::string&, const Error&) override {}

  std::mutex mutex_;
  std::condition_variable changed_;
  PeerLink<PeerMessage> link_;
  std::shared_ptr<PeerStream> stream_;
  std::vector<PeerMessage> letters_;
  PeerStreams service_;  // Ends before what its thread uses.
};

// Breaks the stream between two nodes, and has the second open another to the first.
inline void OpenAnew(LinkedNode& cutter, LinkedNode& first, LinkedNode& second,
                     const std::string& address) {
  cutter.CutStream();
  ASSERT_TRUE(first.WaitStream(false) && second.WaitStream(false));
  second.service().Connect(address, PeerLane::kControl, second);
  ASSERT_TRUE(first.WaitStream(true) && second.WaitStream(true));
}

}  // namespace menger
