#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "menger/runtime/control/control_store.h"
#include "menger/runtime/control/store_log.h"

namespace menger {

struct EmbeddedStoreOptions {
  std::optional<StoreLogOptions> log;  // None: in memory only.
  // Nanoseconds, never going back: leases end by it. Default: MonotonicNanoseconds. Any thread.
  std::function<std::int64_t()> now;
};

// The control store of one machine: in the memory of one process and, if asked, on its disk.
//
// Reads complete before Submit returns, and so does everything without a log. With one, a batch
// that changes something completes on the log's thread once it is safe as StoreLogOptions say;
// others may read it before. A batch is refused with Unavailable while too much waits for the disk,
// and after the disk has failed. About a quarter of a microsecond an operation in memory.
//
// Opened again it knows all records, but no leases: those who held them were told by the same
// process, or have to ask again: that is a fail-over. Versions and epochs go on growing.
class EmbeddedStore : public ControlStore {
 public:
  // Throws as StoreLog.
  explicit EmbeddedStore(EmbeddedStoreOptions options = {});
  ~EmbeddedStore() override;  // After it, every completion has been called.

  void Submit(std::vector<StoreOperation> batch, Deadline deadline, Completion completion) override;
  void Scan(StoreTable table, std::string prefix, std::string after, int limit, Deadline deadline,
            PageCompletion completion) override;
  [[nodiscard]] std::unique_ptr<StoreWatch> Watch(StoreTable table, std::string prefix,
                                                  std::function<void()> hint) override;

 private:
  static constexpr int kShards = 16;

  struct Entry {
    std::string value;
    StoreVersion version = 0;
    LeaseEpoch lease = 0;
  };
  using Table = std::map<std::string, Entry, std::less<>>;
  struct alignas(64) Shard {
    std::mutex mutex;
    std::array<Table, kStoreTables> tables;  // Guarded by mutex.
  };
  struct Lease {
    std::string owner;
    std::int64_t until = 0;  // Of now_.
  };
  class Watching;

  Shard& ShardOf(StoreTable table, std::string_view key);
  Table& TableOf(Shard& shard, StoreTable table) {
    return shard.tables[static_cast<std::size_t>(table)];
  }
  StoreVersion NextVersion() { return ++version_; }

  StoreResult Apply(const StoreOperation& operation);
  StoreRecord Read(StoreTable table, std::string key);
  StoreResult Change(const StoreOperation& operation);
  StoreResult AcquireLease(const StoreOperation& operation);
  StoreResult RenewLease(const StoreOperation& operation);
  bool IsOver(LeaseEpoch lease);
  void Hint(StoreTable table, std::string_view key);

  void Replay(const StoreChange& change);
  void SnapshotNext(StoreLog::Cursor& cursor, const StoreLog::Visitor& visit);

  const std::function<std::int64_t()> now_;

  std::array<Shard, kShards> shards_;
  std::atomic<StoreVersion> version_{0};  // The last one given.

  std::mutex lease_mutex_;              // May be taken with a shard's held.
  std::map<LeaseEpoch, Lease> leases_;  // Guarded by lease_mutex_. Those over go now and then.

  std::mutex watch_mutex_;          // Held while hints are called.
  std::list<Watching*> watchings_;  // Guarded by watch_mutex_.

  std::optional<StoreLog> log_;  // Last: its thread uses all above.
};

}  // namespace menger
