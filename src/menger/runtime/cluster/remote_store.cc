#include "menger/runtime/cluster/remote_store.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "menger/runtime/cluster/open_requests.h"
#include "menger/runtime/cluster/store_codec.h"
#include "menger/runtime/cluster/store_connection.h"

namespace menger {
namespace {

class Watching final : public StoreWatch {
 public:
  Watching(std::shared_ptr<StoreConnection> connection, std::uint64_t number)
      : connection_(std::move(connection)), number_(number) {}
  ~Watching() override { connection_->Unwatch(number_); }

 private:
  const std::shared_ptr<StoreConnection> connection_;
  const std::uint64_t number_;
};

}  // namespace

RemoteStore::RemoteStore(PeerStreams& streams, const std::string& address,
                         const RemoteStoreOptions& options)
    : connection_(std::make_shared<StoreConnection>(streams, address, options)) {
  connection_->Start();
}

RemoteStore::~RemoteStore() { Stop(); }

void RemoteStore::Stop() { connection_->Stop(); }

std::optional<Error> RemoteStore::last_failure() const { return connection_->last_failure(); }

void RemoteStore::Submit(std::vector<StoreOperation> batch, Deadline deadline,
                         Completion completion) {
  OpenRequest open{
      .deadline = deadline, .completion = std::move(completion), .operations = batch.size()};
  connection_->Ask({.kind = StoreRequest::Kind::kSubmit, .batch = std::move(batch)},
                   std::move(open));
}

void RemoteStore::Scan(StoreTable table, std::string prefix, std::string after, int limit,
                       Deadline deadline, PageCompletion completion) {
  connection_->Ask({.kind = StoreRequest::Kind::kScan,
                    .table = table,
                    .prefix = std::move(prefix),
                    .after = std::move(after),
                    .limit = std::max(limit, 1)},
                   {.deadline = deadline, .page_completion = std::move(completion)});
}

std::unique_ptr<StoreWatch> RemoteStore::Watch(StoreTable table, std::string prefix,
                                               std::function<void()> hint) {
  return std::make_unique<Watching>(connection_,
                                    connection_->Watch(table, std::move(prefix), std::move(hint)));
}

}  // namespace menger
