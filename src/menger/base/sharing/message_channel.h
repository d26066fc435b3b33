#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "menger/base/clock.h"
#include "menger/base/error.h"

namespace menger {

// The other end has gone, and all that it had sent was received.
class ChannelClosed : public Error {
 public:
  explicit ChannelClosed(const std::string& why) : Error(ErrorCode::kUnavailable, why) {}
};

// Messages both ways between two ends, wherever the other one is: over memory that both map
// (RingChannel), or a connected socket (StreamChannel).
//
//     std::span<std::byte> room = channel.Reserve(bytes, deadline);   // One end:
//     ... fill it; more of them ...
//     channel.Send();
//
//     const std::span<const std::byte> message = channel.Receive(deadline);   // The other:
//     ... read it in place ...
//     channel.Release();
//
// What is under way is bounded both ways: an end that does not read makes the other one wait, in
// its own deadlines. Neither end trusts the other: what it cannot have said is DataLoss. One thread
// an end.
class MessageChannel {
 public:
  MessageChannel() = default;
  MessageChannel(const MessageChannel&) = delete;
  MessageChannel& operator=(const MessageChannel&) = delete;
  virtual ~MessageChannel() = default;

  // Reserve throws InvalidArgument for more.
  virtual std::size_t entry_bytes_max() const = 0;

  // Room for a message, to be filled before the next call. Where there is none, sends what there is
  // and waits; an empty span (null) at the deadline. What is reserved is sent at the latest when an
  // eighth of what may be under way is.
  virtual std::span<std::byte> Reserve(std::size_t bytes, const Deadline& deadline) = 0;

  // All that was reserved, as far as the other end has room, and wakes it; false where there is
  // not room for all: what is left goes with the next call of Drain, Reserve, Send or Receive.
  virtual bool Send() = 0;
  // Sends all; false at the deadline.
  virtual bool Drain(const Deadline& deadline) = 0;
  // For what the other end need not hear of at once: it may let it sleep.
  virtual void Post() = 0;

  // The next message, in place until Release; null bytes at the deadline.
  virtual std::span<const std::byte> Receive(const Deadline& deadline) = 0;
  // Gives back what Receive has given, so that the other end has room.
  virtual void Release() = 0;

  // This end says nothing more: what a channel has no word for is told otherwise.
  virtual void End() {}

  // Wakes this end's own wait, from any thread, so that it looks at its deadline.
  virtual void Interrupt() = 0;
};

}  // namespace menger
