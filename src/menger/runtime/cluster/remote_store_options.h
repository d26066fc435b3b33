#pragma once

#include <chrono>
#include <cstddef>

namespace menger {

// How a client of a control store elsewhere is.
struct RemoteStoreOptions {
  // After a stream has ended or could not be had, until another is tried: as long as the last one
  // times two, from and up to these.
  std::chrono::milliseconds pause_min{50};
  std::chrono::milliseconds pause_max{250};
  std::size_t frame_bytes_max = std::size_t{8} << 20;  // As the server's; a stream's are longer.
  // Not answered yet; what is more fails with Unavailable.
  std::size_t requests_max = 1024;
  std::size_t request_bytes_max = std::size_t{64} << 20;
};

// Throws InvalidArgument that names the option.
void CheckRemoteStoreOptions(const RemoteStoreOptions& options);

}  // namespace menger
