#include "menger/runtime/simulation/simulated_store.h"

#include <algorithm>
#include <limits>

#include "menger/base/error.h"

namespace menger::simulation {
namespace {

using Kind = StoreOperation::Kind;
using Outcome = StoreResult::Outcome;

constexpr std::size_t kNewestMax = 200;

StoreResult Failed(Error error) { return {.outcome = Outcome::kFailed, .error = std::move(error)}; }

StoreResult Conflict(StoreVersion version) {
  return {.outcome = Outcome::kConflict, .record = {.version = version}};
}

}  // namespace

struct SimulatedStore::Watching : StoreWatch {
  Watching(SimulatedStore& in, StoreTable of, std::function<void()> call)
      : store(in), table(of), hint(std::make_shared<std::function<void()>>(std::move(call))) {
    store.watchings_.push_back(this);
  }
  ~Watching() override { std::erase(store.watchings_, this); }

  SimulatedStore& store;
  const StoreTable table;
  const std::shared_ptr<const std::function<void()>> hint;  // Those that are under way go with it.
};

class SimulatedStore::Connection : public ControlStore {
 public:
  Connection(SimulatedStore& store, int client) : store_(store), client_(client) {}

  void Submit(std::vector<StoreOperation> batch, Deadline, Completion completion) override {
    store_.Submit(*this, std::move(batch), std::move(completion));
  }
  void Scan(StoreTable table, std::string, std::string after, int limit, Deadline,
            PageCompletion completion) override {
    store_.Scan(*this, table, after, limit, completion);
  }
  std::unique_ptr<StoreWatch> Watch(StoreTable table, std::string,
                                    std::function<void()> hint) override {
    return std::make_unique<Watching>(store_, table, std::move(hint));
  }

  int client() const { return client_; }
  std::weak_ptr<const bool> there() const { return there_; }

 private:
  SimulatedStore& store_;
  const int client_;
  const std::shared_ptr<const bool> there_ = std::make_shared<const bool>(true);
};

struct SimulatedStore::Batch {
  int client = 0;
  std::weak_ptr<const bool> there;
  std::vector<StoreOperation> operations;
  std::vector<StoreResult> results;
  std::size_t missing = 0;
  ControlStore::Completion completion;  // None any longer: it has been called.

  void Complete(std::vector<StoreResult> with) {
    const auto call = std::exchange(completion, nullptr);
    if (call != nullptr && !there.expired()) call(std::move(with));
  }
};

SimulatedStore::SimulatedStore(Random& random, std::int64_t patience, double rate)
    : random_(random), patience_(patience), rate_(rate) {}

SimulatedStore::~SimulatedStore() = default;

std::unique_ptr<ControlStore> SimulatedStore::Connect(int client) {
  return std::make_unique<Connection>(*this, client);
}

std::int64_t SimulatedStore::Clock() const {
  return static_cast<std::int64_t>(static_cast<double>(now_) * rate_);
}

// Mostly short, now and then long.
std::int64_t SimulatedStore::Delay() {
  const std::int64_t most = Draw(8) == 0 ? faults_.delay : faults_.delay / 20;
  return random_.Integers(0, most + 1);
}

void SimulatedStore::Advance(std::int64_t now) {
  now_ = now;
  while (!due_.empty() && due_.begin()->first <= now) due_.extract(due_.begin()).mapped()();
}

std::int64_t SimulatedStore::next_at() const {
  return due_.empty() ? std::numeric_limits<std::int64_t>::max() : due_.begin()->first;
}

// ---- The way there and back.

void SimulatedStore::Submit(const Connection& by, std::vector<StoreOperation> operations,
                            ControlStore::Completion completion) {
  auto batch = std::make_shared<Batch>();
  batch->client = by.client();
  batch->there = by.there();
  batch->results.resize(operations.size());
  batch->missing = operations.size();
  batch->completion = std::move(completion);
  batch->operations = std::move(operations);
  Client& client = clients_[by.client()];
  for (std::size_t i = 0; i < batch->operations.size(); ++i) {
    const StoreOperation& operation = batch->operations[i];
    const std::string key = operation.kind == Kind::kRenew || operation.kind == Kind::kAcquire
                                ? "lease"
                                : operation.key;
    std::int64_t& last = client.last_at[key];
    last = std::max(last, now_ + Delay());
    if (Lost(by.client())) continue;
    At(last, [this, batch, i] { Do(batch, i); });
  }
  if (faults_.mute_percent > 0 && Draw(100) < faults_.mute_percent) return;
  At(now_ + patience_, [batch] {
    std::vector<StoreResult> late(batch->operations.size());
    for (StoreResult& result : late) result = Failed(DeadlineExceeded("nothing has come"));
    batch->Complete(std::move(late));
  });
}

void SimulatedStore::Do(const std::shared_ptr<Batch>& batch, std::size_t index) {
  if (clients_[batch->client].cut) return;
  batch->results[index] = Apply(PrimaryOf(batch->client), batch->operations[index]);
  if (--batch->missing > 0 || Lost(batch->client)) return;
  At(now_ + Delay(), [this, batch] {
    if (!clients_[batch->client].cut) batch->Complete(std::move(batch->results));
  });
}

void SimulatedStore::Scan(const Connection& by, StoreTable table, const std::string& after,
                          int limit, const ControlStore::PageCompletion& completion) {
  const int client = by.client();
  const auto there = by.there();
  if (Lost(client)) {
    At(now_ + patience_, [there, completion] {
      StorePage none;
      none.error = Unavailable("the store cannot be reached");
      if (!there.expired()) completion(std::move(none));
    });
    return;
  }
  At(now_ + Delay(), [this, client, there, table, after, limit, completion] {
    if (Lost(client)) return;
    At(now_ + Delay(),
       [there, completion, page = ReadPage(PrimaryOf(client), table, after, limit)]() mutable {
         if (!there.expired()) completion(std::move(page));
       });
  });
}

void SimulatedStore::Hint(StoreTable table) {
  for (const Watching* const watching : watchings_) {
    if (watching->table != table || Draw(100) < 10 + faults_.lost_percent) continue;
    const std::weak_ptr<const std::function<void()>> hint = watching->hint;
    At(now_ + Delay(), [hint] {
      if (const auto call = hint.lock()) (*call)();
    });
  }
}

// ---- What a primary does.

SimulatedStore::Primary& SimulatedStore::PrimaryOf(int client) {
  return clients_[client].old_primary_until > now_ ? old_ : primary_;
}

bool SimulatedStore::IsOver(const Primary& primary, LeaseEpoch lease) const {
  const auto found = primary.leases.find(lease);
  return found == primary.leases.end() || found->second.until <= Clock();
}

bool SimulatedStore::Has(StoreTable table, const std::string& key) const {
  const auto& records = primary_.tables[Place(table)];
  const auto found = records.find(key);
  return found != records.end() && !IsOver(primary_, found->second.lease);
}

StoreResult SimulatedStore::Apply(Primary& primary, const StoreOperation& operation) {
  const bool changes = operation.kind != Kind::kGet && operation.kind != Kind::kRenew;
  if (changes && now_ < refuses_until_) return Failed(Unavailable("the disk is full"));
  switch (operation.kind) {
    case Kind::kGet: {
      const auto& table = primary.tables[Place(operation.table)];
      const auto found = table.find(operation.key);
      if (found == table.end()) return {.record = {.key = operation.key}};
      StoreResult result{.record = found->second};
      result.record.expired = found->second.lease != 0 && IsOver(primary, found->second.lease);
      return result;
    }
    case Kind::kPut:
    case Kind::kDelete:
      return ChangeKey(primary, operation);
    case Kind::kAcquire:
    case Kind::kRenew:
      return ChangeLease(primary, operation);
  }
  return {};
}

StoreResult SimulatedStore::ChangeKey(Primary& primary, const StoreOperation& operation) {
  auto& table = primary.tables[Place(operation.table)];
  const auto found = table.find(operation.key);
  const StoreVersion before = found == table.end() ? 0 : found->second.version;
  if (operation.expected && *operation.expected != before) return Conflict(before);
  if (operation.lease != 0 && IsOver(primary, operation.lease)) {
    return Failed(FailedPrecondition("lease {} is over", operation.lease));
  }
  if (operation.kind == Kind::kDelete && before == 0) return {};
  Change change{.at = now_, .part = Place(operation.table), .key = operation.key};
  if (before != 0) change.record = found->second;
  Note(primary, std::move(change));
  Hint(operation.table);
  const StoreVersion version = ++primary.version;
  if (operation.kind == Kind::kDelete) {
    table.erase(found);
    return {};
  }
  table[operation.key] = {
      .key = operation.key, .value = operation.value, .version = version, .lease = operation.lease};
  return {.record = {.version = version}};
}

StoreResult SimulatedStore::ChangeLease(Primary& primary, const StoreOperation& operation) {
  LeaseEpoch number = operation.lease;
  if (operation.kind == Kind::kAcquire) {
    for (const auto& [epoch, lease] : primary.leases) {
      if (lease.owner == operation.key && !IsOver(primary, epoch)) return Conflict(epoch);
    }
    number = ++primary.version;
  } else if (IsOver(primary, number)) {
    return Conflict(0);
  }
  Change change{.at = now_, .part = kLeases, .number = number};
  const auto found = primary.leases.find(number);
  if (found != primary.leases.end()) change.lease = found->second;
  Note(primary, std::move(change));
  Lease& lease = primary.leases[number];
  if (operation.kind == Kind::kAcquire) lease.owner = operation.key;
  lease.until = Clock() + operation.duration.count();
  return {.record = {.version = number}};
}

StorePage SimulatedStore::ReadPage(const Primary& primary, StoreTable table,
                                   const std::string& after, int limit) const {
  StorePage page;
  page.newest = primary.version;
  const auto& records = primary.tables[Place(table)];
  for (auto at = records.upper_bound(after); at != records.end(); ++at) {
    if (page.records.size() == static_cast<std::size_t>(limit)) {
      page.next = page.records.back().key;
      break;
    }
    page.records.push_back(at->second);
    page.records.back().expired = at->second.lease != 0 && IsOver(primary, at->second.lease);
  }
  return page;
}

// ---- Fail-over.

void SimulatedStore::Note(const Primary& primary, Change change) {
  if (&primary != &primary_) return;
  newest_.push_back(std::move(change));
  if (newest_.size() > kNewestMax) newest_.pop_front();
}

void SimulatedStore::Undo(const Change& change) {
  if (change.part != kLeases) {
    auto& table = primary_.tables[change.part];
    if (change.record) {
      table[change.key] = *change.record;
    } else {
      table.erase(change.key);
    }
  } else if (change.lease) {
    primary_.leases[change.number] = *change.lease;
  } else {
    primary_.leases.erase(change.number);
  }
}

void SimulatedStore::FailOver(std::int64_t overlap) {
  old_ = primary_;
  // Each part had come so far; one may be whole.
  std::array<std::int64_t, kStoreTables + 1> reached;
  for (std::int64_t& at : reached) {
    at = Draw(3) == 0 ? now_ : now_ - random_.Integers(0, faults_.lag + 1);
  }
  for (auto at = newest_.rbegin(); at != newest_.rend(); ++at) {
    if (at->at > reached[at->part]) Undo(*at);
  }
  newest_.clear();
  primary_.version = (FailOversOf(primary_.version) + 1) << kFailOverShift;
  for (auto& [number, client] : clients_) {
    client.old_primary_until = Draw(2) == 0 ? now_ + overlap : now_;
  }
}

}  // namespace menger::simulation
