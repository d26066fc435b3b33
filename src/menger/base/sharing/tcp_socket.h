#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "menger/base/clock.h"
#include "menger/base/files.h"

namespace menger {

// Where processes of one machine meet over TCP. What is said there is not encrypted, and nobody is
// asked who he is, so addresses are those of loopback ("127.0.0.1:7000", "localhost:7000",
// "[::1]:7000"): any user of the machine may connect, nobody else. Any other address is refused:
// InvalidArgument.

// Whether the text is meant as one: it ends in ":" and a number, and has no "/".
bool IsTcpAddress(std::string_view text);

// Listens until it goes. Port 0 is one that is free. Throws FailedPrecondition where another
// process listens there already.
class ListeningTcpSocket {
 public:
  explicit ListeningTcpSocket(const std::string& address);

  const FileDescriptor& descriptor() const { return socket_; }
  const std::string& address() const { return address_; }  // With the port that it has.

  // Who has come, if anybody has: a socket that does not block. Throws Unavailable where the system
  // has no descriptor for him.
  std::optional<FileDescriptor> Accept() const;

 private:
  FileDescriptor socket_;
  std::string address_;
};

// Tries until somebody listens, or until the deadline: throws Unavailable then, with the cause. The
// socket does not block.
FileDescriptor ConnectTcpSocket(const std::string& address, const Deadline& deadline);

}  // namespace menger
