#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
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
// After a fail-over the store knows no lease, and may have forgotten names. So a record of before
// counts as long as its owner is a member, and each owner looks now and then whether his names are
// still his: he writes again what is missing. Of two who have one the life of the higher epoch
// keeps it.
//
// A name whose holder is gone is not free while the control store keeps his actor (kept_actor.h):
// who asks waits until another keeper has it.
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
    // An actor of this process has lost its name to another's.
    std::function<void(const NamedActor& actor)> on_lost;
    // Of this process.
    std::function<LeaseEpoch()> lease;
    // Whether that one is a member, as far as this process knows.
    std::function<bool(const NodeLife& life)> is_member;
    // Whether this process has met that one. May be empty: it has.
    std::function<bool(const NodeLife& life)> has_met;
    // Whether there is a stream to that one, which is opened as soon as it was met: of one whose
    // lease lives on none can be. May be empty: there is.
    std::function<bool(const NodeLife& life)> is_reached;
    // What stands for the keeper, which is started if there is none; nothing while that takes.
    // Throws Unavailable or DeadlineExceeded where it is to be asked again, else why there can be
    // none. Empty: this process owns its detached actors itself.
    std::function<std::optional<ForeignName>()> find_keeper;
  };

  struct Options {
    // Whether its names are still its own this process looks so often.
    std::chrono::nanoseconds look_every = std::chrono::seconds(3);
    std::chrono::nanoseconds try_max = std::chrono::seconds(3);  // Each of so many.
    int tries = 3;
    // Until there is a keeper, which has the program's files brought to it.
    std::chrono::nanoseconds keeper_max = std::chrono::seconds(320);
    // Until an actor whose owner is gone is made again by another (kept_actors.h).
    std::chrono::nanoseconds successor_max = std::chrono::seconds(60);
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
    std::uint64_t asked MENGER_GUARDED_BY(mutex) = 0;           // The batch that is under way,
    std::vector<StoreResult> results MENGER_GUARDED_BY(mutex);  // and what came of it.
  };

  void Run();
  bool AwaitWork();                    // False: it is to stop.
  std::optional<NameQuestion> Next();  // Nothing: it is time to look.
  void Answer(const NameQuestion& question);
  // Nothing: nobody can say yet.
  std::optional<NameAnswer> HolderOf(const NameQuestion& question);
  bool IsOpen(const StoreRecord& record, const NameQuestion& question);
  bool IsAwaited(const StoreRecord& record, const NameQuestion& question);
  void AskAgain(const NameQuestion& question);
  // Nothing while it starts: it is asked for again after what others have asked.
  std::optional<NameAnswer> FindKeeper();
  bool AwaitMet(const ForeignName& name);
  bool Pause(std::chrono::nanoseconds pause);  // False: it is to stop.
  std::optional<NameAnswer> Claim(const NameQuestion& question);
  StoreResult Take(const std::string& name, const NamedActor& actor, StoreVersion expected);
  void Release(const NameQuestion& question);
  void ReleaseSurely(const NameQuestion& question);
  void Look();
  void LookAt(const std::string& name, const NamedActor& own, const StoreRecord& record);
  // Whose the name is by that record, if it counts.
  std::optional<NamedActor> HolderIn(const StoreRecord& record) const;
  StoreOperation Taking(const std::string& name, const NamedActor& actor,
                        StoreVersion expected) const;
  StoreRecord LookUp(const std::string& name);
  // Throws Unavailable where the store does not answer.
  StoreResult Do(StoreOperation operation);
  std::vector<StoreResult> DoAll(const std::vector<StoreOperation>& batch);

  ControlStore& store_;
  const Hooks hooks_;
  const Options options_;
  // Of the thread.
  std::optional<Deadline> keeper_deadline_;  // One is asked for.
  std::map<std::string, NamedActor> own_;    // Names that this process has.
  std::map<std::string, Deadline> awaited_;  // Whose holders are to be succeeded,
  std::map<std::string, Deadline> open_;     // and of which it is not known whether they count.
  Deadline next_look_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  Thread thread_;
};

// Those that somebody has, of whom `is_member` says whether he is there, or will have again, since
// the actor outlives its owner. Throws what the store does not answer with.
std::vector<std::string> NamesIn(ControlStore& store,
                                 const std::function<bool(const NodeLife& life)>& is_member,
                                 const Deadline& deadline);

// That no node's name can be.
std::string KeyOfActor(std::string_view name);
std::string Encode(const NamedActor& actor);
// Nothing, if `value` is none.
std::optional<NamedActor> DecodeNamedActor(std::string_view value);

}  // namespace menger
