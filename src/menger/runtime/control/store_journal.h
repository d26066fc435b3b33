#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "menger/base/error.h"
#include "menger/runtime/control/control_store.h"

namespace menger {

// What one change of a store has left: absolute, so that changes may be applied again.
struct StoreChange {
  enum class Kind : std::uint8_t {
    kPut,
    kDelete,
    kVersion,  // No key: only that the version was given away, as a lease's epoch.
  };
  Kind kind = Kind::kPut;
  StoreTable table = StoreTable::kNodes;
  StoreVersion version = 0;
  LeaseEpoch lease = 0;
  std::string_view key;
  std::string_view value;
};

// Where an EmbeddedStore's changes are kept, that they outlive its process.
class StoreJournal {
 public:
  using Visitor = std::function<void(const StoreChange& change)>;

  // How far a walk over all that is alive has come: at `key` of `table` of `shard`.
  struct Cursor {
    int shard = 0;
    int table = 0;
    std::string key;
    bool finished = false;
  };
  // Visits the next part of what is alive, holding locks meanwhile, and moves the cursor. The
  // versions that are visited or were appended are at most that which `version` returns.
  struct Snapshot {
    std::function<void(Cursor& cursor, const Visitor& visit)> next;
    std::function<StoreVersion()> version;
  };

  virtual ~StoreJournal() = default;  // Keeps all that was appended, and calls the completions.

  // Why the store may do nothing now: it would not be safe, or is another's meanwhile.
  virtual std::optional<Error> WhyClosed() const { return std::nullopt; }
  // More waits to be kept than is good: change nothing for the moment.
  virtual bool full() const = 0;

  // Call it in the order in which the changes of one key were made.
  virtual void Append(const StoreChange& change) = 0;

  // Calls it, on the journal's thread, once all that was appended before is safe or has failed.
  using Completion = std::function<void(const std::optional<Error>& error)>;
  virtual void WhenSafe(Completion completion) = 0;
};

// Opens a journal: replays what it holds, in an order in which the store may apply it, and returns
// it. `snapshot` may be used from then on, on any thread, until the journal's end.
using OpenStoreJournal = std::function<std::unique_ptr<StoreJournal>(
    const StoreJournal::Visitor& replay, StoreJournal::Snapshot snapshot)>;

}  // namespace menger
