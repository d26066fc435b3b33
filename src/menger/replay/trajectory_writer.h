#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/base/clock.h"
#include "menger/replay/chunks/chunk_compression.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/chunks/item.h"
#include "menger/replay/table.h"

namespace menger {

// Consecutive steps of one writer's stream, by their numbers.
struct StepRange {
  std::int64_t first = 0;
  int count = 0;
};

// How a stream is cut into chunks, and how far items reach back.
struct WriterOptions {
  int chunk_steps = 64;     // Rows of a chunk. More: fewer chunks; fewer: memory is freed sooner.
  int history = 64;         // Items may reach back so many steps, the last one included.
  int pending_max = 65536;  // Items that wait for Flush.
  // Of the chunks that it holds, so that a stream whose items wait cannot fill the store. 0: a
  // sixteenth of the store, but twice what it needs where it is flushed with each chunk, at least.
  std::size_t bytes_max = 0;
  // How long Append waits where the store is full: for samples, a checkpoint or other writers.
  std::chrono::nanoseconds room_wait_max = std::chrono::seconds(10);
  Compression compression = Compression::kNone;
  // Not 0: its items are those of this stream (Table::Insert), and have the sequence numbers that
  // Add is given.
  std::uint64_t stream = 0;

  // Throws InvalidArgument that names the field: 1 to kChunkRowsMax for the first two, at least 1
  // for pending_max; no negative time.
  void Check() const;
};

// What a writer of such steps may hold, beside the tables, if it is flushed at least every
// `flush_steps` steps.
std::size_t WriterBytesMax(const Spec& steps, const WriterOptions& options, int flush_steps);

// Where a stream of steps stands: all that must outlive the process for its writer to go on, beside
// the chunks themselves. Step s lies in row s % chunk_steps of chunk s / chunk_steps, counted from
// the stream's first.
struct WriterPosition {
  std::int64_t steps = 0;               // Appended.
  std::int64_t first_held = 0;          // Number of the chunk held[0].
  std::vector<ChunkId> held;            // The last one is open, unless it is full.
  std::vector<std::uint64_t> versions;  // Of step s: [s % history], for the last `history` steps.
};

// Writes one stream of steps (an environment's), each once, and items that refer to them.
//
// It holds the chunks that its history lies in, and those of items that were not flushed: between
// calls of Flush that is everything since the first of them, up to bytes_max. So a store needs room
// for WriterBytesMax a writer, beside what tables hold.
//
// Chunks are filled as they are; Flush then compresses those that have become full, where options
// and rule (chunk_compression.h) say so, and lets its items in all tables name the compressed one.
// A chunk that left the history before a Flush saw it full, or that finds no room, stays as it is.
//
// One thread at a time. Append and Add lock no table, and only a full store makes Append wait;
// Flush inserts. An item that was not flushed when the writer goes is lost.
class TrajectoryWriter {
 public:
  // `chunks` outlives the writer. Throws InvalidArgument as WriterOptions::Check, and where
  // bytes_max is less than WriterBytesMax of a flush a step.
  TrajectoryWriter(const Spec& steps, const WriterOptions& options, ChunkStore& chunks);
  ~TrajectoryWriter();

  // Copies one step: an address a leaf, in the order of `steps`. Returns its number, from 0 on.
  // Throws Unavailable if the store has no room for another chunk within room_wait_max, or this
  // writer holds bytes_max already; nothing was appended then.
  std::int64_t Append(std::span<const std::byte* const> leaves, std::uint64_t version);
  // The same, but waits for room until the deadline instead.
  std::int64_t Append(std::span<const std::byte* const> leaves, std::uint64_t version,
                      const Deadline& room);

  // An item of `table`, which outlives the writer, a range a column, to be inserted by Flush; its
  // priority as ItemDraft's.
  // Throws, with nothing added, InvalidArgument for a range that is empty, reaches back beyond the
  // history or ahead of what was appended, or has more rows than the column; for steps that are not
  // as the table has them; for a priority that is negative or not finite; for more bytes of chunks
  // than the table may hold. Unavailable if pending_max items wait already.
  void Add(Table& table, std::optional<double> priority, std::span<const StepRange> columns,
           std::uint64_t sequence = 0);

  // Inserts what was added: table by table, in the order in which each was first named, and in the
  // order of Add for each. Throws as Table::Insert; what was not taken is kept for another Flush.
  // Then compresses what is full.
  void Flush(const Deadline& deadline);

  std::int64_t steps() const;  // Appended so far.
  int pending() const;         // Items that wait for Flush.

 private:
  friend class ReplayCheckpoint;
  struct State;

  std::int64_t AppendWithin(std::span<const std::byte* const> leaves, std::uint64_t version,
                            const Deadline* room);
  const ChunkLayout& layout() const;
  const WriterPosition& position() const;
  // Into a writer that has appended nothing; takes over a reference to each chunk held.
  void Restore(WriterPosition position);
  // An item in a table that names a chunk held, which may still be compressed.
  void Track(Table& table, const ItemKey& key, std::span<const Slice> slices);

  const std::unique_ptr<State> state_;
};

}  // namespace menger
