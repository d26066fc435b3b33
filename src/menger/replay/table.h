#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/random.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/chunks/item.h"
#include "menger/replay/selectors/rate_limiter.h"
#include "menger/replay/selectors/selector.h"

namespace menger {

// What a table is: of which items, how they are chosen, and its bounds.
struct TableOptions {
  std::string name;
  ItemSpec items;
  SelectorOptions sampler;
  SelectorOptions remover{.kind = SelectorKind::kFifo};
  RateLimiterOptions rate_limiter;
  std::int64_t items_max = 1'000'000;
  std::size_t bytes_max = std::size_t{1} << 30;  // Of the chunks that its items need.
  int times_sampled_max = 0;                     // Items go when sampled so often; 0: never.
  std::uint64_t seed = 0;
  std::uint32_t shard = 0;  // In the table's keys.

  // Whether every item stays until it was sampled times_sampled_max times, as in a queue: the rate
  // limiter lets each be sampled as often as that, and bounds how many wait for it. Such a table
  // makes inserts wait where it is full, and evicts nothing.
  bool KeepsUnsampled() const;

  // Throws InvalidArgument that names the table and the field.
  void Check() const;

  // What the table takes for each item beside chunks: the item, a slice a column, and what the
  // selectors have of it, whose arrays may have doubled just now; 60 to 250 bytes. Items that reach
  // across the ends of chunks take 8 bytes more for each; a chunk takes 64, and 4 a table.
  std::size_t ItemBytes() const;
  // As many items as there may be, and bytes_max: what the table may take in all.
  double BytesNeeded() const;
};

// An item on its way into a table: for each column of the ItemSpec its slices, in order. The caller
// holds references to all chunks until Insert returns.
struct ItemDraft {
  std::optional<double> priority;  // None: the highest that the table was ever given, or 1.
  VersionRange versions;
  std::vector<Slice> slices;                // Of all columns, one after the other.
  std::vector<std::uint16_t> slice_counts;  // By column.
  std::uint64_t sequence = 0;               // In the stream that Insert names, if it names one.
};

// The most items of one sample.
inline constexpr int kSampleItemsMax = 1 << 20;

// What a reader asks for.
struct SampleRequest {
  int count = 1;       // 1 to kSampleItemsMax.
  bool whole = false;  // Nothing is drawn before the rate limiter allows all of them at once.
  Deadline deadline;
  // Items whose oldest version is more than `staleness_max` behind `version` (VersionDistance) are
  // never given out: an item that is found to be too old is removed, and counted.
  std::uint64_t version = 0;
  std::optional<std::uint64_t> staleness_max;
};

// Keys come from a sample; the priority is as ItemDraft's.
struct PriorityUpdate {
  ItemKey key;
  double priority = 0;
};

// How many of the named items there were; the others had been removed before.
struct Found {
  std::int64_t found = 0;
  std::int64_t stale = 0;
};

// What a table holds and has seen, at one moment.
struct TableInfo {
  std::int64_t items = 0;
  std::size_t bytes = 0;  // Of the chunks that they need.
  // Beside: ItemBytes of the most items that there were at once, and what is known of streams.
  std::size_t metadata_bytes = 0;
  std::int64_t inserts = 0;
  std::int64_t samples = 0;
  std::int64_t deletes = 0;        // Of whatever cause:
  std::int64_t evicted = 0;        // to make room,
  std::int64_t dropped_stale = 0;  // older than a reader's bound,
  std::int64_t stale_keys = 0;     // Updates and deletions of items that were gone.
  std::int64_t repeated = 0;       // Items of streams that were passed over: they had been taken.
  // Items that were sampled at least once, counted in this process, since the last Reset.
  std::int64_t items_sampled = 0;
  int inserts_waiting = 0;  // Calls.
  int samples_waiting = 0;
};

class Sample;
class TableChanges;
struct TableContent;
struct TableDelta;

// Items by key: what may be sampled, how, how often, and what goes when there is no more room.
//
// All calls may come from any thread. Each takes the table's mutex for a short while: selectors and
// counts are under it, copies of payload never are, and a long call (a million draws, items to
// remove, priorities) lets it go every few milliseconds. A call that the rate limiter blocks waits
// without the mutex, until its deadline; DeadlineExceeded then names the limiter, its counts and
// what it waits for. Who inserts and who samples stand in a queue each: nobody overtakes who waits.
// Lock order: tables in the order of their store, then the chunk store.
class Table {
 public:
  // `chunks` outlives the table, the table all samples of it. Throws InvalidArgument as
  // TableOptions::Check.
  Table(const TableOptions& options, ChunkStore& chunks);
  ~Table();

  const TableOptions& options() const;

  // Takes the drafts in order and appends their keys to `keys` if given. Where an item would cross
  // a bound, the remover chooses among the older ones until it fits; if it may choose none (a
  // prioritised remover, all priorities 0; TableOptions::KeepsUnsampled), the call waits, as it
  // does for a journal that has fallen behind (ReplayKeeper). Throws DeadlineExceeded with `drafts`
  // taken in part: the number of keys says how far; Cancelled after Close, likewise, and
  // Unavailable that says why once a journal has failed. Everything else is checked before the
  // first is taken: InvalidArgument for slices outside their chunk, of chunks with other steps, for
  // too many or no rows in a column, a priority that is negative or not finite, versions out of
  // order, an item whose chunks alone are larger than bytes_max.
  //
  // A `stream` that is not 0 is a writer's that may send items again, under the sequence numbers
  // that they had: from 1 on, higher from draft to draft (InvalidArgument), with gaps if it likes,
  // as where other tables take some of its items. Drafts up to LastOf(stream) count as taken, with
  // number 0 in their keys, and change nothing; where those come first, they wait for nobody. So an
  // item that is sent any number of times, by several calls at once too, is taken once. Journals
  // and checkpoints keep that with the items, of the same moment: where a journal lost the last
  // items with a process, they may be sent again, and no others are taken twice.
  void Insert(std::span<const ItemDraft> drafts, const Deadline& deadline,
              std::vector<ItemKey>* keys = nullptr, std::uint64_t stream = 0);

  // As Insert, without a wait: returns how many it took or passed over; where another call waits,
  // none but those that come first and had been taken.
  std::int64_t TryInsert(std::span<const ItemDraft> drafts, std::vector<ItemKey>* keys = nullptr,
                         std::uint64_t stream = 0);

  // The last sequence number of the stream that was taken; 0: the table knows none. It forgets a
  // stream by Forget, when its writer will send nothing again, and of more than kInsertStreamsMax
  // (insert_streams.h) those that inserted longest ago; should one of these send items again, they
  // are taken twice.
  std::uint64_t LastOf(std::uint64_t stream) const;
  void Forget(std::uint64_t stream);

  // Draws `request.count` items with replacement into `sample`, whose former content is released.
  // The rate limiter is asked draw by draw, unless the request is for a whole batch: what it allows
  // is drawn, the rest waited for, and at the deadline the sample is what was drawn. Throws
  // DeadlineExceeded if that is nothing, InvalidArgument if count is out of range, Cancelled after
  // Close.
  void SampleInto(const SampleRequest& request, Sample& sample);

  // As SampleInto, without a wait, whatever the deadline: returns how many it drew, none where
  // another call waits.
  int TrySample(const SampleRequest& request, Sample& sample);

  // Both go on after Close. Keys of items that are gone are counted and reported. Throws
  // InvalidArgument, with nothing changed, if a priority is negative or not finite. Of several
  // updates of one item the last counts.
  Found UpdatePriorities(std::span<const PriorityUpdate> updates);
  Found Delete(std::span<const ItemKey> keys);

  // Removes all items, and the limiter is as if none but those had been inserted that came
  // meanwhile. Keys and counts go on, so that no key is given twice; so does what is known of
  // streams.
  void Reset();

  // Whether the limiter would allow so many inserts, or samples, now. Throw InvalidArgument for
  // less than 1.
  bool CanInsert(std::int64_t count) const;
  bool CanSample(std::int64_t count) const;

  // For the writer of these items, once it has compressed chunks: those that are still there name
  // the twins from now on; whoever sampled them before goes on with what it holds. The caller holds
  // references to all chunks; `twins` are in the order of `from`.
  void ReplaceChunks(std::span<const ItemKey> keys, std::span<const ChunkTwin> twins);

  TableInfo info() const;

  // Keys of items from now on are of this life, or of the present one if that is later. For whoever
  // brings a table back: see ItemKey.
  void BeginLife(std::uint64_t life);

  // Ends all waits now and to come with Cancelled.
  void Close();

 private:
  friend class ReplayCheckpoint;
  friend class ReplayJournal;
  struct State;
  class CallTurn;

  void CheckDrafts(std::span<const ItemDraft> drafts, std::uint64_t stream) const;
  void CheckRequest(const SampleRequest& request) const;

  // For checkpoints, in this order: room for what is there and a little more, all tables locked,
  // the content copied, and a reference added to each chunk that it needs.
  void ReserveFor(TableContent& content) const;
  std::unique_lock<std::mutex> Lock() const;
  void CopyTo(TableContent& content, std::vector<ChunkId>& held) const;  // Under Lock.

  // Into a table that nobody has used. Slices name chunks that somebody holds meanwhile. Evicts
  // what crosses the bounds of this table's options; throws FailedPrecondition if the remover may
  // choose nothing.
  void Restore(const TableContent& content);

  // For a journal: `changes`, which outlives that, learns from now on what changes; null: no more.
  void Watch(TableChanges* changes);
  // Under Lock: appends what changed to an empty delta; nothing is changed afterwards.
  void CopyChanges(TableDelta& delta);
  void WakeInserters();  // When the gate has opened, or failed.

  std::unique_ptr<State> state_;
};

}  // namespace menger
