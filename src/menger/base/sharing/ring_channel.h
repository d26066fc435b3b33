#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "menger/base/clock.h"
#include "menger/base/epoch_counter.h"
#include "menger/base/files.h"
#include "menger/base/sharing/ring.h"
#include "menger/base/sharing/segment.h"

namespace menger {

// Messages both ways between two threads or processes: a ring for each direction and something to
// sleep on, in one segment that both map. The end that makes it sends the descriptor to the other.
//
//     std::span<std::byte> room = channel.Reserve(bytes, deadline);   // One end:
//     ... fill it; more of them ...
//     channel.Send();
//
//     const RingEntry entry = channel.Receive(deadline);              // The other:
//     ... read it in place ...
//     channel.Release();
//
// Neither end trusts the other: what it cannot have said is DataLoss, and what it writes over words
// to sleep on delays a wait until its deadline, no more. That the other end has gone is not seen
// here: deadlines that heed a flag (Deadline::OrWhen), or short ones, are the caller's. One thread
// an end.
class RingChannel {
 public:
  // An entry has at most a quarter of `capacity` (a power of two, 1 KiB or more) bytes. Memory is
  // taken as it is used.
  explicit RingChannel(std::size_t capacity);
  // The other end. Throws InvalidArgument for what is not a channel of a size that there is.
  explicit RingChannel(FileDescriptor descriptor);

  int descriptor() const { return segment_.descriptor(); }
  std::size_t entry_bytes_max() const { return out_->max_bytes(); }

  // Room for an entry, to be filled before the next Reserve or Send. Where there is none, sends
  // what there is and waits; an empty span (null) at the deadline. What is reserved is sent at the
  // latest when an eighth of the ring is full. Throws as RingWriter.
  std::span<std::byte> Reserve(std::size_t bytes, const Deadline& deadline);
  void Send();  // All that was reserved, and wakes the other end.
  // The same, but lets the other end sleep: it sees it when it is woken for something else, or
  // looks at its deadline.
  void Post() { out_->Publish(); }

  // The next entry, in place until Release; null bytes at the deadline. Throws as RingReader.
  RingEntry Receive(const Deadline& deadline);
  // Gives back what Receive has given, so that the other end has room: at once where it waits for
  // that, or now and then.
  void Release();

  // Wakes this end's own wait, from any thread, so that it looks at its deadline.
  void Interrupt() { words_[own_].Advance(); }

  // Between two messages, when nothing is to do: see RingWriter.
  void GiveMemoryBack() { out_->GiveMemoryBack(); }

 private:
  void Open();
  std::span<std::byte> RingBytesOf(int index);

  WritableSegment segment_;
  std::size_t capacity_;
  int own_;  // The word that this end sleeps on; the other end's is 1 - own_.
  EpochCounter* words_ = nullptr;
  std::optional<RingWriter> out_;
  std::optional<RingReader> in_;
  std::size_t unsent_ = 0;
  std::size_t unreleased_ = 0;
};

}  // namespace menger
