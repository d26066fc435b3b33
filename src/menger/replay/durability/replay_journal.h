#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/frame_file.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/journal_group.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/table_changes.h"

namespace menger {

// "<folder>/journal-<number>.bin": what happened after the cut of checkpoint `number`.
std::string JournalPath(const std::string& folder, std::uint64_t number);

// Writes down what changes in the tables of a store, so that it can be brought back beside the last
// checkpoint.
//
// Tables only note which slots have changed. Each call of Write takes that at one moment of all
// tables as a group: the items as they are then, and those rows of their chunks that were not yet
// written. So an item that came and went between two calls costs nothing, and an item that changed
// ten times is written once. Not kept are the steps of writers, the orders of selectors, and how
// often an item was sampled where no times_sampled_max needs it.
//
// Inserts wait in their tables, until their deadlines, once there is something older than
// `loss_max` that has not been synced. After an error nothing is written any more, and inserts
// throw Unavailable with the error's text.
//
// One thread uses it, others the tables meanwhile. Memory: the changes of one group, 24 bytes a
// chunk and a byte an item; chunks that tables drop while a group is written stay until then.
class ReplayJournal {
 public:
  // Goes on from `base`, a checkpoint of the store's present state that is on the disk as number
  // `number`; nobody has used the store since. The store outlives the journal.
  ReplayJournal(ReplayStore& store, std::string folder, std::chrono::nanoseconds loss_max,
                const ReplayCheckpoint& base, std::uint64_t number);
  ReplayJournal(const ReplayJournal&) = delete;
  ReplayJournal& operator=(const ReplayJournal&) = delete;
  ~ReplayJournal();  // Writes nothing: see End. Tables no longer wait.

  // All throw as files do (a full disk is Unavailable), and FailedPrecondition after that.

  // When it returns, what changed before the call outlives this process.
  void Write();
  // What was written outlives the machine's power.
  void Sync();
  // As Write, then ends the segment and begins the next, which goes on from the checkpoint
  // returned: its cut is the same moment. Synced.
  std::unique_ptr<ReplayCheckpoint> Cut(std::uint64_t number);
  // As Write and Sync; the last call.
  void End();

  // Inserts wait from here on, with `why` in their errors, until GoOn or GoOnFrom. What was taken
  // before is in the next group.
  void Hold(std::string why);
  void GoOn();
  // Ends the segment as it is, and begins that of `base`, which was cut after the last call of
  // Write. Synced.
  void GoOnFrom(const ReplayCheckpoint& base, std::uint64_t number);

  bool failed() const { return gate_.failed(); }
  const JournalGate& gate() const { return gate_; }
  std::uint64_t segment_bytes() const { return segment_->bytes(); }
  // Of all segments from that of checkpoint `number` on; those before are forgotten.
  std::uint64_t BytesFrom(std::uint64_t number);

 private:
  // Of a chunk, by its ChunkId, which is used again by others.
  struct Known {
    ChunkIdentity identity;
    std::uint32_t rows_written = 0;
    std::uint32_t place = 0;  // In the group's chunks,
    std::uint64_t group = 0;  // of the group of this number.
  };

  void Collect();
  void HoldChunks(TableDelta& delta);
  void WriteGroup();
  void WriteRows();
  const ChunkLayout& LayoutOf(const JournalChunk& chunk);
  void Begin(const ReplayCheckpoint& base, std::uint64_t number);
  void SyncAndOpen();
  void Guarded(const std::function<void()>& function);

  ReplayStore& store_;
  const std::string folder_;
  const std::chrono::nanoseconds loss_max_;
  std::map<std::uint64_t, Spec> steps_;  // By StepsId.
  ChunkLayouts layouts_;
  JournalGate gate_;
  std::vector<TableChanges> changes_;  // One a table, guarded by its mutex.

  std::vector<Known> known_;
  JournalGroup group_;
  HeldChunks held_;  // Of group_, in the order of its chunks.
  std::uint64_t group_number_ = 0;
  std::int64_t moment_ = 0;          // Of group_, in MonotonicNanoseconds.
  std::vector<TableCounts> counts_;  // As last written.
  std::vector<std::byte> payload_;
  std::optional<FrameFileWriter> segment_;
  std::uint64_t segment_number_ = 0;
  std::map<std::uint64_t, std::uint64_t> ended_bytes_;  // Of segments before, by their numbers.
};

}  // namespace menger
