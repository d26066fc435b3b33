#pragma once

// For tests of journals: all that a store holds, and damage to files.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "menger/base/file_testing.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/checkpoint_testing.h"
#include "menger/replay/durability/journal_recovery.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/sample.h"

namespace menger::testing_journals {

using testing_checkpoints::Stream;
using testing_files::FlipBit;
using testing_files::Folder;
using testing_tables::SmallItems;
using testing_tables::Soon;

// The same tables, from which each item can be drawn once, oldest first.
inline ReplayStoreOptions Drained(ReplayStoreOptions options) {
  for (TableOptions& table : options.tables) {
    table.sampler = {.kind = SelectorKind::kFifo};
    table.times_sampled_max = 1;
  }
  return options;
}

// Counts of each table, and all of each item, oldest first; how often it was sampled only in table
// b, which needs that. Empties a store of Drained options.
inline std::vector<double> Drain(ReplayStore& store) {
  std::vector<double> seen;
  for (int i = 0; i < store.tables(); ++i) {
    Table& table = store.table(i);
    const TableInfo info = table.info();
    for (const std::int64_t count : {info.items, info.inserts, info.samples, info.deletes,
                                     info.evicted, info.dropped_stale, info.stale_keys}) {
      seen.push_back(static_cast<double>(count));
    }
    if (info.items == 0) continue;
    Sample sample;
    table.SampleInto({.count = static_cast<int>(info.items), .deadline = Soon()}, sample);
    SliceReader reader(SmallItems());
    for (int k = 0; k < sample.size(); ++k) {
      const SampledItem& item = sample.items()[k];
      for (const std::uint64_t fact : {item.key.number, std::uint64_t{item.key.slot},
                                       i == 0 ? 0 : static_cast<std::uint64_t>(item.times_sampled),
                                       item.versions.first, item.versions.last}) {
        seen.push_back(static_cast<double>(fact));
      }
      seen.push_back(item.priority);
      for (int column = 0; column < 2; ++column) {
        for (const Slice& slice : sample.slices(k, column)) {
          const StridedView rows = reader.Find(store.chunks(), slice, column);
          for (std::int64_t row = 0; row < slice.length; ++row) {
            std::int64_t value = 0;
            std::memcpy(&value, rows.data + row * 8, 8);
            seen.push_back(static_cast<double>(value));
          }
        }
      }
    }
  }
  return seen;
}

// What a checkpoint and journals tell.
inline std::vector<double> Recovered(const ReplayStoreOptions& options, const std::string& folder,
                                     const std::vector<JournalFile>& journal) {
  ReplayStore store(Drained(options));
  ReplayCheckpoint::Load(folder, store, {}, journal);
  return Drain(store);
}

// What a store holds now, told by a checkpoint alone.
inline std::vector<double> Held(const ReplayStoreOptions& options, const ReplayStore& store,
                                const std::string& folder) {
  ReplayCheckpoint(store).Write(folder);
  std::vector<double> held = Recovered(options, folder, {});
  std::filesystem::remove_all(folder);
  return held;
}

}  // namespace menger::testing_journals
