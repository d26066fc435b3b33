#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/runtime/control/store_journal.h"
#include "menger/runtime/redis/redis_connection.h"

namespace menger {

// What somebody has put there, for a message: in quotes, escaped, and not all of it if it is long.
std::string QuoteBytes(std::string_view bytes);

// One key of a table as it is in Redis.
struct RedisChange {
  StoreTable table = StoreTable::kNodes;
  std::string key;
  std::string value;  // "VERSION LEASE VALUE"; "": the key is gone.

  explicit RedisChange(const StoreChange& change);
  std::size_t bytes() const { return key.size() + value.size(); }
};

// Who has the tables: one head of a cluster at a time.
struct RedisClaim {
  std::string head;                       // Names it to people, too; no other's is the same.
  std::chrono::milliseconds time_max{0};  // It is free when nothing was written for so long.
  std::uint64_t fail_overs = 0;           // Grows with each head.
};

// A cluster's control state in a Redis: a hash for each table ("menger:nodes", "menger:names"),
// one that says whose they are ("menger:about": head, fail-overs, number of the last change), and
// a key that is there while that head is heard of ("menger:head").
//
// Every change is a script, which first sees whether the tables are still this head's, and whether
// they have all of its changes before: a primary that has lost some says so.
//
// All throw as RedisConnection::Ask. One thread at a time.
class RedisTables {
 public:
  // Connects, and teaches the scripts.
  RedisTables(const RedisAddress& address, RedisPatience patience);

  // The tables are this head's from now on; or who has them, and for how long at the most. With
  // replicas it waits a moment until one of them knows so. Throws FailedPrecondition for tables of
  // another version of this program.
  struct Holder {
    std::string head;
    std::chrono::milliseconds time{0};  // Less than none: for ever, as no head writes it.
  };
  std::optional<Holder> Claim(RedisClaim& claim);

  // Throws DataLoss for what is no record.
  void Visit(const StoreJournal::Visitor& visit);

  enum class Outcome : std::uint8_t {
    kDone,
    kBehind,  // They lack changes before: Replace them.
    kOther,   // They are another head's, see Lost.
  };
  // The changes after number `before`, which then is the next; none: it is heard of. What was done
  // already changes nothing.
  Outcome Write(const RedisClaim& claim, std::uint64_t before,
                std::span<const RedisChange> changes);

  // What they shall be instead: Stage all of it, then Replace by it. False: another head has taken
  // them since.
  void BeginStage();
  void Stage(std::span<const RedisChange> changes);
  bool Replace(const RedisClaim& claim, std::uint64_t number);

  // Whoever comes next need not wait.
  void Release(const RedisClaim& claim);

  const std::string& server() const { return connection_.server(); }

 private:
  RedisReply Run(std::string_view script, const std::vector<std::string>& keys,
                 const std::vector<std::string_view>& arguments);
  RedisReply AskFor(const std::vector<std::string>& keys,
                    const std::vector<std::string_view>& words);
  void AwaitReplica();

  RedisConnection connection_;
  std::map<std::string_view, std::string> hashes_;  // Of scripts, by which they are called.
};

}  // namespace menger
