#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/durability/chunk_pack.h"
#include "menger/replay/durability/journal_recovery.h"
#include "menger/replay/durability/replay_content.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/trajectory_writer.h"

namespace menger {

// A replay store at one moment, to be written to disk while everybody goes on.
//
//     ReplayCheckpoint(store, writers).Write("checkpoints/2/replay", "checkpoints/1/replay");
//     ...
//     ReplayCheckpoint::Load("checkpoints/2/replay", new_store, new_writers);
//
// The constructor is the cut: it locks all tables in the order of their store, copies what they
// know of their items, selectors, limiters and random streams, and holds the chunks that they need,
// whose rows are written later from where they lie. All else waits for no longer than that copy
// (pause_seconds). Memory: about 50 bytes an item and 10 a column; chunks that tables drop
// meanwhile stay until the checkpoint goes, so the store needs room for them.
//
// A store and writers that were loaded go on bit for bit as those that were cut: the same keys,
// draws, evictions and counts. On disk:
//
//     metadata/        an archive: tables, writers, which chunks there are
//     pack-<n>.bin     rows of chunks
//
// The folder appears whole or not at all (it grows as `<folder>.partial`), and every byte that is
// used is checked when it is read.
class ReplayCheckpoint {
 public:
  // `writers` goes on with the store in Load: nobody uses them during the call. Other writers may
  // go on. Outlived by the store. `at_cut` is called while all tables are locked, and does not
  // throw. Throws FailedPrecondition if items of one of them wait for Flush.
  explicit ReplayCheckpoint(const ReplayStore& store,
                            std::span<TrajectoryWriter* const> writers = {},
                            const std::function<void()>& at_cut = {});
  ReplayCheckpoint(const ReplayCheckpoint&) = delete;
  ReplayCheckpoint& operator=(const ReplayCheckpoint&) = delete;

  double pause_seconds() const { return pause_seconds_; }  // For which tables were locked.

  // The chunks that it has; their rows are at least those that items named at the cut.
  std::span<const ChunkEntry> chunks() const { return chunks_; }

  // What Write wrote.
  struct Written {
    std::uint64_t chunks = 0;  // Of the checkpoint.
    std::uint64_t bytes = 0;   // Of their rows.
    std::uint64_t chunks_new = 0;
    std::uint64_t bytes_new = 0;  // Of the new packs: the rest is shared with `previous`.
  };

  // Makes `folder`, which must not be there. Chunks that the checkpoint in `previous` has already
  // are not written again: their packs are shared as hard links, or copied where the file system
  // has none; a pack of which less than half is still needed is left behind. A `previous` that is
  // empty, missing or damaged means that everything is written; it must be of this store, or of
  // what this one was loaded from. When it returns, all is on the disk. Throws FailedPrecondition
  // or Unavailable that name the path; nothing is left then. Any thread, also while the store is in
  // use.
  Written Write(const std::string& folder, const std::string& previous = "") const;

  // Fills a store that nobody has used, and writers that have appended nothing, given in the order
  // of the cut (or none, if no stream goes on). The store has tables of the same names and items;
  // their other options may differ: what crosses their bounds is evicted by their remover, and a
  // warning says of which table how many items, and the bounds.
  // `journal` are segments that go on from this checkpoint, one after the other: what they tell of
  // tables is loaded too, but for the orders of selectors: draws are then others.
  //
  // Throws, with nothing changed: NotFound if there is no such folder; DataLoss, naming the file,
  // for files that are altered, truncated or missing; FailedPrecondition that names the difference
  // for other tables, items or writers; Unavailable if the chunks do not fit into the store.
  static void Load(const std::string& folder, ReplayStore& store,
                   std::span<TrajectoryWriter* const> writers = {},
                   std::span<const JournalFile> journal = {});

  // Reads everything. Throws as Load for files that are altered, truncated or missing.
  static void Verify(const std::string& folder);

 private:
  class Loader;

  const ReplayStore& store_;
  ReplayContent content_;
  std::map<std::uint64_t, Spec> steps_;  // By StepsId.
  HeldChunks held_;                      // A chunk may come again.
  std::vector<ChunkEntry> chunks_;       // Each once; where its rows are is not yet known.
  double pause_seconds_ = 0;
};

}  // namespace menger
