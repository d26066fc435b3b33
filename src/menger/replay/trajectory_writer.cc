#include "menger/replay/trajectory_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

// "'reward' float32 (2,)", or "none" where the spec has no such leaf.
std::string Describe(const Spec& spec, int leaf) {
  if (leaf >= spec.size()) return "none";
  return fmt::format("'{}' {} {}", spec[leaf].name, NameOf(spec[leaf].dtype),
                     ToString(spec[leaf].shape));
}

void CheckSteps(const Spec& written, const Table& table) {
  const Spec& expected = table.options().items.steps;
  for (int i = 0; i < std::max(written.size(), expected.size()); ++i) {
    const std::string ours = Describe(written, i);
    const std::string theirs = Describe(expected, i);
    if (ours == theirs) continue;
    throw InvalidArgument("table '{}' has items of other steps: leaf {} is {} there, {} here",
                          table.options().name, i, theirs, ours);
  }
}

}  // namespace

void WriterOptions::Check() const {
  if (chunk_steps < 1 || chunk_steps > kChunkRowsMax) {
    throw InvalidArgument("chunk_steps is {}; it must be 1 to {}", chunk_steps, kChunkRowsMax);
  }
  if (history < 1 || history > kChunkRowsMax) {
    throw InvalidArgument("history is {}; it must be 1 to {}", history, kChunkRowsMax);
  }
  if (pending_max < 1) {
    throw InvalidArgument("pending_max is {}; it must be at least 1", pending_max);
  }
  if (room_wait_max.count() < 0) {
    throw InvalidArgument("room_wait_max is {} ns; it must be at least 0", room_wait_max.count());
  }
}

std::size_t WriterBytesMax(const Spec& steps, const WriterOptions& options, int flush_steps) {
  options.Check();
  const ChunkLayout layout(steps, options.chunk_steps);
  const auto chunks =
      static_cast<std::size_t>((options.history + flush_steps) / options.chunk_steps);
  return (chunks + 2) * layout.bytes();
}

struct TrajectoryWriter::State {
  // Items on their way into one table. Drafts are used again, so that none allocates.
  struct Pending {
    Table* table = nullptr;
    std::vector<ItemDraft> drafts;
    std::size_t count = 0;  // The first `count` drafts are items.
  };

  // Items of a table that name chunks which are not compressed yet.
  struct Tracked {
    struct Entry {
      ItemKey key;
      ChunkId open = kNoChunk;  // The open chunk when it was inserted, if it names that.
    };
    Table* table = nullptr;
    std::vector<Entry> entries;
  };

  State(const Spec& steps, const WriterOptions& writer_options, ChunkStore& store)
      : options(writer_options),
        layout(steps, writer_options.chunk_steps),
        chunks(store),
        bytes_max(BytesMax()) {
    position.versions.resize(options.history);
  }

  std::size_t BytesMax() const;

  // The first step that an item may name.
  std::int64_t oldest() const {
    return std::max<std::int64_t>(0, position.steps - options.history);
  }
  Pending& PendingOf(Table& table);
  void CheckRanges(const Table& table, std::span<const StepRange> columns) const;
  void Fill(std::span<const StepRange> columns, ItemDraft& draft) const;
  ChunkId OpenChunk() const {
    return position.held.empty() || position.steps % layout.capacity() == 0 ? kNoChunk
                                                                            : position.held.back();
  }
  void Track(Table& table, const ItemKey& key, std::span<const Slice> slices);
  void CompressFull();
  ChunkId NewChunk(const Deadline* room);  // Null: as options has it.
  void ReleaseOld();

  const WriterOptions options;
  const ChunkLayout layout;
  ChunkStore& chunks;
  const std::size_t bytes_max;
  WriterPosition position;
  std::vector<Pending> tables;  // In the order in which they were first named.
  std::size_t pending = 0;      // Items of all tables.
  std::vector<ItemKey> keys;    // Of one Insert, or one ReplaceChunks.

  // Only where options.compression says so:
  std::vector<Tracked> tracked;
  std::int64_t tried_end = 0;    // Chunks of the stream below this one were compressed, or tried.
  std::vector<ChunkTwin> twins;  // Of one Flush.
};

TrajectoryWriter::TrajectoryWriter(const Spec& steps, const WriterOptions& options,
                                   ChunkStore& chunks)
    : state_(std::make_unique<State>(steps, options, chunks)) {}

TrajectoryWriter::~TrajectoryWriter() {
  for (const ChunkId chunk : state_->position.held) state_->chunks.Release(chunk);
}

std::int64_t TrajectoryWriter::Append(std::span<const std::byte* const> leaves,
                                      std::uint64_t version) {
  return AppendWithin(leaves, version, nullptr);
}

std::int64_t TrajectoryWriter::Append(std::span<const std::byte* const> leaves,
                                      std::uint64_t version, const Deadline& room) {
  return AppendWithin(leaves, version, &room);
}

std::int64_t TrajectoryWriter::AppendWithin(std::span<const std::byte* const> leaves,
                                            std::uint64_t version, const Deadline* room) {
  State& state = *state_;
  WriterPosition& position = state.position;
  const ChunkLayout& layout = state.layout;
  const int count = layout.steps().size();
  if (static_cast<int>(leaves.size()) != count) {
    throw InvalidArgument("a step of {} leaves was appended; this stream's steps have {}",
                          leaves.size(), count);
  }
  const std::int64_t end =
      (position.first_held + static_cast<std::int64_t>(position.held.size())) * layout.capacity();
  const bool full = position.steps == end;
  if (full) position.held.push_back(state.NewChunk(room));
  const auto row = static_cast<std::size_t>(full ? 0 : position.steps - (end - layout.capacity()));
  const ChunkId chunk = position.held.back();
  for (int leaf = 0; leaf < count; ++leaf) {
    const std::size_t bytes = layout.row_bytes(leaf);
    std::memcpy(state.chunks.Data(chunk, layout.offset(leaf) + row * bytes), leaves[leaf], bytes);
  }
  state.chunks.Publish(chunk, static_cast<int>(row) + 1);
  position.versions[position.steps % state.options.history] = version;
  const std::int64_t step = position.steps++;
  state.ReleaseOld();
  return step;
}

std::size_t TrajectoryWriter::State::BytesMax() const {
  const std::size_t needed = WriterBytesMax(layout.steps(), options, /*flush_steps=*/1);
  if (options.bytes_max == 0) return std::max(chunks.bytes_max() / 16, 2 * needed);
  if (options.bytes_max >= needed) return options.bytes_max;
  throw InvalidArgument(
      "bytes_max of a writer is {}; with a history of {} steps in chunks of {} it must be at least "
      "{}",
      options.bytes_max, options.history, options.chunk_steps, needed);
}

ChunkId TrajectoryWriter::State::NewChunk(const Deadline* room) {
  std::size_t bytes = layout.bytes();
  for (const ChunkId chunk : position.held) bytes += chunks.bytes(chunk);
  if (bytes > bytes_max) {
    throw Unavailable(
        "a writer would hold {} bytes of chunks, and bytes_max is {}: {} items wait to be inserted "
        "and keep all that came after the first of them; Flush",
        bytes, bytes_max, pending);
  }
  return chunks.AllocateWithin(layout,
                               room != nullptr ? *room : Deadline::After(options.room_wait_max));
}

// Gives back the chunks that neither the history nor a waiting item reaches.
void TrajectoryWriter::State::ReleaseOld() {
  if (pending > 0) return;
  std::size_t count = 0;
  while ((position.first_held + 1) * layout.capacity() <= oldest()) {
    chunks.Release(position.held[count++]);
    ++position.first_held;
  }
  if (count > 0) {
    position.held.erase(position.held.begin(),
                        position.held.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

void TrajectoryWriter::State::Track(Table& table, const ItemKey& key,
                                    std::span<const Slice> slices) {
  auto found = std::ranges::find(tracked, &table, &Tracked::table);
  if (found == tracked.end()) found = tracked.insert(found, {.table = &table});
  const ChunkId open = OpenChunk();
  const bool names_open = std::ranges::find(slices, open, &Slice::chunk) != slices.end();
  found->entries.push_back({.key = key, .open = names_open ? open : kNoChunk});
}

// Chunks first, then all items that name them, so that nobody holds the old ones any longer but
// those who sampled them.
void TrajectoryWriter::State::CompressFull() {
  if (options.compression == Compression::kNone) return;
  const std::int64_t full_end = position.steps / layout.capacity();
  twins.clear();
  for (std::int64_t k = std::max(tried_end, position.first_held); k < full_end; ++k) {
    ChunkId& held = position.held[k - position.first_held];
    if (chunks.is_compressed(held)) continue;  // By whoever wrote it before a restart.
    const std::optional<ChunkId> compressed = CompressChunk(chunks, layout, held);
    if (!compressed) continue;
    twins.push_back({.from = held, .to = *compressed});
    held = *compressed;
  }
  tried_end = full_end;
  std::ranges::sort(twins, {}, &ChunkTwin::from);
  for (Tracked& items : tracked) {
    if (!twins.empty()) {
      keys.clear();
      for (const Tracked::Entry& entry : items.entries) keys.push_back(entry.key);
      items.table->ReplaceChunks(keys, twins);
    }
    std::erase_if(items.entries, [open = OpenChunk()](const Tracked::Entry& entry) {
      return entry.open == kNoChunk || entry.open != open;
    });
  }
  for (const ChunkTwin& twin : twins) chunks.Release(twin.from);
}

TrajectoryWriter::State::Pending& TrajectoryWriter::State::PendingOf(Table& table) {
  for (Pending& known : tables) {
    if (known.table == &table) return known;
  }
  CheckSteps(layout.steps(), table);
  tables.push_back({.table = &table});
  return tables.back();
}

void TrajectoryWriter::State::CheckRanges(const Table& table,
                                          std::span<const StepRange> columns) const {
  const std::vector<ItemColumn>& shown = table.options().items.columns;
  const std::string& name = table.options().name;
  if (columns.size() != shown.size()) {
    throw InvalidArgument("an item of {} columns for table '{}', whose items have {}",
                          columns.size(), name, shown.size());
  }
  std::int64_t first = position.steps;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const StepRange& range = columns[i];
    if (range.count < 1 || range.count > shown[i].rows) {
      throw InvalidArgument("an item of table '{}' has {} rows in column '{}'; it must be 1 to {}",
                            name, range.count, shown[i].name, shown[i].rows);
    }
    if (range.first < oldest() || range.first > position.steps - range.count) {
      throw InvalidArgument(
          "an item of table '{}' shows steps {} .. {} in column '{}', but {} .. {} can be had: the "
          "history is {}, and {} steps were appended",
          name, range.first, range.first + range.count - 1, shown[i].name, oldest(),
          position.steps - 1, options.history, position.steps);
    }
    first = std::min(first, range.first);
    last = std::max(last, range.first + range.count - 1);
  }
  std::size_t bytes = 0;
  for (std::int64_t k = first / layout.capacity(); k <= last / layout.capacity(); ++k) {
    bytes += chunks.bytes(position.held[k - position.first_held]);
  }
  if (bytes > table.options().bytes_max) {
    throw InvalidArgument(
        "an item of table '{}' needs chunks of {} bytes, but the table may hold only {}", name,
        bytes, table.options().bytes_max);
  }
}

void TrajectoryWriter::State::Fill(std::span<const StepRange> columns, ItemDraft& draft) const {
  const std::int64_t capacity = layout.capacity();
  draft.slices.clear();
  draft.slice_counts.clear();
  draft.versions = {.first = std::numeric_limits<std::uint64_t>::max(), .last = 0};
  for (const StepRange& range : columns) {
    const std::size_t before = draft.slices.size();
    std::int64_t chunk = range.first / capacity;
    std::int64_t row = range.first % capacity;
    for (std::int64_t left = range.count; left > 0; ++chunk) {
      const std::int64_t length = std::min(left, capacity - row);
      draft.slices.push_back({.chunk = position.held[chunk - position.first_held],
                              .offset = static_cast<std::uint16_t>(row),
                              .length = static_cast<std::uint16_t>(length)});
      left -= length;
      row = 0;
    }
    draft.slice_counts.push_back(static_cast<std::uint16_t>(draft.slices.size() - before));
    std::size_t slot = static_cast<std::size_t>(range.first % options.history);
    for (int i = 0; i < range.count; ++i) {
      const std::uint64_t version = position.versions[slot];
      draft.versions.first = std::min(draft.versions.first, version);
      draft.versions.last = std::max(draft.versions.last, version);
      if (++slot == position.versions.size()) slot = 0;
    }
  }
}

void TrajectoryWriter::Add(Table& table, std::optional<double> priority,
                           std::span<const StepRange> columns, std::uint64_t sequence) {
  State& state = *state_;
  if (priority && (!std::isfinite(*priority) || *priority < 0)) {
    throw InvalidArgument(
        "an item of table '{}' has priority {}; it must be finite and not "
        "negative",
        table.options().name, *priority);
  }
  if (state.pending >= static_cast<std::size_t>(state.options.pending_max)) {
    throw Unavailable("{} items wait to be inserted, which is all that pending_max allows: Flush",
                      state.pending);
  }
  State::Pending& pending = state.PendingOf(table);
  state.CheckRanges(table, columns);
  if (pending.count == pending.drafts.size()) pending.drafts.emplace_back();
  ItemDraft& draft = pending.drafts[pending.count];
  draft.priority = priority;
  draft.sequence = sequence;
  state.Fill(columns, draft);
  ++pending.count;
  ++state.pending;
}

void TrajectoryWriter::Flush(const Deadline& deadline) {
  State& state = *state_;
  const auto taken = [&state](State::Pending& items) {
    if (state.options.compression != Compression::kNone) {
      for (std::size_t i = 0; i < state.keys.size(); ++i) {
        if (state.keys[i].number == 0) continue;  // It had been taken before.
        state.Track(*items.table, state.keys[i], items.drafts[i].slices);
      }
    }
    const auto count = static_cast<std::ptrdiff_t>(state.keys.size());
    std::rotate(items.drafts.begin(), items.drafts.begin() + count,
                items.drafts.begin() + static_cast<std::ptrdiff_t>(items.count));
    items.count -= state.keys.size();
    state.pending -= state.keys.size();
  };
  for (State::Pending& items : state.tables) {
    if (items.count == 0) continue;
    state.keys.clear();
    try {
      items.table->Insert(std::span(items.drafts).first(items.count), deadline, &state.keys,
                          state.options.stream);
    } catch (...) {
      taken(items);
      throw;
    }
    taken(items);
  }
  state.CompressFull();
  state.ReleaseOld();
}

std::int64_t TrajectoryWriter::steps() const { return state_->position.steps; }

int TrajectoryWriter::pending() const { return static_cast<int>(state_->pending); }

const ChunkLayout& TrajectoryWriter::layout() const { return state_->layout; }

const WriterPosition& TrajectoryWriter::position() const { return state_->position; }

void TrajectoryWriter::Restore(WriterPosition position) { state_->position = std::move(position); }

void TrajectoryWriter::Track(Table& table, const ItemKey& key, std::span<const Slice> slices) {
  if (state_->options.compression != Compression::kNone) state_->Track(table, key, slices);
}

}  // namespace menger
