#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "menger/base/clock.h"
#include "menger/base/epoch_counter.h"
#include "menger/base/files.h"
#include "menger/base/sharing/message_channel.h"
#include "menger/base/sharing/ring.h"
#include "menger/base/sharing/segment.h"

namespace menger {

// A MessageChannel between two threads or processes of a host: a ring for each direction and
// something to sleep on, in one segment that both map. The end that makes it sends the descriptor
// to the other.
//
// What the other end writes over words to sleep on delays a wait until its deadline, no more. That
// it has gone is not seen here: deadlines that heed a flag (Deadline::OrWhen), or short ones, are
// the caller's.
class RingChannel final : public MessageChannel {
 public:
  // An entry has at most a quarter of `capacity` (a power of two, 1 KiB or more) bytes. Memory is
  // taken as it is used.
  explicit RingChannel(std::size_t capacity);
  // The other end. Throws InvalidArgument for what is not a channel of a size that there is.
  explicit RingChannel(FileDescriptor descriptor);

  int descriptor() const { return segment_.descriptor(); }
  std::size_t entry_bytes_max() const override { return out_->max_bytes(); }

  // Throws as RingWriter.
  std::span<std::byte> Reserve(std::size_t bytes, const Deadline& deadline) override;
  bool Send() override;  // The room is what Reserve has found: always true.
  bool Drain(const Deadline& /*deadline*/) override { return Send(); }
  // The other end sees it when it is woken for something else, or looks at its deadline.
  void Post() override { out_->Publish(); }

  // Throws as RingReader.
  std::span<const std::byte> Receive(const Deadline& deadline) override;
  // At once where the other end waits for room, or now and then.
  void Release() override;

  void Interrupt() override { words_[own_].Advance(); }

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
