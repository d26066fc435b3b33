#pragma once

#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "menger/runtime/net/peer_stream_options.h"

// asio's contexts of TLS take a second to compile; only transport.cc knows them.
namespace asio::ssl {
class context;
}

namespace menger {

// A connected socket that the thread of an asio::io_context serves, as it is or with TLS. At most
// one Read and one Write at a time; what they are given stays until they are done, which is never
// said before they return. All by that thread, but for WriteNow.
class Transport {
 public:
  using Done = std::function<void(std::error_code error, std::size_t bytes)>;

  virtual ~Transport() = default;

  // First of all; `done` may not be called where the peer says nothing, until Close.
  virtual void Open(Done done) = 0;
  // What only the two ends of this connection know; nothing without TLS.
  virtual std::vector<std::byte> Binding() = 0;
  // Some bytes, at least 1, or an error.
  virtual void Read(std::span<std::byte> room, Done done) = 0;
  // All of the pieces, with as few system calls as it takes.
  virtual void Write(const std::vector<std::span<const std::byte>>& pieces, Done done) = 0;
  // Of the pieces what the system takes at once: so many bytes. On any thread, where nothing else
  // is written and until Close is called; 0 where only its own thread may write.
  virtual std::size_t WriteNow(const std::vector<std::span<const std::byte>>& /*pieces*/) {
    return 0;
  }
  // Why the two ends cannot come together, if it is that which an error of Open or Read says: as
  // long as their files are what they are. Names whose are at fault. "": it is something else.
  virtual std::string Refusal(std::error_code /*error*/) { return ""; }
  // The other end reads what was written, and then the end.
  virtual void EndWriting() = 0;
  // What is under way ends with an error.
  virtual void Close() = 0;

 protected:
  Transport() = default;
  Transport(const Transport&) = default;
  Transport& operator=(const Transport&) = default;
};

// The certificate and key of a node, loaded and checked once.
class TlsContext {
 public:
  // Throws InvalidArgument that names the file that cannot be used.
  explicit TlsContext(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  asio::ssl::context& get() { return *context_; }

 private:
  std::unique_ptr<asio::ssl::context> context_;
};

// `tls`: null for none; it may go before the transport does.
std::unique_ptr<Transport> MakeTransport(asio::ip::tcp::socket socket, TlsContext* tls,
                                         Handshake::Side side);

}  // namespace menger
