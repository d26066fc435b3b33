// What two nodes' machines tell each other, over real streams that break.

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "menger/base/clock.h"
#include "menger/runtime/net/peer_codec.h"
#include "menger/runtime/net/peer_stream_testing.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {
namespace {

constexpr std::int64_t kResendAfter = 20'000'000;

// One node's end of the way to another: a link over whichever stream there is.
class LinkedNode final : public PeerStreamOwner {
 public:
  LinkedNode(std::uint64_t own, std::uint64_t peer)
      : link_(own * 10, peer * 10, kResendAfter), service_(OptionsOfNode(own)) {}

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

PeerMessage LetterNumber(int number) {
  return {.kind = number % 2 == 0 ? PeerMessage::Kind::kWant : PeerMessage::Kind::kLend,
          .count = static_cast<std::uint32_t>(number),
          .loan = static_cast<LoanNumber>(number),
          .scheduling = "cpu=1",
          .text = std::string(static_cast<std::size_t>(number % 300), 'x')};
}

void ExpectLetters(const std::vector<PeerMessage>& letters, int count) {
  ASSERT_EQ(letters.size(), static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const PeerMessage& letter = letters[static_cast<std::size_t>(i)];
    ASSERT_EQ(letter.count, static_cast<std::uint32_t>(i));
    ASSERT_EQ(letter.kind, LetterNumber(i).kind);
    ASSERT_EQ(letter.text, LetterNumber(i).text);
  }
}

TEST(PeerStreamsLinkTest, LettersArriveInOrderAndOnceThoughStreamsBreak) {
  LinkedNode a(1, 2);
  LinkedNode b(2, 1);
  const std::string address = a.service().Listen("127.0.0.1:0", a);
  constexpr int kLetters = 3000;
  constexpr int kCuts = 6;
  const auto deadline = Deadline::After(kStreamPatience);
  b.service().Connect(address, PeerLane::kControl, b);
  ASSERT_TRUE(a.WaitStream(true) && b.WaitStream(true));
  int sent = 0;
  int cuts = 0;
  while (a.letters().size() < kLetters || b.letters().size() < kLetters) {
    ASSERT_FALSE(deadline.expired());
    for (int i = 0; i < 20 && sent < kLetters; ++i, ++sent) {
      a.Send(LetterNumber(sent));
      b.Send(LetterNumber(sent));
    }
    a.SendOutgoing();
    b.SendOutgoing();
    if (cuts < kCuts && sent >= (cuts + 1) * kLetters / (kCuts + 1)) {
      // With letters under way.
      (cuts % 2 == 0 ? a : b).CutStream();
      ASSERT_TRUE(a.WaitStream(false) && b.WaitStream(false));
      b.service().Connect(address, PeerLane::kControl, b);
      ASSERT_TRUE(a.WaitStream(true) && b.WaitStream(true));
      ++cuts;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(cuts, kCuts);
  ExpectLetters(a.letters(), kLetters);
  ExpectLetters(b.letters(), kLetters);
}

}  // namespace
}  // namespace menger
