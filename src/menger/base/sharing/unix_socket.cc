#include "menger/base/sharing/unix_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kWaitingMax = 1024;  // Who has connected and was not accepted.
constexpr std::chrono::milliseconds kRetry{10};

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    throw InvalidArgument("'{}' cannot be the path of a socket: it must have 1 to {} bytes", path,
                          sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

FileDescriptor NewSocket() {
  FileDescriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) throw FromErrno("cannot make a socket", errno);
  return made;
}

// Held while somebody listens at the path, so that what lies there without is known to be left
// over.
FileDescriptor LockFor(const std::string& path) {
  const std::string name = path + ".lock";
  FileDescriptor lock(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) throw FromErrno(fmt::format("cannot make '{}'", name), errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    throw FailedPrecondition("another process listens at '{}'", path);
  }
  return lock;
}

void RemoveLeftOver(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode)) {
    throw FailedPrecondition("'{}' is there and is no socket; choose another path", path);
  }
  unlink(path.c_str());
}

}  // namespace

ListeningSocket::ListeningSocket(std::string path) : path_(std::move(path)) {
  const sockaddr_un address = AddressOf(path_);
  lock_ = LockFor(path_);
  RemoveLeftOver(path_);
  socket_ = NewSocket();
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path_.c_str(), 0600) != 0 || listen(socket_.get(), kWaitingMax) != 0) {
    throw FromErrno(fmt::format("cannot listen at '{}'", path_), errno);
  }
}

// The lock's file stays: whoever removed it could remove another's.
ListeningSocket::~ListeningSocket() { unlink(path_.c_str()); }

std::optional<FileDescriptor> ListeningSocket::Accept() const {
  for (;;) {
    FileDescriptor come(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (come.valid()) return come;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return std::nullopt;
    throw Unavailable("cannot accept a connection at '{}': {}", path_, std::strerror(errno));
  }
}

FileDescriptor ConnectUnixSocket(const std::string& path, const Deadline& deadline) {
  const sockaddr_un address = AddressOf(path);
  FileDescriptor made = NewSocket();
  for (;;) {
    if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return made;
    }
    const int error = errno;
    const bool may_come =
        error == ENOENT || error == ECONNREFUSED || error == EAGAIN || error == EINTR;
    if (!may_come) throw FromErrno(fmt::format("cannot connect to '{}'", path), error);
    if (deadline.expired()) {
      throw Unavailable("nobody listens at '{}' ({})", path, std::strerror(error));
    }
    std::this_thread::sleep_for(kRetry);
  }
}

std::string PathOfAddress(const std::string& address) {
  constexpr std::string_view kScheme = "unix:";
  return address.starts_with(kScheme) ? address.substr(kScheme.size()) : address;
}

std::string NameOfPeer(const FileDescriptor& socket) {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return "unknown";
  return fmt::format("process {}", who.pid);
}

bool HasHungUp(const FileDescriptor& socket) {
  pollfd entry{.fd = socket.get(), .events = POLLIN | POLLRDHUP, .revents = 0};
  return poll(&entry, 1, 0) > 0;
}

// Not shutdown: two sockets that each have shut down what they say look like closed ones.
void SayTheEnd(const FileDescriptor& socket) {
  const char byte = 0;
  // Where it cannot be said, the other end has gone.
  while (send(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

}  // namespace menger
