#pragma once

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "menger/runtime/net/peer_stream_options.h"

namespace menger {

// A socket that is no child process's affair.
asio::ip::tcp::socket NewTcpSocket(asio::io_context& loop, const asio::ip::tcp& protocol);
void SendAtOnce(asio::ip::tcp::socket& socket);
std::string AddressText(const asio::ip::tcp::endpoint& endpoint);

// Takes in who connects, no more than some at a time. All but making it is done by the loop's
// thread.
//
// Shared: by the service and by what waits for the next one.
class Listener final : public std::enable_shared_from_this<Listener> {
 public:
  using Come = std::function<void(asio::ip::tcp::socket socket, const std::string& address)>;

  // Listens at once; throws as PeerStreams::Listen.
  Listener(asio::io_context& loop, const NodeAddress& address, const std::string& text,
           std::size_t greetings_max);

  std::string address() const;  // With the port that it has.

  // `come` is called for each, until Close.
  void Start(Come come);
  // One of them has been greeted, or has left.
  void Greeted();
  void Close();

 private:
  void Wait();
  void AcceptAll();

  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  const std::string text_;
  const std::size_t greetings_max_;
  std::size_t greetings_ = 0;
  bool waiting_ = false;
  Come come_;
};

}  // namespace menger
