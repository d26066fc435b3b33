#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace menger {

// One end of the way between two lives of two nodes: what one end sends arrives at the other in
// order and once, although packets may be lost, doubled, delayed and overtaken, and streams may
// break and be opened again. Packets of other lives are ignored.
//
// Letters and their bytes are sent ahead within a window; so two nodes have a link for what they
// tell each other and one for values, and the former never waits for the latter.
//
// No I/O, no clock: it says what is to be sent, and is told what has arrived. A Letter can be
// copied: it is kept until the other end has it. One thread at a time.
template <typename Letter>
class PeerLink {
 public:
  static constexpr std::size_t kWindow = 1024;  // Letters under way.
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{4} << 20;

  struct Packet {
    std::uint64_t from = 0;     // Epochs.
    std::uint64_t to = 0;       //
    std::uint64_t number = 0;   // Of the letter, from 1; 0: there is none.
    std::uint64_t arrived = 0;  // The sender has all letters up to that number.
    std::uint64_t bytes = 0;    // Of the letter, as Send was told.
    Letter letter = {};
  };

  // `resend_after`: nanoseconds. `window_bytes`: so many are under way, or one letter. What has
  // arrived is acknowledged with the next letter, `acknowledge_after` nanoseconds later, or when a
  // quarter of the window has come, whatever is first.
  PeerLink(std::uint64_t own_epoch, std::uint64_t peer_epoch, std::int64_t resend_after,
           std::uint64_t window_bytes = kWindowBytes, std::int64_t acknowledge_after = 0)
      : own_epoch_(own_epoch),
        peer_epoch_(peer_epoch),
        resend_after_(resend_after),
        window_bytes_(window_bytes),
        acknowledge_after_(acknowledge_after) {}

  // As many as the caller likes: what he sends is bounded by the calls that are under way.
  void Send(Letter letter, std::uint64_t bytes = 0) {
    letters_.push_back({std::move(letter), bytes});
  }

  // Whether the other end is known to have all that was sent.
  bool all_arrived() const { return letters_.empty(); }

  // Of the letter that comes next, if none is lost.
  std::uint64_t next() const { return arrived_ + 1; }

  // What was sent may be lost: all of it goes out next.
  void SendAgain() {
    again_ = owes_ = true;
    owed_letters_ = kWindow;
  }

  // What is to go out now: letters that are new, or that were sent long ago and have not been
  // acknowledged, and what has arrived.
  std::vector<Packet> Outgoing(std::int64_t now) {
    std::vector<Packet> packets;
    const std::size_t count = std::max(sent_, InWindow());
    if (std::exchange(news_, false) || sent_ == 0) sent_at_ = now;
    const bool again = std::exchange(again_, false) || now - sent_at_ >= resend_after_;
    if (again) sent_at_ = now;
    for (std::size_t i = again ? 0 : sent_; i < count; ++i) {
      packets.push_back(
          {own_epoch_, peer_epoch_, first_ + i, arrived_, letters_[i].bytes, letters_[i].letter});
    }
    if (packets.empty() && Owes(now)) packets.push_back({own_epoch_, peer_epoch_, 0, arrived_});
    sent_ = count;
    if (!packets.empty()) ForgetDebt();
    return packets;
  }

  // A packet has come: appends the letters that are next.
  void Arrived(Packet packet, std::vector<Letter>& letters) {
    if (packet.from != peer_epoch_ || packet.to != own_epoch_) return;
    while (!letters_.empty() && first_ <= packet.arrived) {
      letters_.pop_front();
      ++first_;
      if (sent_ > 0) --sent_;
      news_ = true;
    }
    if (packet.number == 0) return;
    owes_ = true;
    ++owed_letters_;
    owed_bytes_ += packet.bytes;
    if (packet.number <= arrived_ || packet.number > arrived_ + kWindow) return;
    // It will be sent again.
    if (packet.number > arrived_ + 1 && early_bytes_ + packet.bytes > window_bytes_) return;
    if (early_.try_emplace(packet.number, Sent{std::move(packet.letter), packet.bytes}).second) {
      early_bytes_ += packet.bytes;
    }
    while (!early_.empty() && early_.begin()->first == arrived_ + 1) {
      letters.push_back(std::move(early_.begin()->second.letter));
      early_bytes_ -= early_.begin()->second.bytes;
      early_.erase(early_.begin());
      ++arrived_;
    }
  }

 private:
  bool Owes(std::int64_t now) {
    if (!owes_) return false;
    if (owed_letters_ >= kWindow / 4 || owed_bytes_ >= window_bytes_ / 4) return true;
    if (owed_since_ == 0) owed_since_ = now;
    return now - owed_since_ >= acknowledge_after_;
  }
  void ForgetDebt() {
    owes_ = false;
    owed_letters_ = 0;
    owed_bytes_ = 0;
    owed_since_ = 0;
  }

  struct Sent {
    Letter letter;
    std::uint64_t bytes = 0;
  };

  // So many of the first letters may be under way.
  std::size_t InWindow() const {
    std::uint64_t bytes = 0;
    std::size_t count = 0;
    while (count < std::min(letters_.size(), kWindow)) {
      bytes += letters_[count].bytes;
      if (count > 0 && bytes > window_bytes_) break;
      ++count;
    }
    return count;
  }

  const std::uint64_t own_epoch_;
  const std::uint64_t peer_epoch_;
  const std::int64_t resend_after_;
  const std::uint64_t window_bytes_;
  const std::int64_t acknowledge_after_;
  std::deque<Sent> letters_;  // Not acknowledged, in order; the first `sent_` were sent.
  std::uint64_t first_ = 1;   // Number of the first of them.
  std::size_t sent_ = 0;
  std::int64_t sent_at_ = 0;             // The first of them, or it became the first.
  bool news_ = false;                    // Some were acknowledged since they were sent last.
  std::uint64_t arrived_ = 0;            // All up to that number.
  std::map<std::uint64_t, Sent> early_;  // Overtook one that is missing.
  std::uint64_t early_bytes_ = 0;
  bool owes_ = false;             // Something has come that was not acknowledged:
  std::size_t owed_letters_ = 0;  // so many packets,
  std::uint64_t owed_bytes_ = 0;  // with so many bytes,
  std::int64_t owed_since_ = 0;   // since it was looked at first; 0: it was not.
  bool again_ = false;            // SendAgain.
};

}  // namespace menger
