#include "menger/runtime/control/embedded_store.h"

#include <algorithm>
#include <utility>

namespace menger {
namespace {

using Kind = StoreOperation::Kind;
using Outcome = StoreResult::Outcome;

constexpr std::size_t kSnapshotBytes = std::size_t{1} << 20;  // Visited under one lock, at least.

StoreResult Conflict(StoreVersion version) {
  return {.outcome = Outcome::kConflict, .record = {.version = version}};
}

StoreResult Failed(Error error) { return {.outcome = Outcome::kFailed, .error = std::move(error)}; }

bool Changes(const StoreOperation& operation) {
  return operation.kind != Kind::kGet && operation.kind != Kind::kRenew;
}

}  // namespace

class EmbeddedStore::Watching : public StoreWatch {
 public:
  Watching(EmbeddedStore& store, StoreTable table, std::string prefix, std::function<void()> hint)
      : store_(store), table_(table), prefix_(std::move(prefix)), hint_(std::move(hint)) {
    const std::lock_guard lock(store_.watch_mutex_);
    place_ = store_.watchings_.insert(store_.watchings_.end(), this);
  }
  ~Watching() override {
    const std::lock_guard lock(store_.watch_mutex_);
    store_.watchings_.erase(place_);
  }

  void Hint(StoreTable table, std::string_view key) const {
    if (table == table_ && key.starts_with(prefix_)) hint_();
  }

 private:
  EmbeddedStore& store_;
  const StoreTable table_;
  const std::string prefix_;
  const std::function<void()> hint_;
  std::list<Watching*>::iterator place_;
};

EmbeddedStore::EmbeddedStore(EmbeddedStoreOptions options)
    : now_(options.now ? std::move(options.now) : MonotonicNanoseconds) {
  if (!options.journal) return;
  journal_ = options.journal(
      [this](const StoreChange& change) { Replay(change); },
      {.next = [this](StoreJournal::Cursor& cursor,
                      const StoreJournal::Visitor& visit) { SnapshotNext(cursor, visit); },
       .version = [this] { return version_.load(); }});
  // It knows no leases, as after a fail-over.
  if (version_ != 0) version_ = (FailOversOf(version_) + 1) << kFailOverShift;
}

EmbeddedStore::~EmbeddedStore() = default;

// ---- Operations

void EmbeddedStore::Submit(std::vector<StoreOperation> batch, Deadline deadline,
                           Completion completion) {
  const bool late = deadline.expired();
  const std::optional<Error> closed = journal_ ? journal_->WhyClosed() : std::nullopt;
  const bool full = journal_ && journal_->full();
  const bool changes = std::ranges::any_of(batch, Changes);
  std::vector<StoreResult> results;
  results.reserve(batch.size());
  for (const StoreOperation& operation : batch) {
    if (late) {
      results.push_back(Failed(DeadlineExceeded("the deadline of a batch had passed before")));
    } else if (closed) {
      results.push_back(Failed(*closed));
    } else if (full && Changes(operation)) {
      results.push_back(Failed(Unavailable("too many changes of the control store wait")));
    } else {
      results.push_back(Apply(operation));
    }
  }
  if (!journal_ || late || closed || !changes) return completion(std::move(results));
  std::vector<bool> changed;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    changed.push_back(Changes(batch[i]) && results[i].done());
  }
  journal_->WhenSafe(
      [results = std::move(results), changed = std::move(changed),
       completion = std::move(completion)](const std::optional<Error>& error) mutable {
        for (std::size_t i = 0; error && i < results.size(); ++i) {
          if (changed[i]) results[i] = Failed(Unavailable("{}", error->what()));
        }
        completion(std::move(results));
      });
}

StoreResult EmbeddedStore::Apply(const StoreOperation& operation) {
  if (std::optional<StoreResult> refused = RefuseWrongSize(operation)) return *std::move(refused);
  switch (operation.kind) {
    case Kind::kGet:
      return {.record = Read(operation.table, operation.key)};
    case Kind::kPut:
    case Kind::kDelete: {
      StoreResult result = Change(operation);
      if (result.done()) Hint(operation.table, operation.key);
      return result;
    }
    case Kind::kAcquire:
      return AcquireLease(operation);
    case Kind::kRenew:
      return RenewLease(operation);
  }
  return Failed(InvalidArgument("there is no operation {}", static_cast<int>(operation.kind)));
}

StoreRecord EmbeddedStore::Read(StoreTable table, std::string key) {
  Shard& shard = ShardOf(table, key);
  const std::lock_guard lock(shard.mutex);
  const Table& entries = TableOf(shard, table);
  const auto found = entries.find(key);
  StoreRecord record{.key = std::move(key)};
  if (found == entries.end()) return record;
  const Entry& entry = found->second;
  record.value = entry.value;
  record.version = entry.version;
  record.lease = entry.lease;
  record.expired = entry.lease != 0 && IsOver(entry.lease);
  return record;
}

StoreResult EmbeddedStore::Change(const StoreOperation& operation) {
  Shard& shard = ShardOf(operation.table, operation.key);
  const std::lock_guard lock(shard.mutex);
  Table& table = TableOf(shard, operation.table);
  const auto found = table.find(operation.key);
  const StoreVersion before = found == table.end() ? 0 : found->second.version;
  if (operation.expected && *operation.expected != before) return Conflict(before);
  if (operation.lease != 0 && IsOver(operation.lease)) {
    return Failed(FailedPrecondition("lease {}, by which {:?} was to be written, is over",
                                     operation.lease, operation.key));
  }
  if (operation.kind == Kind::kDelete && before == 0) return {};

  const StoreVersion version = NextVersion();
  StoreChange change{.kind = StoreChange::Kind::kDelete,
                     .table = operation.table,
                     .version = version,
                     .key = operation.key};
  if (operation.kind == Kind::kPut) {
    change.kind = StoreChange::Kind::kPut;
    change.lease = operation.lease;
    change.value = operation.value;
  }
  if (journal_) journal_->Append(change);
  if (operation.kind == Kind::kDelete) {
    table.erase(found);
    return {};
  }
  Entry& entry = found == table.end() ? table[operation.key] : found->second;
  entry = {.value = operation.value, .version = version, .lease = operation.lease};
  return {.record = {.version = version}};
}

void EmbeddedStore::Scan(StoreTable table, std::string prefix, std::string after, int limit,
                         Deadline deadline, PageCompletion completion) {
  StorePage page;
  if (deadline.expired()) {
    page.error = DeadlineExceeded("the deadline of a scan had passed before");
    return completion(std::move(page));
  }
  if (journal_) page.error = journal_->WhyClosed();
  if (page.error) return completion(std::move(page));
  page.newest = version_.load();
  // The first keys of each shard, of which the first of all are read.
  const auto wanted = static_cast<std::size_t>(std::max(limit, 1));
  std::vector<std::string> keys;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    const Table& entries = TableOf(shard, table);
    auto entry = after < prefix ? entries.lower_bound(prefix) : entries.upper_bound(after);
    for (std::size_t taken = 0; taken <= wanted; ++entry, ++taken) {
      if (entry == entries.end() || !entry->first.starts_with(prefix)) break;
      keys.push_back(entry->first);
    }
  }
  std::ranges::sort(keys);
  if (keys.size() > wanted) {
    keys.resize(wanted);
    page.next = keys.back();
  }
  for (std::string& key : keys) {
    StoreRecord record = Read(table, std::move(key));
    if (record.version != 0) page.records.push_back(std::move(record));
  }
  completion(std::move(page));
}

EmbeddedStore::Shard& EmbeddedStore::ShardOf(StoreTable table, std::string_view key) {
  return shards_[(std::hash<std::string_view>()(key) + static_cast<std::size_t>(table)) % kShards];
}

// ---- Leases

StoreResult EmbeddedStore::AcquireLease(const StoreOperation& operation) {
  const std::int64_t now = now_();
  const std::lock_guard lock(lease_mutex_);
  std::erase_if(leases_, [&](const auto& lease) { return lease.second.until <= now; });
  for (const auto& [epoch, lease] : leases_) {
    if (lease.owner == operation.key) return Conflict(epoch);
  }
  const LeaseEpoch epoch = NextVersion();
  leases_[epoch] = {.owner = operation.key, .until = now + operation.duration.count()};
  if (journal_) journal_->Append({.kind = StoreChange::Kind::kVersion, .version = epoch});
  return {.record = {.version = epoch}};
}

StoreResult EmbeddedStore::RenewLease(const StoreOperation& operation) {
  const std::int64_t now = now_();
  const std::lock_guard lock(lease_mutex_);
  const auto found = leases_.find(operation.lease);
  if (found == leases_.end() || found->second.until <= now) return Conflict(0);
  found->second.until = now + operation.duration.count();
  return {.record = {.version = operation.lease}};
}

bool EmbeddedStore::IsOver(LeaseEpoch lease) {
  const std::lock_guard lock(lease_mutex_);
  const auto found = leases_.find(lease);
  return found == leases_.end() || found->second.until <= now_();
}

// ---- Watches

std::unique_ptr<StoreWatch> EmbeddedStore::Watch(StoreTable table, std::string prefix,
                                                 std::function<void()> hint) {
  return std::make_unique<Watching>(*this, table, std::move(prefix), std::move(hint));
}

void EmbeddedStore::Hint(StoreTable table, std::string_view key) {
  const std::lock_guard lock(watch_mutex_);
  for (const Watching* watching : watchings_) watching->Hint(table, key);
}

// ---- The journal

void EmbeddedStore::Replay(const StoreChange& change) {
  version_ = std::max(version_.load(), change.version);
  if (change.kind == StoreChange::Kind::kVersion) return;
  Table& table = TableOf(ShardOf(change.table, change.key), change.table);
  if (change.kind == StoreChange::Kind::kDelete) {
    const auto found = table.find(change.key);
    if (found != table.end()) table.erase(found);
    return;
  }
  table[std::string(change.key)] = {
      .value = std::string(change.value), .version = change.version, .lease = change.lease};
}

void EmbeddedStore::SnapshotNext(StoreJournal::Cursor& cursor, const StoreJournal::Visitor& visit) {
  const auto kind = static_cast<StoreTable>(cursor.table);
  Shard& shard = shards_[static_cast<std::size_t>(cursor.shard)];
  const std::lock_guard lock(shard.mutex);
  const Table& table = TableOf(shard, kind);
  std::size_t bytes = 0;
  for (auto at = table.lower_bound(cursor.key); at != table.end(); ++at) {
    const auto& [key, entry] = *at;
    if (bytes > kSnapshotBytes) {
      cursor.key = key;
      return;
    }
    visit({.table = kind,
           .version = entry.version,
           .lease = entry.lease,
           .key = key,
           .value = entry.value});
    bytes += key.size() + entry.value.size();
  }
  cursor.key.clear();
  cursor.table = (cursor.table + 1) % kStoreTables;
  if (cursor.table == 0) cursor.finished = ++cursor.shard == kShards;
}

}  // namespace menger
