#include "menger/runtime/cluster/remote_store_options.h"

#include "menger/base/error.h"

namespace menger {

void CheckRemoteStoreOptions(const RemoteStoreOptions& options) {
  if (options.pause_min.count() < 1 || options.pause_max < options.pause_min) {
    throw InvalidArgument(
        "pause_min and pause_max of a remote control store are {} and {} ms; they must be at least "
        "1, in this order",
        options.pause_min.count(), options.pause_max.count());
  }
  if (options.requests_max < 1) {
    throw InvalidArgument("requests_max of a remote control store is 0; it must be at least 1");
  }
}

}  // namespace menger
