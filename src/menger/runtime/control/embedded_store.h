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
#include "menger/runtime/control/store_journal.h"

namespace menger {

struct EmbeddedStoreOptions {
  OpenStoreJournal journal;  // Where its changes are kept, too; empty: in memory only.
  // Nanoseconds, never going back: leases end by it. Default: MonotonicNanoseconds. Any thread.
  std::function<std::int64_t()> now;
};

// A control store in the memory of one process, which may keep a journal: a log on its disk
// (store_log.h), or a Redis (redis/redis_journal.h).
//
// Reads complete before Submit returns, and so does everything without a journal. With one, a batch
// that changes something completes on the journal's thread once it is safe by its options; others
// may read it before. A change is refused with Unavailable while too much waits for the journal,
// and everything while that is closed. About a quarter of a microsecond an operation in memory.
//
// Opened again it knows all records, but no leases: those who held them were told by the same
// process, or have to ask again: that is a fail-over. Versions and epochs go on growing.
class EmbeddedStore : public ControlStore {
 public:
  // Throws what opening the journal throws.
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
  void SnapshotNext(StoreJournal::Cursor& cursor, const StoreJournal::Visitor& visit);

  const std::function<std::int64_t()> now_;

  std::array<Shard, kShards> shards_;
  std::atomic<StoreVersion> version_{0};  // The last one given.

  std::mutex lease_mutex_;              // May be taken with a shard's held.
  std::map<LeaseEpoch, Lease> leases_;  // Guarded by lease_mutex_. Those over go now and then.

  std::mutex watch_mutex_;          // Held while hints are called.
  std::list<Watching*> watchings_;  // Guarded by watch_mutex_.

  std::unique_ptr<StoreJournal> journal_;  // Last: its thread uses all above.
};

}  // namespace menger
