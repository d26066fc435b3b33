#include "menger/runtime/net/listener.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kPause{100};  // Where the system has no descriptor left.

FileDescriptor NewSocket(const asio::ip::tcp& protocol) {
  FileDescriptor made(
      socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol.protocol()));
  if (!made.valid()) throw FromErrno("cannot make a socket", errno);
  return made;
}

// A host's name or number, for listening.
asio::ip::tcp::endpoint EndpointOf(asio::io_context& loop, const NodeAddress& address,
                                   const std::string& text) {
  std::error_code error;
  asio::ip::tcp::resolver resolver(loop);
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      asio::ip::tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    throw Unavailable("cannot listen at '{}': {}", text, error.message());
  }
  return found.begin()->endpoint();
}

}  // namespace

asio::ip::tcp::socket NewTcpSocket(asio::io_context& loop, const asio::ip::tcp& protocol) {
  FileDescriptor made = NewSocket(protocol);
  asio::ip::tcp::socket socket(loop);
  socket.assign(protocol, made.get());
  made.Release();
  return socket;
}

// Frames are put together by who sends them.
void SendAtOnce(asio::ip::tcp::socket& socket) {
  std::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
}

std::string AddressText(const asio::ip::tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return fmt::format("{}:{}", endpoint.address().is_v6() ? "[" + host + "]" : host,
                     endpoint.port());
}

Listener::Listener(asio::io_context& loop, const NodeAddress& address, const std::string& text,
                   std::size_t greetings_max)
    : acceptor_(loop), pause_(loop), text_(text), greetings_max_(greetings_max) {
  const asio::ip::tcp::endpoint endpoint = EndpointOf(loop, address, text);
  FileDescriptor made = NewSocket(endpoint.protocol());
  const int yes = 1;  // Also where connections of one that listened before are not yet forgotten.
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(made.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
      listen(made.get(), static_cast<int>(greetings_max)) != 0) {
    if (errno == EADDRINUSE) throw FailedPrecondition("another process listens at '{}'", text);
    throw Unavailable("cannot listen at '{}': {}", text, FromErrno("bind", errno).what());
  }
  acceptor_.assign(endpoint.protocol(), made.get());
  made.Release();
}

std::string Listener::address() const { return AddressText(acceptor_.local_endpoint()); }

void Listener::Start(Come come) {
  come_ = std::move(come);
  Wait();
}

void Listener::Wait() {
  if (waiting_ || !acceptor_.is_open() || greetings_ >= greetings_max_) return;
  waiting_ = true;
  acceptor_.async_wait(asio::ip::tcp::acceptor::wait_read,
                       [self = shared_from_this()](std::error_code error) {
                         self->waiting_ = false;
                         if (!error) self->AcceptAll();
                       });
}

void Listener::AcceptAll() {
  while (acceptor_.is_open() && greetings_ < greetings_max_) {
    FileDescriptor come(
        accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!come.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) break;
      Log(LogLevel::kWarning, "cannot accept a connection at '{}': {}", text_,
          FromErrno("accept", errno).what());
      waiting_ = true;
      pause_.expires_after(kPause);
      pause_.async_wait([self = shared_from_this()](std::error_code) {
        self->waiting_ = false;
        self->Wait();
      });
      return;
    }
    asio::ip::tcp::socket socket(acceptor_.get_executor());
    std::error_code error;
    socket.assign(acceptor_.local_endpoint().protocol(), come.get(), error);
    if (error) continue;
    come.Release();
    SendAtOnce(socket);
    const asio::ip::tcp::endpoint from = socket.remote_endpoint(error);
    ++greetings_;
    come_(std::move(socket), error ? "an unknown address" : AddressText(from));
  }
  Wait();
}

void Listener::Greeted() {
  --greetings_;
  Wait();
}

void Listener::Close() {
  std::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

}  // namespace menger
