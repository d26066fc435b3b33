#include "menger/runtime/net/connector.h"

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <utility>

#include "menger/runtime/net/listener.h"

namespace menger {
namespace {

// Where nobody listens at a port that the system also gives away by itself, a socket may get that
// port and meet itself.
bool HasMetItself(const asio::ip::tcp::socket& socket) {
  std::error_code error;
  return socket.local_endpoint(error) == socket.remote_endpoint(error) && !error;
}

}  // namespace

Connector::Connector(asio::io_context& loop, NodeAddress address, std::string text, Done done)
    : loop_(loop),
      address_(std::move(address)),
      text_(std::move(text)),
      done_(std::move(done)),
      resolver_(loop),
      timer_(loop),
      socket_(loop) {}

void Connector::Start(std::chrono::milliseconds connect_max) {
  timer_.expires_after(connect_max);
  timer_.async_wait([self = shared_from_this(), connect_max](std::error_code error) {
    if (error) return;
    self->Finish(
        DeadlineExceeded("no connection to '{}' within {} ms", self->text_, connect_max.count()));
  });
  std::error_code is_a_name;
  const asio::ip::address number = asio::ip::make_address(address_.host, is_a_name);
  if (is_a_name) return Resolve();
  endpoints_.emplace_back(number, address_.port);
  TryNext();
}

void Connector::Resolve() {
  const auto take = [self = shared_from_this()](std::error_code error, const auto& found) {
    if (error) self->last_error_ = error.message();
    for (const auto& entry : found) self->endpoints_.push_back(entry.endpoint());
    self->TryNext();
  };
  resolver_.async_resolve(address_.host, std::to_string(address_.port),
                          asio::ip::tcp::resolver::numeric_service, take);
}

void Connector::TryNext() {
  if (!done_) return;
  if (next_ == endpoints_.size()) {
    return Finish(nobody_listens_ ? NotFound("nobody listens at '{}'", text_)
                                  : Unavailable("no way to '{}': {}", text_, last_error_));
  }
  const asio::ip::tcp::endpoint& endpoint = endpoints_[next_++];
  try {
    socket_ = NewTcpSocket(loop_, endpoint.protocol());
  } catch (const Error& why) {
    return Finish(why);
  }
  socket_.async_connect(
      endpoint, [self = shared_from_this()](std::error_code error) { self->TakeConnected(error); });
}

void Connector::TakeConnected(std::error_code error) {
  if (!done_) return;
  if (!error && HasMetItself(socket_)) error = asio::error::connection_refused;
  if (!error) return Finish(std::nullopt);
  nobody_listens_ = error == asio::error::connection_refused;
  last_error_ = error.message();
  TryNext();
}

void Connector::Finish(std::optional<Error> why) {
  if (!done_) return;
  const Done done = std::exchange(done_, nullptr);
  if (why) {
    Close();
    done(std::nullopt, &*why);
  } else {
    Stop();
    SendAtOnce(socket_);
    done(std::move(socket_), nullptr);
  }
}

void Connector::Close() {
  Stop();
  std::error_code ignored;
  socket_.close(ignored);
}

void Connector::Stop() {
  done_ = nullptr;
  timer_.cancel();
  resolver_.cancel();
}

}  // namespace menger
