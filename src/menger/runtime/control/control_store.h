#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"

namespace menger {

// What of a cluster must outlive its processes. A table is a name space of keys.
enum class StoreTable : std::uint8_t {
  kNodes,
  kJobs,
  kFunctions,
  kActors,
  kNames,        // Of actors: a name is taken by PutIf with expected version 0.
  kObjects = 6,  // Large ones only. 5 was another's: logs on the disk have these numbers.
  kEvents,
};
inline constexpr int kStoreTables = 8;

// Grows with each change of a store and is never given twice: a key that was deleted and made again
// has another version. 0: the key is not there.
//
// The high bits say after how many fail-overs it was given: those that a store has forgotten with
// its newest changes it cannot give again. By a version of another epoch a caller knows that.
using StoreVersion = std::uint64_t;

inline constexpr int kFailOverShift = 40;
constexpr std::uint64_t FailOversOf(StoreVersion version) { return version >> kFailOverShift; }

// Names one lease; a later one has a larger epoch. 0: none.
using LeaseEpoch = std::uint64_t;

inline constexpr std::size_t kStoreKeyBytesMax = std::size_t{2} << 10;
inline constexpr std::size_t kStoreValueBytesMax = std::size_t{16} << 20;

// One thing for a store to do; make it by one of the functions. Keys and values are any bytes;
// a key has at least one.
struct StoreOperation {
  enum class Kind : std::uint8_t { kGet, kPut, kDelete, kAcquire, kRenew };

  static StoreOperation Get(StoreTable table, std::string key);
  static StoreOperation Put(StoreTable table, std::string key, std::string value);
  static StoreOperation Delete(StoreTable table, std::string key);
  // Only if the key's version is `expected`; 0: only if there is no such key.
  static StoreOperation PutIf(StoreTable table, std::string key, StoreVersion expected,
                              std::string value);
  static StoreOperation DeleteIf(StoreTable table, std::string key, StoreVersion expected);

  // A lease for `owner`, who has none that is not over yet. Its epoch is the result's version.
  static StoreOperation Acquire(std::string owner, std::chrono::nanoseconds duration);
  // From now on `duration`; none: gives it up. One that is over stays so.
  static StoreOperation Renew(LeaseEpoch lease, std::chrono::nanoseconds duration);

  // For a put: the key belongs to the lease, and is marked as expired once that is over. A lease
  // that is over puts nothing; but such a put may race with the end, so what a stale owner must not
  // overwrite is guarded by PutIf, too.
  StoreOperation BoundTo(LeaseEpoch epoch) &&;

  Kind kind = Kind::kGet;
  StoreTable table = StoreTable::kNodes;
  std::string key;  // kAcquire: the owner.
  std::string value;
  std::optional<StoreVersion> expected;
  LeaseEpoch lease = 0;
  std::chrono::nanoseconds duration{0};
};

// What a store keeps for one key.
struct StoreRecord {
  std::string key;
  std::string value;
  StoreVersion version = 0;
  LeaseEpoch lease = 0;  // That the key belongs to,
  bool expired = false;  // and which is over.
};

// What became of one operation.
struct StoreResult {
  enum class Outcome : std::uint8_t {
    kDone,
    kConflict,  // Nothing has changed: the version is another, the owner has a lease, or the lease
                // is over.
    kFailed,    // See `error`.
  };
  Outcome outcome = Outcome::kDone;
  // Of a get: what is there. Otherwise only its version: after the operation, or, in a conflict,
  // that which is there instead.
  StoreRecord record;
  // FailedPrecondition: the lease that a put was bound to is over. InvalidArgument: a key or value
  // is too long. Unavailable and DeadlineExceeded: the change may have been made, or may yet be:
  // look again before the next step.
  std::optional<Error> error;

  bool done() const { return outcome == Outcome::kDone; }
};

// Some of a table's records, in the order of their keys.
struct StorePage {
  std::vector<StoreRecord> records;
  std::string next;            // `after` of the next page; empty: there are no more.
  StoreVersion newest = 0;     // That the store had given before the page was read.
  std::optional<Error> error;  // Unavailable, DeadlineExceeded: the records are not all.
};

// Ends its watch when it goes: the hint is not running then and never called again.
class StoreWatch {
 public:
  virtual ~StoreWatch() = default;
};

// The control state of a cluster: small records, a few thousand changes a second at the most, never
// one a task.
//
// It promises what Redis with shards and asynchronous replicas can keep, and no more: a change of
// one key is atomic; operations on one key that are submitted one after the other take effect in
// that order; between keys there is none, and no transaction. After a fail-over the newest changes
// may be gone, leases among them, so owners write their live state again; an old primary that has
// not noticed goes on for less than half a lease.
//
// It is slow by assumption: callers go on and are told. Completions and hints come on any thread,
// also before the call returns; they must not throw, wait, or call the store or take a lock that is
// held while calling it. Any number of threads may use a store.
class ControlStore {
 public:
  using Completion = std::function<void(std::vector<StoreResult> results)>;
  using PageCompletion = std::function<void(StorePage page)>;

  virtual ~ControlStore() = default;

  // Does each operation or says why not: one result an operation, in their order, all at once. What
  // has not begun by `deadline` is not done.
  virtual void Submit(std::vector<StoreOperation> batch, Deadline deadline,
                      Completion completion) = 0;

  // Up to `limit` records whose keys begin with `prefix` and are greater than `after`, in ascending
  // order of their bytes. Pages are of different moments.
  virtual void Scan(StoreTable table, std::string prefix, std::string after, int limit,
                    Deadline deadline, PageCompletion completion) = 0;

  // `hint` says that a key with this prefix may have changed since it was called last: read again.
  // One hint may stand for many changes, and hints can be lost, so whoever must know also reads now
  // and then. No hint tells that a lease is over. The store outlives the watch.
  [[nodiscard]] virtual std::unique_ptr<StoreWatch> Watch(StoreTable table, std::string prefix,
                                                          std::function<void()> hint) = 0;
};

// For those who can wait. All throw DeadlineExceeded, and RunBatch nothing else; the others also
// throw the error of a page.
std::vector<StoreResult> RunBatch(ControlStore& store, std::vector<StoreOperation> batch,
                                  Deadline deadline);
StorePage RunScan(ControlStore& store, StoreTable table, const std::string& prefix,
                  const std::string& after, int limit, Deadline deadline);
std::vector<StoreRecord> ScanAll(ControlStore& store, StoreTable table, const std::string& prefix,
                                 Deadline deadline);

// For stores: the result that refuses an operation whose key is empty or whose key or value is too
// long.
std::optional<StoreResult> RefuseWrongSize(const StoreOperation& operation);

}  // namespace menger
