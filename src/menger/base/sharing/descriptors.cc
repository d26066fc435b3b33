#include "menger/base/sharing/descriptors.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

struct ControlBuffer {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMessageDescriptorsMax * sizeof(int))> bytes{};
};

[[noreturn]] void ThrowGone(const char* what) {
  throw Unavailable("cannot {} descriptors: the other end of the socket has gone", what);
}

// Calls `attempt` (a system call that does not wait) until it does something else than EAGAIN.
template <typename Attempt>
ssize_t WithDeadline(const FileDescriptor& socket, const Deadline& deadline, Attempt attempt) {
  for (;;) {
    const ssize_t result = attempt();
    if (result >= 0) return result;
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) ThrowGone("receive");
    if (errno != EAGAIN) throw FromErrno("cannot receive descriptors", errno);
    if (deadline.expired()) {
      throw DeadlineExceeded("could not receive descriptors before the deadline");
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
    pollfd poll_entry{.fd = socket.get(), .events = POLLIN, .revents = 0};
    // Every outcome is handled by trying again.
    poll(&poll_entry, 1, static_cast<int>(std::min<int64_t>(wait.count(), 60'000)));
  }
}

// The socket is full, or the user has as many descriptors under way as he may have open.
bool MayPass(int error) {
  return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == ETOOMANYREFS;
}

std::vector<FileDescriptor> TakeDescriptors(msghdr& message) {
  std::vector<FileDescriptor> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
      taken.emplace_back(descriptor);
    }
  }
  return taken;
}

}  // namespace

bool TrySendDescriptors(const FileDescriptor& socket, std::span<const std::byte> bytes,
                        std::span<const int> descriptors) {
  if (bytes.empty() || descriptors.size() > kMessageDescriptorsMax) {
    throw InvalidArgument(
        "a message has at least one byte and at most {} descriptors, not {} and {}",
        kMessageDescriptorsMax, bytes.size(), descriptors.size());
  }
  ControlBuffer control;
  iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  while (sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (MayPass(errno)) return false;
    if (errno == EPIPE || errno == ECONNRESET) ThrowGone("send");
    throw FromErrno("cannot send descriptors", errno);
  }
  return true;
}

DescriptorMessage ReceiveDescriptors(const FileDescriptor& socket, std::size_t bytes_max,
                                     const Deadline& deadline) {
  DescriptorMessage result;
  result.bytes.resize(bytes_max);
  ControlBuffer control;
  iovec part{.iov_base = result.bytes.data(), .iov_len = bytes_max};
  msghdr message{};
  const ssize_t received = WithDeadline(socket, deadline, [&] {
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    return recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  });
  result.descriptors = TakeDescriptors(message);
  if (received == 0) throw Unavailable("the other end of a socket for descriptors has gone");
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    throw DataLoss("a message was longer than {} bytes or had more than {} descriptors", bytes_max,
                   kMessageDescriptorsMax);
  }
  result.bytes.resize(static_cast<std::size_t>(received));
  return result;
}

}  // namespace menger
