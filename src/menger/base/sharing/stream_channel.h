#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/base/sharing/message_channel.h"

namespace menger {

// What stands before each message of a stream.
struct StreamHeader {
  std::uint32_t bytes = 0;  // Of the message, without this.
  std::uint32_t check = 0;

  static StreamHeader For(std::size_t bytes);
  // Throws DataLoss for what stands before no message.
  void Check() const;
};

// A MessageChannel over one connected stream socket, of which the other end has one, too, with the
// same capacity.
//
// Many messages are one system call, and what is received lies where the system has put it. Bytes
// that are no messages may follow one: they are sent from where they lie and received where they
// are wanted, in any number. All calls throw ChannelClosed.
class StreamChannel final : public MessageChannel {
 public:
  // A message has at most a quarter of `capacity` bytes. Memory is taken as it is used. The socket
  // must not block.
  StreamChannel(FileDescriptor socket, std::size_t capacity);

  const FileDescriptor& socket() const { return socket_; }
  std::size_t entry_bytes_max() const override;

  std::span<std::byte> Reserve(std::size_t bytes, const Deadline& deadline) override;
  bool Send() override;
  bool Drain(const Deadline& deadline) override;
  void Post() override { Send(); }
  // While what it has given is not released there is only room for what fits behind it.
  std::span<const std::byte> Receive(const Deadline& deadline) override;
  void Release() override { begin_ = next_; }
  void End() override;
  void Interrupt() override;

  // Sends what was reserved, then the pieces (at most kPiecesMax), which are not copied here. False
  // at the deadline: the channel is then of no use any longer.
  static constexpr std::size_t kPiecesMax = 512;
  bool SendBytes(std::span<const std::span<const std::byte>> pieces, const Deadline& deadline);

  // Fills `to` with what the other end has sent by SendBytes. False at the deadline, likewise.
  bool ReceiveBytes(std::span<std::byte> to, const Deadline& deadline);

 private:
  std::span<const std::byte> TakeMessage();
  bool Fill();
  std::size_t Read(std::span<std::byte> to);
  bool Write(iovec*& pieces, std::size_t& count);
  bool Wait(bool to_read, const Deadline& deadline);

  const FileDescriptor socket_;
  const FileDescriptor wake_;  // An eventfd.
  const std::size_t capacity_;

  // Reserved and not yet sent: [sent_, reserved_).
  const std::unique_ptr<std::byte[]> out_;
  std::size_t sent_ = 0;
  std::size_t reserved_ = 0;
  std::vector<iovec> pieces_;

  // Received: [begin_, next_) was given and is not released, [next_, end_) was not given.
  const std::unique_ptr<std::byte[]> in_;
  std::size_t begin_ = 0;
  std::size_t next_ = 0;
  std::size_t end_ = 0;
};

}  // namespace menger
