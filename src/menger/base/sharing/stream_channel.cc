#include "menger/base/sharing/stream_channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint32_t kMark = 0x6d656e67;

bool IsForLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

[[noreturn]] void ThrowGone(int error) {
  throw ChannelClosed(
      fmt::format("the other end of the connection has gone ({})", std::strerror(error)));
}

timespec TimeOf(std::chrono::nanoseconds time) {
  return {.tv_sec = static_cast<std::time_t>(time.count() / 1'000'000'000),
          .tv_nsec = static_cast<long>(time.count() % 1'000'000'000)};
}

}  // namespace

StreamHeader StreamHeader::For(std::size_t bytes) {
  const auto count = static_cast<std::uint32_t>(bytes);
  return {.bytes = count, .check = count ^ kMark};
}

void StreamHeader::Check() const {
  if ((bytes ^ check) != kMark) throw DataLoss("what came over a stream is no message");
}

StreamChannel::StreamChannel(FileDescriptor socket, std::size_t capacity)
    : socket_(std::move(socket)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      capacity_(capacity),
      out_(std::make_unique_for_overwrite<std::byte[]>(capacity)),
      in_(std::make_unique_for_overwrite<std::byte[]>(capacity)) {
  if (!wake_.valid()) throw FromErrno("cannot make an eventfd", errno);
}

std::size_t StreamChannel::entry_bytes_max() const { return capacity_ / 4; }

void StreamChannel::Interrupt() { eventfd_write(wake_.get(), 1); }

void StreamChannel::End() { shutdown(socket_.get(), SHUT_WR); }

// ---- Sending

std::span<std::byte> StreamChannel::Reserve(std::size_t bytes, const Deadline& deadline) {
  if (bytes > entry_bytes_max()) {
    throw InvalidArgument("a message of {} bytes; this channel takes at most {}", bytes,
                          entry_bytes_max());
  }
  if (reserved_ - sent_ > capacity_ / 8) Send();
  const std::size_t all = sizeof(StreamHeader) + bytes;
  if (all > capacity_ - reserved_ && !Drain(deadline)) return {};
  const StreamHeader header = StreamHeader::For(bytes);
  std::memcpy(&out_[reserved_], &header, sizeof header);
  const std::span<std::byte> room(&out_[reserved_ + sizeof header], bytes);
  reserved_ += all;
  return room;
}

// True when nothing is left; what is left begins with pieces[0].
bool StreamChannel::Write(iovec*& pieces, std::size_t& count) {
  while (count > 0) {
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (IsForLater(errno)) return false;
      ThrowGone(errno);
    }
    while (count > 0 && static_cast<std::size_t>(sent) >= pieces->iov_len) {
      sent -= static_cast<ssize_t>(pieces->iov_len);
      ++pieces;
      --count;
    }
    if (count == 0) break;
    pieces->iov_base = static_cast<std::byte*>(pieces->iov_base) + sent;
    pieces->iov_len -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool StreamChannel::Send() {
  if (sent_ < reserved_) {
    iovec rest{.iov_base = &out_[sent_], .iov_len = reserved_ - sent_};
    iovec* pieces = &rest;
    std::size_t count = 1;
    if (!Write(pieces, count)) {
      sent_ = reserved_ - rest.iov_len;
      return false;
    }
  }
  sent_ = reserved_ = 0;
  return true;
}

bool StreamChannel::Drain(const Deadline& deadline) {
  while (!Send()) {
    if (!Wait(/*to_read=*/false, deadline)) return false;
  }
  return true;
}

bool StreamChannel::SendBytes(std::span<const std::span<const std::byte>> pieces,
                              const Deadline& deadline) {
  pieces_.clear();
  if (sent_ < reserved_) {
    pieces_.push_back({.iov_base = &out_[sent_], .iov_len = reserved_ - sent_});
  }
  sent_ = reserved_ = 0;
  for (const std::span<const std::byte> piece : pieces) {
    // The system only reads it.
    pieces_.push_back({.iov_base = const_cast<std::byte*>(piece.data()), .iov_len = piece.size()});
  }
  iovec* rest = pieces_.data();
  std::size_t count = pieces_.size();
  while (!Write(rest, count)) {
    if (!Wait(/*to_read=*/false, deadline)) return false;
  }
  return true;
}

// ---- Receiving

// Null bytes where there is none, or not all of it.
std::span<const std::byte> StreamChannel::TakeMessage() {
  if (end_ - next_ < sizeof(StreamHeader)) return {};
  StreamHeader header;
  std::memcpy(&header, &in_[next_], sizeof header);
  header.Check();
  if (header.bytes > entry_bytes_max()) {
    throw DataLoss("a message of {} bytes came; this channel takes at most {}", header.bytes,
                   entry_bytes_max());
  }
  if (end_ - next_ - sizeof header < header.bytes) return {};
  const std::span<const std::byte> message(&in_[next_ + sizeof header], header.bytes);
  next_ += sizeof header + header.bytes;
  return message;
}

// So many as there are, at once: 0 if there are none.
std::size_t StreamChannel::Read(std::span<std::byte> to) {
  const ssize_t came = recv(socket_.get(), to.data(), to.size(), MSG_DONTWAIT);
  if (came > 0) return static_cast<std::size_t>(came);
  if (came == 0) throw ChannelClosed("the other end of the connection has closed it");
  if (!IsForLater(errno)) ThrowGone(errno);
  return 0;
}

// Reads what has come; false if nothing has, or there is no room.
bool StreamChannel::Fill() {
  if (begin_ == next_) {  // Nobody reads in it.
    if (begin_ == end_) {
      begin_ = next_ = end_ = 0;
    } else if (capacity_ - end_ < capacity_ / 4) {
      std::memmove(in_.get(), &in_[begin_], end_ - begin_);
      end_ -= begin_;
      begin_ = next_ = 0;
    }
  }
  if (end_ == capacity_) return false;
  const std::size_t came = Read({&in_[end_], capacity_ - end_});
  end_ += came;
  return came > 0;
}

std::span<const std::byte> StreamChannel::Receive(const Deadline& deadline) {
  for (;;) {
    const std::span<const std::byte> message = TakeMessage();
    if (message.data() != nullptr) return message;
    if (Fill()) continue;
    if (!Wait(/*to_read=*/true, deadline)) return {};
  }
}

bool StreamChannel::ReceiveBytes(std::span<std::byte> to, const Deadline& deadline) {
  const std::size_t here = std::min(to.size(), end_ - next_);
  if (here > 0) std::memcpy(to.data(), &in_[next_], here);
  next_ += here;
  Release();
  to = to.subspan(here);
  while (!to.empty()) {
    const std::size_t came = Read(to);
    to = to.subspan(came);
    if (came == 0 && !Wait(/*to_read=*/true, deadline)) return false;
  }
  return true;
}

// Until there may be something to read, room for what is to be sent, or an interruption; false at
// the deadline.
bool StreamChannel::Wait(bool to_read, const Deadline& deadline) {
  const std::chrono::nanoseconds slice = deadline.slice();
  if (slice.count() == 0) return false;
  const bool has_room = end_ < capacity_ || begin_ == next_;
  const bool to_write = !to_read || sent_ < reserved_;
  std::array polled = {pollfd{.fd = socket_.get(),
                              .events = static_cast<short>((to_read && has_room ? POLLIN : 0) |
                                                           (to_write ? POLLOUT : 0)),
                              .revents = 0},
                       pollfd{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  const timespec time = TimeOf(slice);
  ppoll(polled.data(), polled.size(), &time, nullptr);
  if (polled[1].revents != 0) {
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
  }
  if (to_read && (polled[0].revents & POLLOUT) != 0) Send();
  return true;
}

}  // namespace menger
