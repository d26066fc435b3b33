#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/control/control_store.h"

namespace menger::simulation {

// How bad a store is, and the way to it.
struct StoreFaults {
  std::int64_t delay = 0;  // One way, at the most; mostly much less.
  int lost_percent = 0;    // Of operations, of answers, and of hints.
  int mute_percent = 0;    // Of completions that never come.
  std::int64_t lag = 0;    // A fail-over forgets changes that are no older.
};

// A control store that does what the contract of one allows, in one thread and from one seed: it is
// slow, what is asked of different keys overtakes one another, operations, answers and hints are
// lost, it fails over to a replica that lacks the newest changes of each of its parts, and some of
// its clients go on with the old primary for a while. Deadlines are not looked at: a completion
// comes when `patience` is over at the latest.
class SimulatedStore {
 public:
  // `rate`: of its clock.
  SimulatedStore(Random& random, std::int64_t patience, double rate);
  ~SimulatedStore();

  void set_faults(const StoreFaults& faults) { faults_ = faults; }

  // The store as one client reaches it. It outlives the client, whose completions and hints do not
  // come any more once he is gone.
  std::unique_ptr<ControlStore> Connect(int client);
  void Cut(int client, bool cut) { clients_[client].cut = cut; }

  // Until then it writes nothing and gives no lease, but renews them: its disk is full.
  void Refuse(std::int64_t until) { refuses_until_ = until; }

  // Some clients, for so long, go on with the old primary.
  void FailOver(std::int64_t overlap);

  // Time passes, never backwards: what is due by then happens, then.
  void Advance(std::int64_t now);
  std::int64_t next_at() const;  // That something is due; the greatest number if nothing is.

  std::int64_t now() const { return now_; }

  // For those who check.
  bool Has(StoreTable table, const std::string& key) const;  // And its lease is not over.
  std::size_t size(StoreTable table) const { return primary_.tables[Place(table)].size(); }

 private:
  class Connection;
  struct Watching;
  struct Batch;
  struct Lease {
    std::string owner;
    std::int64_t until = 0;
  };
  struct Primary {
    std::array<std::map<std::string, StoreRecord>, kStoreTables> tables;
    std::map<LeaseEpoch, Lease> leases;
    StoreVersion version = 0;
  };
  // What a replica may lack: how a key or a lease was before.
  struct Change {
    std::int64_t at = 0;
    std::size_t part = 0;  // Of the store: a table, or kLeases.
    std::string key;
    std::optional<StoreRecord> record;
    LeaseEpoch number = 0;
    std::optional<Lease> lease;
  };
  struct Client {
    bool cut = false;
    std::int64_t old_primary_until = 0;
    std::map<std::string, std::int64_t> last_at;  // Of operations on a key: they stay in order.
  };
  static constexpr std::size_t kLeases = kStoreTables;

  static std::size_t Place(StoreTable table) { return static_cast<std::size_t>(table); }
  int Draw(int bound) { return static_cast<int>(random_.Integers(0, bound)); }
  bool Lost(int client) {
    return clients_[client].cut || (faults_.lost_percent > 0 && Draw(100) < faults_.lost_percent);
  }
  std::int64_t Delay();
  std::int64_t Clock() const;
  void At(std::int64_t time, std::function<void()> happen) {
    due_.emplace(time, std::move(happen));
  }

  void Submit(const Connection& by, std::vector<StoreOperation> operations,
              ControlStore::Completion completion);
  void Scan(const Connection& by, StoreTable table, const std::string& after, int limit,
            const ControlStore::PageCompletion& completion);
  void Do(const std::shared_ptr<Batch>& batch, std::size_t index);
  void Hint(StoreTable table);
  Primary& PrimaryOf(int client);
  StoreResult Apply(Primary& primary, const StoreOperation& operation);
  StoreResult ChangeKey(Primary& primary, const StoreOperation& operation);
  StoreResult ChangeLease(Primary& primary, const StoreOperation& operation);
  bool IsOver(const Primary& primary, LeaseEpoch lease) const;
  StorePage ReadPage(const Primary& primary, StoreTable table, const std::string& after,
                     int limit) const;
  void Note(const Primary& primary, Change change);
  void Undo(const Change& change);

  Random& random_;
  const std::int64_t patience_;
  const double rate_;
  StoreFaults faults_;
  std::int64_t now_ = 0;
  std::multimap<std::int64_t, std::function<void()>> due_;  // Of equal times the first first.
  std::map<int, Client> clients_;
  std::vector<Watching*> watchings_;
  std::int64_t refuses_until_ = 0;
  Primary primary_;
  Primary old_;
  std::deque<Change> newest_;
};

}  // namespace menger::simulation
