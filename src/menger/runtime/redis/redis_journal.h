#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/mutex.h"
#include "menger/base/thread.h"
#include "menger/runtime/control/store_journal.h"
#include "menger/runtime/redis/redis_tables.h"

namespace menger {

struct RedisJournalOptions {
  RedisAddress address;
  // Of the head, by which people find it where another one wants the same Redis.
  std::string head;
  // A head that Redis has not heard of for so long has lost it to whoever asks. Less than half of
  // the members' lease (MembershipOptions): for less than that it goes on when Redis is gone.
  std::chrono::milliseconds head_lease{4'000};
  // Whether the head of that name is known to have ended: then its lease is. Empty: of none.
  std::function<bool(std::string_view head)> has_ended;
  // How long a new head waits for Redis, and for the lease of the one before.
  std::chrono::milliseconds open_max{10'000};
  RedisPatience patience;
  // Of changes that wait to be written; see `full`.
  std::size_t waiting_bytes_max = std::size_t{64} << 20;
};

// Keeps a store's changes in a Redis, which may have a replica and sentinels. A thread of its own
// writes whatever has come since its last write, in one question, and tells Redis five times in a
// head's lease that there is one.
//
// Redis has no say: all is in the store's memory, and is written again where a primary lacks some
// of it, as one that was a replica a moment ago does. So a fail-over of Redis loses nothing unless
// the head ends with it, and the store goes on meanwhile, but for less than a head's lease: then it
// is closed until Redis is there. What waits to be safe is told Unavailable then, and written all
// the same once that is possible.
//
// Another head that has taken the tables since closes it for good.
class RedisJournal final : public StoreJournal {
 public:
  // Throws FailedPrecondition where a head has the tables that goes on, or Redis refuses this one,
  // Unavailable where Redis is not there in time, and DataLoss.
  RedisJournal(RedisJournalOptions options, const Visitor& replay, Snapshot snapshot);
  ~RedisJournal() override;
  RedisJournal(const RedisJournal&) = delete;
  RedisJournal& operator=(const RedisJournal&) = delete;

  std::optional<Error> WhyClosed() const override;
  bool full() const override;
  void Append(const StoreChange& change) override;
  void WhenSafe(Completion completion) override;

 private:
  void Open(const Visitor& replay);
  void Run();
  bool Gather();
  bool HasMore() const;
  void Connect();
  void WriteAll();
  void ReplaceAll();
  void Confirm(std::int64_t at);
  void Lost(const Error& why);
  void Complete(const std::optional<Error>& error);
  bool IsConfirmed(std::int64_t now) const;

  const RedisJournalOptions options_;
  const Snapshot snapshot_;
  RedisClaim claim_;

  // Of the constructor, then of the thread.
  std::unique_ptr<RedisTables> tables_;  // Null: there is no connection.
  std::uint64_t number_ = 0;             // Of the last change that Redis is known to have.
  std::vector<RedisChange> changes_;     // Under way:
  std::size_t written_ = 0;              // so many of them Redis has;
  std::vector<Completion> completing_;   // those who wait for them.
  bool told_lost_ = false;

  // When Redis was asked last, of all times that it has answered.
  std::atomic<std::int64_t> confirmed_at_{0};
  std::atomic<bool> taken_{false};  // Another head has the tables.

  mutable Mutex mutex_;
  std::condition_variable has_work_;
  std::vector<RedisChange> waiting_ MENGER_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ MENGER_GUARDED_BY(mutex_) = 0;
  std::vector<Completion> completions_ MENGER_GUARDED_BY(mutex_);  // Of all that waits.
  bool stopping_ MENGER_GUARDED_BY(mutex_) = false;

  Thread thread_;
};

OpenStoreJournal KeepInRedis(RedisJournalOptions options);

}  // namespace menger
