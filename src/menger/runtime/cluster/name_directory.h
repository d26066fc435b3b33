#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/mutex.h"
#include "menger/base/thread.h"
#include "menger/runtime/control/control_store.h"
#include "menger/runtime/net/handshake.h"
#include "menger/runtime/node/shared_names.h"

namespace menger {

// Who has the names that the programs of a cluster share (node/shared_names.h), as its control
// store has them in StoreTable::kNames, under KeyOfActor(name). A record belongs to the lease of
// who has claimed the name: it is worth nothing once that is over.
//
// The keeper of this process's program, which owns its detached actors, is found by a name, too
// (Client::kKeeperName).
//
// Whoever is found is known here: calls can be made of his actors at once. One question after the
// other, in their order, on a thread of its own: whoever asks may hold a lock. What the store does
// not say in time is tried again, for a claim may have been made.
class NameDirectory {
 public:
  // By the thread, without a lock.
  struct Hooks {
    std::function<void(const NameQuestion& question, const NameAnswer& answer)> on_answer;
    // Whether this process has met that one. May be empty: it has.
    std::function<bool(const NodeLife& life)> has_met;
    // What stands for the keeper, which is started if there is none; nothing while that takes.
    // Throws Unavailable or DeadlineExceeded where it is to be asked again, else why there can be
    // none. Empty: this process owns its detached actors itself.
    std::function<std::optional<ForeignName>()> find_keeper;
  };

  struct Options {
    LeaseEpoch lease = 0;                                        // Of this process.
    std::chrono::nanoseconds try_max = std::chrono::seconds(3);  // Each of so many.
    int tries = 3;
    // Until there is a keeper, which has the program's files brought to it.
    std::chrono::nanoseconds keeper_max = std::chrono::seconds(320);
  };

  // `store` outlives this.
  NameDirectory(ControlStore& store, Hooks hooks, Options options);
  ~NameDirectory();  // Stops.
  NameDirectory(const NameDirectory&) = delete;
  NameDirectory& operator=(const NameDirectory&) = delete;

  // Any thread; returns at once, and calls nothing.
  void Ask(NameQuestion question);
  // The store is used no longer: what was asked and not answered never is.
  void Stop();

 private:
  // Shared with completions of the store, which may come when this is gone.
  struct Shared {
    Mutex mutex;
    std::condition_variable changed;
    std::deque<NameQuestion> questions MENGER_GUARDED_BY(mutex);
    bool stopping MENGER_GUARDED_BY(mutex) = false;
    std::uint64_t asked MENGER_GUARDED_BY(mutex) = 0;            // The operation that is under way,
    std::optional<StoreResult> result MENGER_GUARDED_BY(mutex);  // and what came of it.
  };

  void Run();
  std::optional<NameQuestion> Next();  // Nothing: it is to stop.
  void Answer(const NameQuestion& question);
  std::optional<NamedActor> HolderOf(const NameQuestion& question);
  // Nothing while it starts: it is asked for again after what others have asked.
  std::optional<NameAnswer> FindKeeper();
  bool AwaitMet(const ForeignName& name);
  bool Pause();  // A little; false: it is to stop.
  std::optional<NamedActor> Claim(const NameQuestion& question);
  void Release(const NameQuestion& question);
  void ReleaseSurely(const NameQuestion& question);
  // Whose the name is, by a record that counts, and of which version the record is.
  std::pair<std::optional<NamedActor>, StoreVersion> LookUp(const std::string& name);
  // Throws Unavailable where the store does not answer.
  StoreResult Do(const StoreOperation& operation);

  ControlStore& store_;
  const Hooks hooks_;
  const Options options_;
  std::optional<Deadline> keeper_deadline_;  // Of the thread: one is asked for.
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  Thread thread_;
};

// Those that somebody has. Throws what the store does not answer with.
std::vector<std::string> NamesIn(ControlStore& store, const Deadline& deadline);

// That no node's name can be.
std::string KeyOfActor(std::string_view name);
std::string Encode(const NamedActor& actor);
// Nothing, if `value` is none.
std::optional<NamedActor> DecodeNamedActor(std::string_view value);

}  // namespace menger
