#include "menger/base/sharing/tcp_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kWaitingMax = 1024;  // Who has connected and was not accepted.
constexpr std::chrono::milliseconds kRetry{10};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr_in& v4() { return reinterpret_cast<sockaddr_in&>(storage); }
  sockaddr_in6& v6() { return reinterpret_cast<sockaddr_in6&>(storage); }

  bool operator==(const SocketAddress& other) const {
    return bytes == other.bytes && std::memcmp(&storage, &other.storage, bytes) == 0;
  }
};

std::optional<std::uint16_t> PortIn(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || rest != end) return std::nullopt;
  return port;
}

// Of loopback, or nothing.
std::optional<SocketAddress> LoopbackAt(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  const std::string name = host == "localhost" ? "127.0.0.1" : host;
  if (inet_pton(AF_INET, name.c_str(), &address.v4().sin_addr) == 1) {
    address.v4().sin_family = AF_INET;
    address.v4().sin_port = htons(port);
    address.bytes = sizeof(sockaddr_in);
    const bool is_loopback = ntohl(address.v4().sin_addr.s_addr) >> 24 == 127;
    return is_loopback ? std::optional(address) : std::nullopt;
  }
  if (name != "[::1]") return std::nullopt;
  address.v6().sin6_family = AF_INET6;
  address.v6().sin6_port = htons(port);
  address.v6().sin6_addr = in6addr_loopback;
  address.bytes = sizeof(sockaddr_in6);
  return address;
}

SocketAddress AddressOf(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::optional<std::uint16_t> port =
      colon == std::string::npos ? std::nullopt : PortIn(std::string_view(text).substr(colon + 1));
  if (!port) {
    throw InvalidArgument(
        "'{}' is no address of TCP; it must be as \"127.0.0.1:7000\", with a port below 65536",
        text);
  }
  const std::optional<SocketAddress> address = LoopbackAt(text.substr(0, colon), *port);
  if (!address) {
    throw InvalidArgument(
        "'{}' is not this machine's loopback: what is said over TCP is not encrypted and nobody is "
        "asked who he is, so it must be 127.0.0.1:{}, localhost:{} or [::1]:{}",
        text, *port, *port, *port);
  }
  return *address;
}

FileDescriptor NewSocket(const SocketAddress& address) {
  FileDescriptor made(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) throw FromErrno("cannot make a socket", errno);
  return made;
}

// Messages are put together by who sends them.
void SendAtOnce(const FileDescriptor& socket) {
  const int yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// 0, or why not.
int TryConnect(const FileDescriptor& socket, const SocketAddress& address,
               const Deadline& deadline) {
  if (connect(socket.get(), address.get(), address.bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd entry{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
      std::min<std::chrono::nanoseconds>(deadline.remaining(), std::chrono::seconds(1)));
  if (poll(&entry, 1, static_cast<int>(wait.count())) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error;
}

// Where nobody listens at a port that the system also gives away by itself, a socket may get that
// port and meet itself.
bool HasMetItself(const FileDescriptor& socket) {
  SocketAddress own;
  SocketAddress peer;
  return getsockname(socket.get(), own.get(), &own.bytes) == 0 &&
         getpeername(socket.get(), peer.get(), &peer.bytes) == 0 && own == peer;
}

}  // namespace

bool IsTcpAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < text.size() &&
         text.find('/') == std::string_view::npos &&
         text.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

ListeningTcpSocket::ListeningTcpSocket(const std::string& address) {
  SocketAddress wanted = AddressOf(address);
  socket_ = NewSocket(wanted);
  const int yes = 1;  // Also where connections of one that listened before are not yet forgotten.
  setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket_.get(), wanted.get(), wanted.bytes) != 0 ||
      listen(socket_.get(), kWaitingMax) != 0) {
    if (errno == EADDRINUSE) throw FailedPrecondition("another process listens at '{}'", address);
    throw FromErrno(fmt::format("cannot listen at '{}'", address), errno);
  }
  if (getsockname(socket_.get(), wanted.get(), &wanted.bytes) != 0) {
    throw FromErrno(fmt::format("cannot listen at '{}'", address), errno);
  }
  // Both families have the port at the same place.
  address_ =
      fmt::format("{}:{}", address.substr(0, address.rfind(':')), ntohs(wanted.v4().sin_port));
}

std::optional<FileDescriptor> ListeningTcpSocket::Accept() const {
  for (;;) {
    FileDescriptor come(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (come.valid()) {
      SendAtOnce(come);
      return come;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return std::nullopt;
    throw Unavailable("cannot accept a connection at '{}': {}", address_, std::strerror(errno));
  }
}

FileDescriptor ConnectTcpSocket(const std::string& address, const Deadline& deadline) {
  const SocketAddress wanted = AddressOf(address);
  for (;;) {
    FileDescriptor made = NewSocket(wanted);
    int error = TryConnect(made, wanted, deadline);
    if (error == 0 && HasMetItself(made)) error = ECONNREFUSED;
    if (error == 0) {
      SendAtOnce(made);
      return made;
    }
    const bool may_come = error == ECONNREFUSED || error == ETIMEDOUT || error == EAGAIN ||
                          error == EINTR || error == ECONNRESET || error == EADDRNOTAVAIL;
    if (!may_come) throw FromErrno(fmt::format("cannot connect to '{}'", address), error);
    if (deadline.expired()) {
      throw Unavailable("nobody listens at '{}' ({})", address, std::strerror(error));
    }
    std::this_thread::sleep_for(kRetry);
  }
}

}  // namespace menger
