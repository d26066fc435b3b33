#pragma once

#include <optional>
#include <string>

#include "menger/base/clock.h"
#include "menger/base/files.h"

namespace menger {

// Where processes of a host meet that share memory: a Unix socket that keeps messages apart
// (SOCK_SEQPACKET), for TrySendDescriptors and ReceiveDescriptors. Nothing here waits but Connect.

// Listens at a path that nobody listens at; removes what a process has left there that ended
// without. Only this user may connect. Throws FailedPrecondition where another process listens, or
// the path is something else; InvalidArgument for a path that is too long for a socket.
class ListeningSocket {
 public:
  explicit ListeningSocket(std::string path);
  ~ListeningSocket();  // Removes the path.
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  const FileDescriptor& descriptor() const { return socket_; }
  const std::string& path() const { return path_; }

  // Who has come, if anybody has. Throws Unavailable where the system has no descriptor for him.
  std::optional<FileDescriptor> Accept() const;

 private:
  const std::string path_;
  FileDescriptor lock_;
  FileDescriptor socket_;
};

// Tries until somebody listens, or until the deadline: throws Unavailable then, with the cause.
FileDescriptor ConnectUnixSocket(const std::string& path, const Deadline& deadline);

// The path of an address, "unix:PATH" or PATH itself.
std::string PathOfAddress(const std::string& address);

// "process 123", whoever has connected; "unknown" where that cannot be known.
std::string NameOfPeer(const FileDescriptor& socket);

// Whether the other end has closed, or said something where nothing is expected but the end.
bool HasHungUp(const FileDescriptor& socket);
// For who keeps a socket open, and will say nothing more where they talk. Never waits or throws.
void SayTheEnd(const FileDescriptor& socket);

}  // namespace menger
