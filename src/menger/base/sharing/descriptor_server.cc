#include "menger/base/sharing/descriptor_server.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/sharing/descriptors.h"

namespace menger {
namespace {

constexpr std::byte kHere{1};
constexpr int kLookMilliseconds = 1'000;  // No wait is endless: it looks again.

}  // namespace

DescriptorServer::DescriptorServer(std::string path, std::vector<int> descriptors)
    : descriptors_(std::move(descriptors)),
      listener_(std::move(path)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.valid()) throw FromErrno("cannot make an eventfd", errno);
  thread_ = Thread({.name = "descriptors"}, [this] { Serve(); });
}

DescriptorServer::~DescriptorServer() {
  stopping_ = true;
  eventfd_write(wake_.get(), 1);
}

void DescriptorServer::Serve() {
  while (!stopping_) {
    pollfd polled[] = {{listener_.descriptor().get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    poll(polled, std::size(polled), kLookMilliseconds);
    try {
      // What was sent stays readable where this end closes.
      while (const std::optional<FileDescriptor> guest = listener_.Accept()) {
        TrySendDescriptors(*guest, {&kHere, 1}, descriptors_);
      }
    } catch (const Error& error) {
      LogWarning("descriptors could not be handed to a process: {}", error.what());
    }
  }
}

std::vector<FileDescriptor> FetchDescriptors(const std::string& path, const Deadline& deadline) {
  const FileDescriptor socket = ConnectUnixSocket(path, deadline);
  return ReceiveDescriptors(socket, /*bytes_max=*/1, deadline).descriptors;
}

}  // namespace menger
