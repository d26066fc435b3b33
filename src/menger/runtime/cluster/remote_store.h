#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/cluster/remote_store_options.h"
#include "menger/runtime/control/control_store.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {

class StoreConnection;

// The control store of another process, which has a StoreServer, over a stream of lane kStore. It
// is opened again whenever it has ended.
//
// Requests wait while there is no stream, and fail at their deadlines with DeadlineExceeded, sent
// or not. One whose answer the end of the stream has taken is Unavailable: a change may have been
// made. All are Unavailable at once while the other end refuses this one for a cause that does not
// go by itself: it has another token, or speaks another version. A batch that is no frame (as one
// with a value of more than 8 MiB, or more than 16,384 operations) is InvalidArgument.
//
// A watch begins with a hint, and has another whenever there is a new stream.
//
// Completions and hints come on the thread of the streams, on one of its own, or on the caller's.
class RemoteStore final : public ControlStore {
 public:
  // Connects to `address`, and goes on trying. Throws InvalidArgument for options that are wrong,
  // and as ParseNodeAddress. `streams` outlives this, and may serve others.
  RemoteStore(PeerStreams& streams, const std::string& address,
              const RemoteStoreOptions& options = {});
  // Stops.
  ~RemoteStore() override;

  void Submit(std::vector<StoreOperation> batch, Deadline deadline, Completion completion) override;
  void Scan(StoreTable table, std::string prefix, std::string after, int limit, Deadline deadline,
            PageCompletion completion) override;
  [[nodiscard]] std::unique_ptr<StoreWatch> Watch(StoreTable table, std::string prefix,
                                                  std::function<void()> hint) override;

  // Closes the stream. When it returns all requests are completed, those without an answer as
  // Unavailable, and nothing is called any more; later ones are Unavailable at once. Any thread,
  // but no completion or hint.
  void Stop();

  // Why there is no stream, of the latest attempt; none while there is one, or the first is under
  // way. FailedPrecondition: another token. InvalidArgument: another version, or no node.
  std::optional<Error> last_failure() const;

 private:
  // Shared with the streams until they have let go of it.
  const std::shared_ptr<StoreConnection> connection_;
};

}  // namespace menger
