#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/base/sharing/unix_socket.h"
#include "menger/base/thread.h"

namespace menger {

// Hands the same descriptors (of segments) to every process of this user that connects to a socket:
// so processes that begin at different times come to share memory. Any thread.
class DescriptorServer {
 public:
  // Serves from here on. The descriptors, at most kMessageDescriptorsMax, stay their owner's, who
  // outlives this. Throws as ListeningSocket.
  DescriptorServer(std::string path, std::vector<int> descriptors);
  ~DescriptorServer();
  DescriptorServer(const DescriptorServer&) = delete;
  DescriptorServer& operator=(const DescriptorServer&) = delete;

 private:
  void Serve();

  const std::vector<int> descriptors_;
  const ListeningSocket listener_;
  const FileDescriptor wake_;  // An eventfd.
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

// What the server at that path hands out: duplicates, in its order. Throws Unavailable where nobody
// serves there until the deadline; otherwise as ReceiveDescriptors.
std::vector<FileDescriptor> FetchDescriptors(const std::string& path, const Deadline& deadline);

}  // namespace menger
