#pragma once

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/net/peer_stream_options.h"

namespace menger {

// One attempt to connect to an address: to all that its name stands for, one after the other, until
// somebody listens or it takes too long. All by the loop's thread.
//
// Shared: by the service and by what is under way.
class Connector final : public std::enable_shared_from_this<Connector> {
 public:
  // Called once, unless Close is called before: with a socket or with why there is none.
  using Done = std::function<void(std::optional<asio::ip::tcp::socket> socket, const Error* why)>;

  Connector(asio::io_context& loop, NodeAddress address, std::string text, Done done);

  void Start(std::chrono::milliseconds connect_max);
  void Close();  // Nothing more is said, nor under way, as it would be for minutes.
  bool done() const { return !done_; }

 private:
  void Resolve();
  void TryNext();
  void TakeConnected(std::error_code error);
  void Finish(std::optional<Error> why);
  void Stop();

  asio::io_context& loop_;
  const NodeAddress address_;
  const std::string text_;
  Done done_;  // Null once it is done.
  asio::ip::tcp::resolver resolver_;
  asio::steady_timer timer_;
  asio::ip::tcp::socket socket_;
  std::vector<asio::ip::tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
  bool nobody_listens_ = false;  // As the last that was tried says.
  std::string last_error_ = "the name stands for no address";
};

}  // namespace menger
