#include "menger/replay/durability/replay_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kFrameBytes = std::size_t{4} << 20;  // Of rows, at least.

}  // namespace

std::string JournalPath(const std::string& folder, std::uint64_t number) {
  return fmt::format("{}/journal-{}.bin", folder, number);
}

ReplayJournal::ReplayJournal(ReplayStore& store, std::string folder,
                             std::chrono::nanoseconds loss_max, const ReplayCheckpoint& base,
                             std::uint64_t number)
    : store_(store),
      folder_(std::move(folder)),
      loss_max_(loss_max),
      layouts_(steps_),
      changes_(store.tables_.size(), TableChanges(gate_)),
      held_(store.chunks_) {
  group_.tables.resize(store.tables_.size());
  for (const std::unique_ptr<Table>& table : store.tables_) {
    const Spec& steps = table->options().items.steps;
    steps_.emplace(StepsId(steps), steps);
  }
  Begin(base, number);
  segment_->Sync();  // May throw: before tables know of this.
  moment_ = MonotonicNanoseconds();
  for (std::size_t i = 0; i < changes_.size(); ++i) store.tables_[i]->Watch(&changes_[i]);
  SyncAndOpen();
}

ReplayJournal::~ReplayJournal() {
  for (const std::unique_ptr<Table>& table : store_.tables_) {
    table->Watch(nullptr);
    table->WakeInserters();
  }
}

void ReplayJournal::Write() {
  Guarded([&] {
    std::vector<std::unique_lock<std::mutex>> locks;
    for (const std::unique_ptr<Table>& table : store_.tables_) locks.push_back(table->Lock());
    Collect();
    locks.clear();
    WriteGroup();
  });
}

void ReplayJournal::Sync() {
  Guarded([&] { SyncAndOpen(); });
}

std::unique_ptr<ReplayCheckpoint> ReplayJournal::Cut(std::uint64_t number) {
  std::unique_ptr<ReplayCheckpoint> cut;
  Guarded([&] {
    cut = std::make_unique<ReplayCheckpoint>(store_, std::span<TrajectoryWriter* const>(),
                                             [&] { Collect(); });
    WriteGroup();
    segment_->End();
    Begin(*cut, number);
    SyncAndOpen();
  });
  return cut;
}

void ReplayJournal::End() {
  Write();
  Guarded([&] { segment_->End(); });
}

void ReplayJournal::Hold(std::string why) { gate_.Hold(std::move(why)); }

void ReplayJournal::GoOn() {
  gate_.GoOn();
  for (const std::unique_ptr<Table>& table : store_.tables_) table->WakeInserters();
}

// What changed between the last group and the cut is still noted, and comes with the next group.
void ReplayJournal::GoOnFrom(const ReplayCheckpoint& base, std::uint64_t number) {
  Guarded([&] {
    segment_->End();
    Begin(base, number);
    SyncAndOpen();
  });
  GoOn();
}

std::uint64_t ReplayJournal::BytesFrom(std::uint64_t number) {
  ended_bytes_.erase(ended_bytes_.begin(), ended_bytes_.lower_bound(number));
  std::uint64_t bytes = segment_number_ < number ? 0 : segment_->bytes();
  for (const auto& [ended, size] : ended_bytes_) bytes += size;
  return bytes;
}

// What fails once may be half written, and what was collected is lost: there is no going on.
void ReplayJournal::Guarded(const std::function<void()>& function) {
  if (gate_.failed()) throw FailedPrecondition("the journal has failed: {}", gate_.why());
  try {
    function();
  } catch (...) {
    gate_.Fail(TranslateCurrentException().what());
    for (const std::unique_ptr<Table>& table : store_.tables_) table->WakeInserters();
    throw;
  }
}

// ---- A group

// Called with all tables locked.
void ReplayJournal::Collect() {
  moment_ = MonotonicNanoseconds();
  ++group_number_;
  group_.Clear();
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    store_.tables_[i]->CopyChanges(group_.tables[i]);
    HoldChunks(group_.tables[i]);
  }
}

// Slices name chunks by their place in the group from here on.
void ReplayJournal::HoldChunks(TableDelta& delta) {
  for (Slice& slice : delta.slices) {
    const ChunkId chunk = slice.chunk;
    if (chunk >= known_.size()) known_.resize(store_.chunks_.chunks_end());
    Known& known = known_[chunk];
    if (known.group != group_number_) {
      known.group = group_number_;
      known.place = static_cast<std::uint32_t>(group_.chunks.size());
      store_.chunks_.AddReference(chunk);
      held_.chunks.push_back(chunk);
      group_.chunks.push_back(
          {.identity = store_.chunks_.identity(chunk),
           .steps_id = store_.chunks_.steps_id(chunk),
           .compressed_bytes = store_.chunks_.compressed_bytes(chunk),
           .capacity = static_cast<std::uint32_t>(store_.chunks_.capacity(chunk)),
           .rows = static_cast<std::uint32_t>(store_.chunks_.rows(chunk))});
    }
    slice.chunk = known.place;
  }
}

void ReplayJournal::WriteGroup() {
  bool is_change = false;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const TableDelta& delta = group_.tables[i];
    is_change |= !delta.slots.empty() || !delta.streams.empty() || delta.counts != counts_[i];
    counts_[i] = delta.counts;
  }
  if (!is_change) return;
  WriteRows();
  payload_.clear();
  group_.Encode(payload_);
  segment_->Add(kGroupFrame, payload_);
}

// Of the group's chunks, those that are not yet in the journal; chunks are given back one by one.
void ReplayJournal::WriteRows() {
  payload_.clear();
  while (!held_.chunks.empty()) {
    const ChunkId id = held_.chunks.back();
    const JournalChunk& chunk = group_.chunks[held_.chunks.size() - 1];
    Known& known = known_[id];
    const std::uint32_t first = known.identity == chunk.identity ? known.rows_written : 0;
    if (first < chunk.rows) {
      const ChunkLayout& layout = LayoutOf(chunk);
      const ChunkRows part{
          .first = first, .rows = chunk.rows - first, .compressed_bytes = chunk.compressed_bytes};
      const JournalRows rows{.identity = chunk.identity,
                             .bytes = BytesOf(layout, part),
                             .first = part.first,
                             .rows = part.rows};
      const auto head = std::as_bytes(std::span(&rows, 1));
      payload_.insert(payload_.end(), head.begin(), head.end());
      payload_.resize(payload_.size() + rows.bytes);
      CopyRows(store_.chunks_, layout, id, part, payload_.data() + payload_.size() - rows.bytes);
      known.identity = chunk.identity;
      known.rows_written = chunk.rows;
    }
    held_.chunks.pop_back();
    store_.chunks_.Release(id);
    if (payload_.size() < kFrameBytes && !held_.chunks.empty()) continue;
    segment_->Add(kRowsFrame, payload_);
    payload_.clear();
  }
}

const ChunkLayout& ReplayJournal::LayoutOf(const JournalChunk& chunk) {
  return layouts_.Of({.steps_id = chunk.steps_id, .capacity = chunk.capacity});
}

// ---- Segments

void ReplayJournal::Begin(const ReplayCheckpoint& base, std::uint64_t number) {
  // A segment may count upon the rows that its checkpoint has, and on no others; and, but for the
  // first, on those alone that segments before have too, should this checkpoint be damaged.
  std::vector<Known> known;
  for (const ChunkEntry& entry : base.chunks()) {
    if (entry.chunk >= known.size()) known.resize(std::size_t{entry.chunk} + 1);
    const bool was_known =
        entry.chunk < known_.size() && known_[entry.chunk].identity == entry.identity;
    const std::uint32_t before = was_known ? known_[entry.chunk].rows_written : 0;
    known[entry.chunk] = {.identity = entry.identity,
                          .rows_written = segment_ ? before : entry.rows};
  }
  known_ = std::move(known);

  std::vector<std::string> names;
  for (const std::unique_ptr<Table>& table : store_.tables_) {
    names.push_back(table->options().name);
  }
  counts_.assign(names.size(), TableCounts{.limiter = {.inserts = -1}});
  if (segment_) ended_bytes_[segment_number_] = segment_->bytes();
  segment_.emplace(JournalPath(folder_, number), number);
  segment_number_ = number;
  segment_->Add(kHeadFrame, EncodeHead(names));
  SyncFolder(folder_);
}

void ReplayJournal::SyncAndOpen() {
  segment_->Sync();
  // Where the gate was shut when the last group was collected, nothing was taken since: else a disk
  // that needs longer than loss_max would keep it shut for ever.
  const std::int64_t since = gate_.open_until() <= moment_ ? MonotonicNanoseconds() : moment_;
  gate_.OpenUntil(since + loss_max_.count());
  for (const std::unique_ptr<Table>& table : store_.tables_) table->WakeInserters();
}

}  // namespace menger
