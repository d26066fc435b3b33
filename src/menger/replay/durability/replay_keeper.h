#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/mutex.h"
#include "menger/base/thread.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/replay_folder.h"
#include "menger/replay/durability/replay_journal.h"
#include "menger/replay/replay_store.h"

namespace menger {

// What of a replay store outlives its process.
enum class Durability {
  kNone,        // Nothing.
  kCheckpoint,  // What was there when the last checkpoint began.
  kJournal,     // All but what was inserted within `loss_max`.
};

const char* ToString(Durability durability);  // "none", "checkpoint", "journal".

// Where and how a ReplayKeeper keeps a store.
struct DurabilityOptions {
  Durability kind = Durability::kNone;
  std::string folder;
  std::chrono::nanoseconds checkpoint_every = std::chrono::minutes(10);
  // A checkpoint is made earlier once so much was journaled since the last one: it bounds the time
  // that recovery takes, and the room on the disk. Where checkpoints fail, or need longer, inserts
  // wait once the journal since the newest that is whole has three times as much: so never more
  // than six times as much lies in the folder, and what is inserted within loss_max.
  std::uint64_t journal_bytes_max = std::uint64_t{4} << 30;
  // kJournal. The disk syncs four times as often; where it cannot keep up, inserts wait.
  std::chrono::nanoseconds loss_max = std::chrono::seconds(1);

  // Throws InvalidArgument that names the field.
  void Check() const;
};

// Keeps a replay store on the disk, and brings it back.
//
//     ReplayStore store(options);
//     ReplayKeeper keeper(store, {.kind = Durability::kJournal, .folder = "runs/7/replay"});
//
// The promise of kJournal: whatever ends the process or the machine, those inserts that returned
// and are lost were all taken within one span of loss_max; usually within the last quarter of it,
// and if only the process was killed, within a twentieth. Priorities, removals and counts come back
// as they were at the same moment, in all tables. Inserts wait, until their deadlines, while the
// disk is further behind, and throw Unavailable with the cause once the journal cannot be written
// (the disk is full): from then on nothing new is taken, and the folder must be opened again. Keys
// of inserts that were lost are given to others afterwards.
//
// A checkpoint that fails is tried again after a second, then two, four, up to a minute, or
// checkpoint_every if that is less. Meanwhile the journal grows; once it is as long as it may be
// (journal_bytes_max), inserts wait with an error that names the last cause, readers go on, and
// nothing is written to the journal but by a checkpoint that succeeds, which ends the wait:
// priorities and removals of that time would be lost with the process.
//
// Not kept are the steps of writers (new streams begin), nor, by the journal, the orders by which
// selectors draw: what was recovered draws other items than a store that had gone on. The two
// newest checkpoints are kept, and the journal since the older of them: damage to one of them loses
// nothing, unless it is in a pack that both share.
class ReplayKeeper {
 public:
  // Fills `store`, which outlives the keeper and which nobody has used or uses meanwhile, with what
  // the folder has. Throws as DurabilityOptions::Check and as ReplayFolder::Recover, and as files
  // do. kNone touches no folder.
  ReplayKeeper(ReplayStore& store, const DurabilityOptions& options);
  ReplayKeeper(const ReplayKeeper&) = delete;
  ReplayKeeper& operator=(const ReplayKeeper&) = delete;
  // Brings the journal to the disk, and logs an error if that fails; waits for a checkpoint that is
  // being written, and makes none. Inserts from then on are not kept.
  ~ReplayKeeper();

  // Both: what happened before the call is on the disk when they return: Sync by the journal if
  // there is one. Throw DeadlineExceeded, the error that makes it impossible (Unavailable where
  // the journal is as long as it may be, and the last checkpoint failed), or FailedPrecondition
  // where durability is none. Any thread. Errors of checkpoints are logged, too.
  void Sync(const Deadline& deadline);
  void Checkpoint(const Deadline& deadline);

  Durability kind() const { return options_.kind; }
  // Why what is inserted is not kept: the journal has failed, or the last checkpoint. Empty: all is
  // well.
  std::string trouble() const;

 private:
  // Requests are numbered; so are those that were met.
  struct Requests {
    std::uint64_t wanted = 0;
    std::uint64_t begun = 0;  // Those up to here are being met.
    std::uint64_t done = 0;
    std::optional<Error> error;  // Of the last that was done.
  };

  void Await(MutexLock& lock, Requests& requests, const Deadline& deadline, const char* what)
      MENGER_REQUIRES(mutex_);
  static void Meet(Requests& requests, const std::optional<Error>& error);
  void Run();
  std::chrono::nanoseconds UntilCheckpoint() const MENGER_REQUIRES(mutex_);
  bool CheckpointIsDue() const MENGER_REQUIRES(mutex_);
  bool CheckpointIsWanted() const MENGER_REQUIRES(mutex_);
  void Rest(MutexLock& lock) MENGER_REQUIRES(mutex_);
  std::optional<Error> BeginCheckpoint();
  void WriteCheckpoint(std::uint64_t number, std::uint64_t previous);
  void CheckpointFailed(const Error& error) MENGER_REQUIRES(mutex_);
  std::uint64_t newest() const;  // Under mutex_, for a moment.
  std::optional<Error> WriteJournal(bool sync);
  void BoundJournal();
  void GoOnBeside();
  void EndJournal();

  ReplayStore& store_;
  const DurabilityOptions options_;

  // Used by thread_ alone.
  std::optional<ReplayFolder> folder_;
  std::unique_ptr<ReplayJournal> journal_;
  std::uint64_t next_number_ = 0;
  std::optional<std::string> full_;  // Why the journal may not grow; then
  bool beside_journal_ = false;      // cut_ was made without it, and it goes on from that.
  Stopwatch since_checkpoint_;
  Stopwatch since_sync_;

  mutable Mutex mutex_;
  std::condition_variable wanted_;  // By thread_: a request, a checkpoint that was written, stop_.
  std::condition_variable done_;
  Requests syncs_ MENGER_GUARDED_BY(mutex_);
  Requests checkpoints_ MENGER_GUARDED_BY(mutex_);
  std::uint64_t newest_ MENGER_GUARDED_BY(mutex_) = 0;  // Checkpoint on the disk.
  bool is_writing_ MENGER_GUARDED_BY(mutex_) = false;   // Another one.
  int failures_ MENGER_GUARDED_BY(mutex_) = 0;          // Since it;
  std::string failure_ MENGER_GUARDED_BY(mutex_);       // the last of them,
  Stopwatch since_failure_ MENGER_GUARDED_BY(mutex_);   // and when that was.
  bool stop_ MENGER_GUARDED_BY(mutex_) = false;

  std::unique_ptr<ReplayCheckpoint> cut_;  // Of writer_ while it runs, of thread_ otherwise.
  Thread writer_;                          // Of a checkpoint. Begun and joined by thread_.
  Thread thread_;
};

}  // namespace menger
