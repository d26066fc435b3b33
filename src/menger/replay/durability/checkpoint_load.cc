#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "menger/base/archive.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/replay/durability/checkpoint.h"

namespace menger {
namespace {

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// By which name each of a checkpoint's chunks goes in another store.
class Names {
 public:
  void Add(ChunkId saved, ChunkId here) {
    if (saved >= names_.size()) names_.resize(std::size_t{saved} + 1, kNoChunk);
    names_[saved] = here;
  }
  const std::vector<ChunkId>& names() const { return names_; }

 private:
  std::vector<ChunkId> names_;
};

// Throws NotFound for a folder that is not there, DataLoss for one without metadata.
ArchiveReader Metadata(const std::string& folder) {
  const std::string path = MetadataPath(folder);
  if (Exists(folder) && !Exists(path)) throw DataLoss("'{}' is missing", path);
  return ArchiveReader(path);
}

}  // namespace

// Reads all, checks all, and only then touches the store.
class ReplayCheckpoint::Loader {
 public:
  Loader(const std::string& folder, ReplayStore& store, std::span<TrajectoryWriter* const> writers,
         std::span<const JournalFile> journal)
      : folder_(folder), store_(store), writers_(writers), layouts_(steps_), journal_(journal) {}

  void Load() {
    const ArchiveReader archive = Metadata(folder_);
    content_.Load(archive);
    index_.Load(archive);
    PackReader packs(folder_, index_.packs);
    MatchTables();
    MatchWriters();
    journal_.ApplyTo(content_, index_);
    EvictWhatCrossesBounds();
    HeldChunks loaded(store_.chunks_);
    ReadChunks(packs, loaded.chunks);
    for (int i = 0; i < store_.tables(); ++i) {
      TableContent& content = SavedTable(i).content;
      ++content.counts.life;
      store_.table(i).Restore(content);
    }
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      WriterPosition& position = content_.writers[i].position;
      for (const ChunkId chunk : position.held) store_.chunks_.AddReference(chunk);
      writers_[i]->Restore(std::move(position));
    }
    TrackItems();
  }

 private:
  ReplayContent::SavedTable& SavedTable(int table) { return content_.tables[matches_[table]]; }

  void MatchTables() {
    for (int i = 0; i < store_.tables(); ++i) {
      const TableOptions& options = store_.table(i).options();
      const auto saved =
          std::ranges::find(content_.tables, options.name, &ReplayContent::SavedTable::name);
      if (saved == content_.tables.end()) {
        throw FailedPrecondition("replay checkpoint '{}' has no table '{}'", folder_, options.name);
      }
      const std::string difference = DifferenceOf(saved->signature, SignatureOf(options.items));
      if (!difference.empty()) {
        throw FailedPrecondition("replay checkpoint '{}' has another table '{}': {}", folder_,
                                 options.name, difference);
      }
      const TableInfo info = store_.table(i).info();
      if (info.inserts != 0 || info.samples != 0) {
        throw FailedPrecondition("table '{}' was used before replay checkpoint '{}' was loaded",
                                 options.name, folder_);
      }
      matches_.push_back(static_cast<std::size_t>(saved - content_.tables.begin()));
      steps_.emplace(StepsId(options.items.steps), options.items.steps);
    }
    if (content_.tables.size() != matches_.size()) {
      throw FailedPrecondition("replay checkpoint '{}' has {} tables, the store {}", folder_,
                               content_.tables.size(), matches_.size());
    }
  }

  void MatchWriters() {
    if (writers_.empty()) content_.writers.clear();
    if (content_.writers.size() != writers_.size()) {
      throw FailedPrecondition("replay checkpoint '{}' has {} writers; there are {} here", folder_,
                               content_.writers.size(), writers_.size());
    }
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      const TrajectoryWriter& writer = *writers_[i];
      const std::string difference = DifferenceOf(content_.writers[i].signature,
                                                  SignatureOf(writer.layout(), writer.position()));
      if (!difference.empty()) {
        throw FailedPrecondition("replay checkpoint '{}' has another writer {}: {}", folder_, i,
                                 difference);
      }
      if (writer.steps() != 0) {
        throw FailedPrecondition("writer {} was used before replay checkpoint '{}' was loaded", i,
                                 folder_);
      }
      steps_.emplace(writer.layout().steps_id(), writer.layout().steps());
    }
  }

  // Tables are restored first in a store of addresses that are never touched, however much was
  // saved, and drop there what their options have no room for: the rows of that are not read.
  void EvictWhatCrossesBounds() {
    std::size_t bytes = 64;
    for (const ChunkEntry& entry : index_.chunks) {
      bytes += std::max(layouts_.Of(entry).bytes(), entry.compressed_bytes) + 64;
    }
    ChunkStore addresses({.bytes_max = bytes});
    HeldChunks staged(addresses);
    Names names;
    for (ChunkEntry& entry : index_.chunks) {
      const ChunkLayout& layout = layouts_.Of(entry);
      staged.chunks.push_back(addresses.Restore(layout, entry.identity, entry.compressed_bytes));
      addresses.Publish(staged.chunks.back(), static_cast<int>(journal_.RowsOf(entry)));
      names.Add(entry.chunk, staged.chunks.back());
      entry.chunk = staged.chunks.back();
    }
    content_.RenameChunks(names.names());
    for (int i = 0; i < store_.tables(); ++i) {
      TableContent& content = SavedTable(i).content;
      Table trial(store_.table(i).options(), addresses);
      trial.Restore(content);
      WarnOfEvicted(content.pool, addresses, trial);
      HeldChunks kept(addresses);
      trial.CopyTo(content, kept.chunks);
      needed_.insert(needed_.end(), kept.chunks.begin(), kept.chunks.end());
    }
    for (const ReplayContent::SavedWriter& writer : content_.writers) {
      needed_.insert(needed_.end(), writer.position.held.begin(), writer.position.held.end());
    }
    std::ranges::sort(needed_);
    needed_.erase(std::unique(needed_.begin(), needed_.end()), needed_.end());
    CheckRoom(addresses);
  }

  // Items that were kept, perhaps for days, do not go without a word.
  void WarnOfEvicted(const PoolContent& saved, const ChunkStore& chunks, const Table& table) const {
    const TableOptions& options = table.options();
    const auto items =
        std::ranges::count_if(saved.items, [](const Item& item) { return item.number != 0; });
    const std::int64_t left = table.info().items;
    if (left == items) return;
    LogWarning(
        "table '{}' has no room for {} of {} items of replay checkpoint '{}', which take {} bytes: "
        "items_max = {}, bytes_max = {}; its remover {} drops them, and {} are left",
        options.name, items - left, items, folder_, BytesOf(saved, chunks), options.items_max,
        options.bytes_max, ToString(options.remover), left);
  }

  // Of all chunks that the items need.
  static std::size_t BytesOf(const PoolContent& pool, const ChunkStore& chunks) {
    std::vector<bool> counted(chunks.chunks_end());
    std::size_t bytes = 0;
    for (const Item& item : pool.items) {
      if (item.number == 0) continue;
      for (std::uint32_t i = 0; i < item.slices_count; ++i) {
        const ChunkId chunk = pool.slices[item.slices_begin + i].chunk;
        if (!counted[chunk]) bytes += chunks.bytes(chunk);
        counted[chunk] = true;
      }
    }
    return bytes;
  }

  void CheckRoom(const ChunkStore& chunks) const {
    std::size_t bytes = 0;
    for (const ChunkId chunk : needed_) bytes += chunks.bytes(chunk);
    if (bytes <= store_.chunks().bytes_max()) return;
    throw Unavailable(
        "replay checkpoint '{}' needs {} bytes for {} chunks of its items and writers, but the "
        "store's bytes_max = {}: let the store have more, or its tables less",
        folder_, bytes, needed_.size(), store_.chunks().bytes_max());
  }

  void ReadChunks(PackReader& packs, std::vector<ChunkId>& loaded) {
    Names names;
    for (const ChunkEntry& entry : index_.chunks) {
      if (!std::ranges::binary_search(needed_, entry.chunk)) continue;
      const ChunkLayout& layout = layouts_.Of(entry);
      loaded.push_back(store_.chunks_.Restore(layout, entry.identity, entry.compressed_bytes));
      if (entry.rows > 0) packs.Read(entry, layout, store_.chunks_, loaded.back());
      journal_.Read(entry, layout, store_.chunks_, loaded.back());
      names.Add(entry.chunk, loaded.back());
    }
    content_.RenameChunks(names.names());
  }

  // A writer that compresses a chunk needs to know which items name it.
  void TrackItems() {
    std::vector<TrajectoryWriter*> writer_of(store_.chunks_.chunks_end(), nullptr);
    for (TrajectoryWriter* const writer : writers_) {
      for (const ChunkId chunk : writer->position().held) {
        if (!store_.chunks_.is_compressed(chunk)) writer_of[chunk] = writer;
      }
    }
    for (int i = 0; i < store_.tables(); ++i) {
      const PoolContent& pool = SavedTable(i).content.pool;
      for (std::uint32_t slot = 0; slot < pool.items.size(); ++slot) {
        const Item& item = pool.items[slot];
        if (item.number == 0) continue;
        const std::span slices =
            std::span(pool.slices).subspan(item.slices_begin, item.slices_count);
        const auto named = std::ranges::find_if(
            slices, [&](const Slice& slice) { return writer_of[slice.chunk] != nullptr; });
        if (named == slices.end()) continue;
        writer_of[named->chunk]->Track(store_.table(i),
                                       {.number = item.number,
                                        .slot = slot,
                                        .life = item.life,
                                        .shard = store_.table(i).options().shard},
                                       slices);
      }
    }
  }

  const std::string folder_;
  ReplayStore& store_;
  const std::span<TrajectoryWriter* const> writers_;
  std::map<std::uint64_t, Spec> steps_;  // By StepsId.
  ChunkLayouts layouts_;
  JournalRecovery journal_;
  ReplayContent content_;
  ChunkIndex index_;
  std::vector<std::size_t> matches_;  // Of each table of the store: which of the saved ones it is.
  std::vector<ChunkId> needed_;       // Of the index, sorted.
};

void ReplayCheckpoint::Load(const std::string& folder, ReplayStore& store,
                            std::span<TrajectoryWriter* const> writers,
                            std::span<const JournalFile> journal) {
  Loader(folder, store, writers, journal).Load();
}

void ReplayCheckpoint::Verify(const std::string& folder) {
  const ArchiveReader archive = Metadata(folder);
  archive.Verify();
  ChunkIndex index;
  index.Load(archive);
  PackReader packs(folder, index.packs);
  for (const ChunkEntry& entry : index.chunks) packs.Rows(entry);
}

}  // namespace menger
