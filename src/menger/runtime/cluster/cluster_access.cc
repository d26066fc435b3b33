#include "menger/runtime/cluster/cluster_access.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {
namespace {

std::string Or(const std::string& given, const char* variable) {
  if (!given.empty()) return given;
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

constexpr char kTokenFile[] = "MENGER_CLUSTER_TOKEN_FILE";

std::string ReadTokenFile(const std::string& file) try {
  return ReadFile(file);
} catch (const Error& error) {
  throw InvalidArgument("{}: {}", kTokenFile, error.what());
}

std::string ReadToken(const std::string& file) {
  std::string text = ReadTokenFile(file);
  text.resize(std::min(text.size(), text.find_first_of("\r\n")));
  if (text.empty()) {
    throw InvalidArgument("{}: '{}' has no cluster token in its first line", kTokenFile, file);
  }
  return text;
}

}  // namespace

ClusterAccess AccessOf(const RuntimeOptions& options) {
  ClusterAccess access{
      .address = Or(options.address, "MENGER_ADDRESS"),
      .token = Or(options.cluster_token, "MENGER_CLUSTER_TOKEN"),
      .tls = {.certificate = Or(options.tls_certificate, "MENGER_TLS_CERTIFICATE"),
              .key = Or(options.tls_key, "MENGER_TLS_KEY"),
              .authorities = Or(options.tls_authorities, "MENGER_TLS_AUTHORITIES")}};
  if (access.address == "local") access.address.clear();
  if (access.token.empty()) {
    const std::string file = Or("", kTokenFile);
    if (!file.empty()) access.token = ReadToken(file);
  }
  return access;
}

std::string OwnAddressTowards(const std::string& address, const PeerStreamOptions& options) {
  const NodeAddress parsed = ParseNodeAddress(address, options);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;  // Connecting it sends nothing.
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(parsed.host.c_str(), std::to_string(parsed.port).c_str(), &hints, &found);
  if (error != 0) throw Unavailable("'{}' is not known: {}", address, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, &freeaddrinfo);
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const FileDescriptor probe(socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    std::array<char, NI_MAXHOST> host{};
    if (!probe.valid() || connect(probe.get(), to->ai_addr, to->ai_addrlen) != 0 ||
        getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    return fmt::format("{}:0", to->ai_family == AF_INET6 ? fmt::format("[{}]", host.data())
                                                         : std::string(host.data()));
  }
  throw Unavailable("there is no way from this machine to '{}'", address);
}

}  // namespace menger
