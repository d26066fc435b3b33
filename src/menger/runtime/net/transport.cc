#include "menger/runtime/net/transport.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "menger/base/error.h"
#include "menger/runtime/net/frame_queue.h"

namespace menger {
namespace {

constexpr std::size_t kBindingBytes = 32;
constexpr std::string_view kBindingLabel = "EXPORTER-menger-stream";

using Pieces = std::vector<asio::const_buffer>;

Pieces BuffersOf(const std::vector<std::span<const std::byte>>& pieces) {
  Pieces buffers;
  buffers.reserve(pieces.size());
  for (const std::span<const std::byte> piece : pieces) {
    buffers.emplace_back(piece.data(), piece.size());
  }
  return buffers;
}

// asio's own condition hands the system 64 KiB at a time.
struct AllAtOnce {
  std::size_t bytes = 0;
  std::size_t operator()(std::error_code error, std::size_t written) const {
    return error ? 0 : bytes - written;
  }
};

template <typename AnyStream>
void WriteTo(AnyStream& stream, const std::vector<std::span<const std::byte>>& pieces,
             Transport::Done done) {
  const Pieces buffers = BuffersOf(pieces);
  asio::async_write(stream, buffers, AllAtOnce{asio::buffer_size(buffers)}, std::move(done));
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  void Open(Done done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }
  std::vector<std::byte> Binding() override { return {}; }
  void Read(std::span<std::byte> room, Done done) override {
    socket_.async_read_some(asio::buffer(room.data(), room.size()), std::move(done));
  }
  void Write(const std::vector<std::span<const std::byte>>& pieces, Done done) override {
    WriteTo(socket_, pieces, std::move(done));
  }
  std::size_t WriteNow(const std::vector<std::span<const std::byte>>& pieces) override {
    std::vector<iovec> parts;
    parts.reserve(pieces.size());
    for (const std::span<const std::byte> piece : pieces) {
      parts.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }
  void EndWriting() override {
    std::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
  void Close() override {
    std::error_code ignored;
    socket_.close(ignored);
  }

 private:
  asio::ip::tcp::socket socket_;
};

// What OpenSSL's reasons mean, those that the other end has told among them (alerts, from 1000 on).
std::string TlsRefusal(int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the other end refuses this process's certificate (tls.certificate): it has expired";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the other end refuses this process's certificate (tls.certificate): it comes from no "
             "authority that the other end has (in its tls.authorities)";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return "the other end refuses this process's certificate (tls.certificate): by its clock it "
             "is not valid yet, or it is not a certificate for this";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "the other end has no certificate";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_HTTP_REQUEST:
      return "the other end does not use TLS, which this process was given files for";
    default:
      return "";
  }
}

class TlsTransport final : public Transport {
 public:
  TlsTransport(asio::ip::tcp::socket socket, asio::ssl::context& context, Handshake::Side side)
      : stream_(std::move(socket), context),
        role_(side == Handshake::Side::kConnector ? asio::ssl::stream_base::client
                                                  : asio::ssl::stream_base::server) {}

  void Open(Done done) override {
    stream_.async_handshake(role_,
                            [done = std::move(done)](std::error_code error) { done(error, 0); });
  }
  std::vector<std::byte> Binding() override {
    std::vector<std::byte> binding(kBindingBytes);
    if (SSL_export_keying_material(
            stream_.native_handle(), reinterpret_cast<unsigned char*>(binding.data()),
            binding.size(), kBindingLabel.data(), kBindingLabel.size(), nullptr, 0, 0) != 1) {
      throw Internal("OpenSSL gave no key material of a connection");
    }
    return binding;
  }
  void Read(std::span<std::byte> room, Done done) override {
    stream_.async_read_some(asio::buffer(room.data(), room.size()),
                            [done = std::move(done)](std::error_code error, std::size_t bytes) {
                              // Nobody says a last word: frames have lengths.
                              const bool is_end = error == asio::ssl::error::stream_truncated;
                              done(is_end ? asio::error::eof : error, bytes);
                            });
  }
  void Write(const std::vector<std::span<const std::byte>>& pieces, Done done) override {
    WriteTo(stream_, pieces, std::move(done));
  }
  std::string Refusal(std::error_code error) override {
    if (error.category() != asio::error::get_ssl_category()) return "";
    const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
    if (reason != SSL_R_CERTIFICATE_VERIFY_FAILED) return TlsRefusal(reason);
    const long found = SSL_get_verify_result(stream_.native_handle());
    return fmt::format(
        "the other end's certificate is refused: {} (tls.authorities has those "
        "whose certificates are taken)",
        X509_verify_cert_error_string(found));
  }
  void EndWriting() override {
    std::error_code ignored;
    stream_.next_layer().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
  void Close() override {
    std::error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
  const asio::ssl::stream_base::handshake_type role_;
};

void CheckLoaded(std::error_code error, const char* what, const std::string& file) {
  if (error) {
    throw InvalidArgument("'{}' cannot be used as {}: {}", file, what, error.message());
  }
}

// Or everybody else would refuse it, and say so without a name.
void CheckTimeOf(const X509& certificate, const std::string& file) {
  const int begins = X509_cmp_current_time(X509_get0_notBefore(&certificate));
  const int ends = X509_cmp_current_time(X509_get0_notAfter(&certificate));
  if (begins < 0 && ends > 0) return;
  throw InvalidArgument("'{}' cannot be used as tls.certificate: {} by this machine's clock", file,
                        begins >= 0 ? "it is not valid yet" : "it has expired");
}

}  // namespace

TlsContext::TlsContext(const TlsFiles& files)
    : context_(std::make_unique<asio::ssl::context>(asio::ssl::context::tls)) {
  SSL_CTX_set_min_proto_version(context_->native_handle(), TLS1_3_VERSION);
  // Streams are few and long: nothing is gained by going on with an old one.
  SSL_CTX_set_num_tickets(context_->native_handle(), 0);
  context_->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  std::error_code error;
  context_->use_certificate_chain_file(files.certificate, error);
  CheckLoaded(error, "tls.certificate", files.certificate);
  CheckTimeOf(*SSL_CTX_get0_certificate(context_->native_handle()), files.certificate);
  // Or OpenSSL would ask whoever sits at the terminal.
  SSL_CTX_set_default_passwd_cb(context_->native_handle(),
                                [](char*, int, int, void*) { return 0; });
  context_->use_private_key_file(files.key, asio::ssl::context::pem, error);
  CheckLoaded(error, "tls.key", files.key);
  context_->load_verify_file(files.authorities, error);
  CheckLoaded(error, "tls.authorities", files.authorities);
}

TlsContext::~TlsContext() = default;

std::unique_ptr<Transport> MakeTransport(asio::ip::tcp::socket socket, TlsContext* tls,
                                         Handshake::Side side) {
  if (tls == nullptr) return std::make_unique<PlainTransport>(std::move(socket));
  return std::make_unique<TlsTransport>(std::move(socket), tls->get(), side);
}

}  // namespace menger
