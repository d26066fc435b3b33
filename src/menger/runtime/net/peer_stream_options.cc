#include "menger/runtime/net/peer_stream_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kFrameBytesLeast = 1024;

void CheckTlsFiles(const TlsFiles& files) {
  const int given = static_cast<int>(!files.certificate.empty()) +
                    static_cast<int>(!files.key.empty()) +
                    static_cast<int>(!files.authorities.empty());
  if (given != 0 && given != 3) {
    throw InvalidArgument(
        "TLS needs three files: tls.certificate is '{}', tls.key '{}', tls.authorities '{}'; give "
        "all or none",
        files.certificate, files.key, files.authorities);
  }
}

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

// The parts of "host:port", "[number]:port"; empty where it is neither.
std::pair<std::string, std::string> Split(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = address.substr(0, colon);
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (has_brackets != (host.find(':') != std::string::npos)) return {};
  if (host.find_first_of("/ []") != std::string::npos) return {};
  return {host, address.substr(colon + 1)};
}

}  // namespace

void CheckPeerStreamOptions(const PeerStreamOptions& options) {
  if (!options.own.node.valid()) throw InvalidArgument("a node with streams must have a name");
  CheckTlsFiles(options.tls);
  for (const auto& [name, time] : {std::pair("connect_max", options.connect_max),
                                   {"greeting_max", options.greeting_max},
                                   {"heartbeat_every", options.heartbeat_every}}) {
    if (time.count() < 1) {
      throw InvalidArgument("{} of streams is {} ms; it must be at least 1", name, time.count());
    }
  }
  if (options.silence_max < 2 * options.heartbeat_every) {
    throw InvalidArgument(
        "silence_max of streams is {} ms; it must be at least twice heartbeat_every, which is {}",
        options.silence_max.count(), options.heartbeat_every.count());
  }
  if (options.frame_bytes_max < kFrameBytesLeast || options.frame_bytes_max > UINT32_MAX) {
    throw InvalidArgument("frame_bytes_max of streams is {}; it must be from {} to {}",
                          options.frame_bytes_max, kFrameBytesLeast, UINT32_MAX);
  }
  if (options.queue_bytes_max < kFrameBytesLeast) {
    throw InvalidArgument("queue_bytes_max of streams is {}; it must be at least {}",
                          options.queue_bytes_max, kFrameBytesLeast);
  }
  if (options.greetings_max < 1) {
    throw InvalidArgument("greetings_max of streams is 0; it must be at least 1");
  }
}

NodeAddress ParseHostAndPort(const std::string& address) {
  auto [host, port_text] = Split(address);
  std::uint16_t port = 0;
  const char* const end = port_text.data() + port_text.size();
  const auto [rest, error] = std::from_chars(port_text.data(), end, port);
  if (host.empty() || port_text.empty() || error != std::errc() || rest != end) {
    throw InvalidArgument(
        "'{}' is no address of a node; it must be as \"10.0.0.7:7000\", \"node7:7000\" or "
        "\"[fe80::1]:7000\", with a port below 65536",
        address);
  }
  if (host == "localhost") host = "127.0.0.1";  // Whatever the machine's list of names says.
  const bool loopback = IsLoopback(host);
  return {std::move(host), port, loopback};
}

NodeAddress ParseNodeAddress(const std::string& address, const PeerStreamOptions& options) {
  NodeAddress parsed = ParseHostAndPort(address);
  if (!parsed.loopback && (options.token.empty() || !options.tls.given())) {
    throw InvalidArgument(
        "'{}' is not this machine's loopback, so streams there need a cluster token, which is {}, "
        "and TLS, of which the files are {}",
        address, options.token.empty() ? "missing" : "given",
        options.tls.given() ? "given" : "missing");
  }
  return parsed;
}

}  // namespace menger
