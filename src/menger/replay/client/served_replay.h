#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "menger/replay/client/replay_client.h"
#include "menger/replay/client/server_link.h"
#include "menger/replay/protocol/messages.h"

namespace menger {

// Where a replay server is, and for how long to wait for it.
struct ServedReplayOptions {
  // The path that it serves at ("unix:" may stand before it), or HOST:PORT where it listens for TCP
  // (ReplayServerOptions).
  std::string socket;
  // For its start, and again for each time that it has ended: calls go on when it is back.
  std::chrono::nanoseconds patience = std::chrono::seconds(60);
  std::optional<std::chrono::nanoseconds> start_patience;  // For its start; none: patience.
  // Asked while a server is waited for, in any thread: once true, waits end as if patience had.
  std::function<bool()> given_up = [] { return false; };
};

class ServedRows;
struct ServedRowsOptions;

// Connections to one server, made anew after it has ended. Any thread.
class ServerFinder {
 public:
  // Connects, and asks what it has; tries again while patience lasts where there is nobody, or no
  // place. Throws as ServerLink.
  explicit ServerFinder(ServedReplayOptions options);

  const std::vector<TableOptions>& tables() const { return tables_; }
  const ServedReplayOptions& options() const { return options_; }

  // A connection to the server whose tables are still those that they were. Throws as ServerLink;
  // FailedPrecondition, naming the table, where they are others.
  std::unique_ptr<ServerLink> Connect(bool wants_memory, std::size_t ring_bytes,
                                      const Deadline& deadline) const;

  // Calls `work` with the link, and again with a new one each time that the server has gone, for as
  // long as patience lasts (ReplayLost then), or the deadline (DeadlineExceeded then).
  void With(std::unique_ptr<ServerLink>& link, bool wants_memory, std::size_t ring_bytes,
            const Deadline& deadline, const std::function<void(ServerLink& link)>& work) const;

 private:
  static std::vector<TableOptions> AskTables(ServerLink& link);

  const ServedReplayOptions options_;
  std::vector<TableOptions> tables_;
};

// The tables of a replay server of this host (ReplayServer). Rows of samples are read where they
// lie, in a mapping that this process cannot write; steps are copied to the server. Over TCP, rows
// of samples come to memory of this process.
//
// A server that ends and comes back within `patience` is no error: samples that were drawn stay
// readable, priorities are updated where the item is still there, and a writer sends again what was
// not acknowledged, with the steps that it needs.
class ServedReplay final : public ReplayClient {
 public:
  // Throws Unavailable where nobody serves there within `start_patience`; as ServerLink.
  explicit ServedReplay(const ServedReplayOptions& options);

  int tables() const override { return static_cast<int>(finder_->tables().size()); }
  // All but seed and shard, which are not known here.
  const TableOptions& table(int index) const override { return finder_->tables()[index]; }

  std::unique_ptr<ReplayWriter> NewWriter(const Spec& steps, const WriterOptions& options,
                                          int streams) override;
  std::unique_ptr<ReplaySampler> NewSampler(int table) override;
  // For open tables. Throws as ServedRowsOptions::Check.
  std::unique_ptr<ServedRows> NewRows(const ServedRowsOptions& options);

  // In parts, where they are many.
  Found UpdatePriorities(int table, std::span<const PriorityUpdate> updates) override;
  Found Delete(int table, std::span<const ItemKey> keys) override;
  TableInfo info(int table) override;
  void Reset(int table);  // As Table's.

  ServerInfo server();
  void Checkpoint(const Deadline& deadline);  // As ReplayKeeper's.

 private:
  // Sends a request and gives its answer to `take`. Without a deadline it is one that the server
  // answers at once.
  void Ask(std::optional<Deadline> by, const std::function<void(ServerLink& link)>& send,
           const std::function<void(std::span<const std::byte> answer)>& take);
  template <typename Entry>
  Found Change(RequestKind kind, int table, std::span<const Entry> entries);

  const std::shared_ptr<const ServerFinder> finder_;
  std::mutex mutex_;                  // Of the next:
  std::unique_ptr<ServerLink> link_;  // for calls that answer at once.
};

}  // namespace menger
