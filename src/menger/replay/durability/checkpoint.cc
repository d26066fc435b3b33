#include "menger/replay/durability/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "menger/base/archive.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPackBytesMax = std::uint64_t{256} << 20;
// Frequent checkpoints make small packs: beyond so many of them they are written as one again.
constexpr std::uint64_t kSmallPackBytes = kPackBytesMax / 16;
constexpr std::int64_t kSmallPacksMax = 16;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// What an earlier checkpoint has; nothing if it cannot be used.
ChunkIndex IndexOfPrevious(const std::string& folder) {
  if (folder.empty() || !Exists(folder)) return {};
  try {
    ChunkIndex index;
    index.Load(ArchiveReader(MetadataPath(folder)));
    const PackReader packs(folder, index.packs);  // Throws unless all are there, at full length.
    return index;
  } catch (const Error& error) {
    LogWarning("replay checkpoint '{}' cannot be built upon: {}", folder, error.what());
    return {};
  }
}

void Share(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return;
  std::error_code error;
  fs::copy_file(from, to, error);
  if (error) throw FromErrno(fmt::format("cannot copy '{}' to '{}'", from, to), error.value());
  SyncFile(OpenForReading(to), to);
}

// Shares the packs of `previous` that are worth it, and says where the rows of the chunks in them
// are; the other chunks keep size 0 and no pack.
std::vector<PackEntry> SharePacks(const std::string& previous, const std::string& folder,
                                  std::vector<ChunkEntry>& chunks) {
  const ChunkIndex old = IndexOfPrevious(previous);
  std::map<ChunkIdentity, const ChunkEntry*> by_identity;
  for (const ChunkEntry& entry : old.chunks) by_identity[entry.identity] = &entry;
  // A chunk that has grown since is another one.
  const auto find = [&](const ChunkEntry& entry) -> const ChunkEntry* {
    const auto found = by_identity.find(entry.identity);
    return found == by_identity.end() || found->second->rows != entry.rows ? nullptr
                                                                           : found->second;
  };
  std::map<std::uint32_t, std::uint64_t> needed;  // Bytes, by pack.
  for (const ChunkEntry& entry : chunks) {
    if (const ChunkEntry* const was = find(entry)) needed[was->pack] += was->size;
  }
  const auto is_small = [](const PackEntry& pack) { return pack.size < kSmallPackBytes; };
  const bool merge = std::ranges::count_if(old.packs, is_small) > kSmallPacksMax;
  std::vector<PackEntry> shared;
  for (const PackEntry& pack : old.packs) {
    if (2 * needed[pack.number] < pack.size || (merge && is_small(pack))) {
      needed.erase(pack.number);
      continue;
    }
    Share(PackPath(previous, pack.number), PackPath(folder, pack.number));
    shared.push_back(pack);
  }
  for (ChunkEntry& entry : chunks) {
    const ChunkEntry* const was = find(entry);
    if (was == nullptr || !needed.contains(was->pack)) continue;
    entry.pack = was->pack;
    entry.offset = was->offset;
    entry.size = was->size;
    entry.checksum = was->checksum;
  }
  return shared;
}

// Removes a folder that did not become a checkpoint.
struct PartialFolder {
  explicit PartialFolder(std::string folder) : path(std::move(folder)) {
    Remove();
    CreateFolders(path);
  }
  ~PartialFolder() {
    std::error_code ignored;
    if (!committed) fs::remove_all(path, ignored);
  }
  void Remove() const {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) throw FromErrno(fmt::format("cannot remove '{}'", path), error.value());
  }

  const std::string path;
  bool committed = false;
};

}  // namespace

ReplayCheckpoint::ReplayCheckpoint(const ReplayStore& store,
                                   std::span<TrajectoryWriter* const> writers,
                                   const std::function<void()>& at_cut)
    : store_(store), held_(store.chunks_) {
  content_.tables.resize(store.tables_.size());
  for (std::size_t i = 0; i < store.tables_.size(); ++i) {
    const Table& table = *store.tables_[i];
    content_.tables[i].name = table.options().name;
    content_.tables[i].signature = SignatureOf(table.options().items);
    steps_.emplace(StepsId(table.options().items.steps), table.options().items.steps);
  }
  for (const TrajectoryWriter* const writer : writers) {
    if (writer->pending() > 0) {
      throw FailedPrecondition(
          "{} items of a writer wait for Flush, and a checkpoint does not keep them: Flush first",
          writer->pending());
    }
    steps_.emplace(writer->layout().steps_id(), writer->layout().steps());
    content_.writers.push_back({.signature = SignatureOf(writer->layout(), writer->position()),
                                .position = writer->position()});
  }
  held_.chunks.reserve(std::size_t{store.chunks_.chunks()} * store.tables_.size() + 4096);

  for (std::size_t i = 0; i < store.tables_.size(); ++i) {
    store.tables_[i]->ReserveFor(content_.tables[i].content);
  }
  std::vector<std::unique_lock<std::mutex>> locks(store.tables_.size());
  const Stopwatch pause;
  for (std::size_t i = 0; i < locks.size(); ++i) locks[i] = store.tables_[i]->Lock();
  for (std::size_t i = 0; i < locks.size(); ++i) {
    store.tables_[i]->CopyTo(content_.tables[i].content, held_.chunks);
  }
  if (at_cut) at_cut();
  locks.clear();
  pause_seconds_ = pause.seconds();

  for (const ReplayContent::SavedWriter& writer : content_.writers) {
    for (const ChunkId chunk : writer.position.held) {
      store.chunks_.AddReference(chunk);
      held_.chunks.push_back(chunk);
    }
  }
  std::vector<ChunkId> chunks = held_.chunks;
  std::ranges::sort(chunks);
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  for (const ChunkId chunk : chunks) {
    // An open chunk of a writer that goes on may have more rows than at the cut: no item knows.
    chunks_.push_back({.identity = store.chunks_.identity(chunk),
                       .steps_id = store.chunks_.steps_id(chunk),
                       .compressed_bytes = store.chunks_.compressed_bytes(chunk),
                       .chunk = chunk,
                       .rows = static_cast<std::uint32_t>(store.chunks_.rows(chunk)),
                       .capacity = static_cast<std::uint32_t>(store.chunks_.capacity(chunk))});
  }
}

ReplayCheckpoint::Written ReplayCheckpoint::Write(const std::string& folder,
                                                  const std::string& previous) const {
  if (Exists(folder)) {
    throw FailedPrecondition("'{}' exists; a replay checkpoint needs a folder of its own", folder);
  }
  PartialFolder partial(folder + ".partial");
  ChunkIndex index;
  index.chunks = chunks_;
  index.packs = SharePacks(previous, partial.path, index.chunks);

  ChunkLayouts layouts(steps_);
  Written written;
  std::uint32_t next_pack = 0;
  for (const PackEntry& pack : index.packs) next_pack = std::max(next_pack, pack.number + 1);
  PackWriter packs(partial.path, next_pack, kPackBytesMax);
  for (ChunkEntry& entry : index.chunks) {
    ++written.chunks;
    if (entry.size == 0) {
      packs.Add(store_.chunks_, layouts.Of(entry), entry);
      ++written.chunks_new;
      written.bytes_new += entry.size;
    }
    written.bytes += entry.size;
  }
  std::ranges::copy(packs.Finish(), std::back_inserter(index.packs));

  ArchiveWriter metadata(MetadataPath(partial.path));
  content_.Save(metadata);
  index.Save(metadata);
  metadata.Commit();
  SyncFolder(partial.path);
  if (rename(partial.path.c_str(), folder.c_str()) != 0) {
    throw FromErrno(fmt::format("cannot rename '{}' to '{}'", partial.path, folder), errno);
  }
  partial.committed = true;
  SyncFolder(ParentFolder(folder));
  return written;
}

}  // namespace menger
