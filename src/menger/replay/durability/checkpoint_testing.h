#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/file_testing.h"
#include "menger/base/random.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/sample.h"
#include "menger/replay/table_testing.h"

namespace menger::testing_checkpoints {

using testing_files::Folder;
using testing_tables::Now;
using testing_tables::SmallItems;
using testing_tables::SmallTable;
using testing_tables::Soon;

inline ReplayStoreOptions TwoTables(SelectorKind sampler = SelectorKind::kPrioritised,
                                    SelectorKind remover = SelectorKind::kFifo) {
  TableOptions a = SmallTable();
  a.name = "a";
  a.sampler = {.kind = sampler, .exponent = 0.6};
  a.remover = {.kind = remover, .exponent = 0.5};
  a.items_max = 200;
  TableOptions b = SmallTable();
  b.name = "b";
  b.sampler.kind = SelectorKind::kUniform;
  b.bytes_max = 20 * 64;
  b.times_sampled_max = 3;
  b.seed = 2;
  return {.tables = {a, b}};
}

// A store with two writers, and operations on it that come from a seed.
struct Stream {
  explicit Stream(const ReplayStoreOptions& store_options) : options(store_options) { Open(); }

  void Open() {
    writers.clear();
    store = std::make_unique<ReplayStore>(options);
    for (int i = 0; i < 2; ++i) {
      writers.push_back(
          store->NewWriter(SmallItems().steps, {.chunk_steps = 8, .history = 5 + 6 * i}));
    }
  }
  std::vector<TrajectoryWriter*> pointers() const { return {writers[0].get(), writers[1].get()}; }

  void Append(int writer) {
    const std::int64_t value = next_value++;
    const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
    writers[writer]->Append({&leaf, 1}, static_cast<std::uint64_t>(value / 100));
  }

  // An item of the newest steps of the writer in each table.
  void Insert(int writer, double priority) {
    const std::int64_t end = writers[writer]->steps();
    const int count = static_cast<int>(std::min<std::int64_t>(end, 4));
    const std::vector<StepRange> columns = {{.first = end - count, .count = count},
                                            {.first = end - 1, .count = 1}};
    for (int i = 0; i < 2; ++i) writers[writer]->Add(store->table(i), priority, columns);
    writers[writer]->Flush(Soon());
  }

  // Everything that a reader sees of a draw goes into `seen`.
  void Draw(int table, int count) {
    Sample sample;
    try {
      store->table(table).SampleInto({.count = count, .deadline = Now()}, sample);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
      return;
    }
    SliceReader reader(SmallItems());
    drawn.clear();
    for (int i = 0; i < sample.size(); ++i) {
      const SampledItem& item = sample.items()[i];
      drawn.push_back(item.key);
      seen.insert(
          seen.end(),
          {static_cast<double>(item.key.number), static_cast<double>(item.key.slot),
           item.probability, item.priority, static_cast<double>(item.times_sampled),
           static_cast<double>(item.versions.first), static_cast<double>(item.versions.last)});
      for (int column = 0; column < 2; ++column) {
        for (const Slice& slice : sample.slices(i, column)) {
          const StridedView rows = reader.Find(store->chunks(), slice, column);
          for (std::int64_t row = 0; row < slice.length; ++row) {
            std::int64_t value = 0;
            std::memcpy(&value, rows.data + row * 8, 8);
            seen.push_back(static_cast<double>(value));
          }
        }
      }
    }
  }

  void Step() {
    const int writer = static_cast<int>(random.Integers(0, 2));
    const int table = static_cast<int>(random.Integers(0, 2));
    switch (random.Integers(0, 6)) {
      case 0:
      case 1:
        return Append(writer);
      case 2:
        if (writers[writer]->steps() > 0) Insert(writer, random.Uniform(0.1, 5));
        return;
      case 3:
        return Draw(table, static_cast<int>(random.Integers(1, 9)));
      case 4: {
        std::vector<PriorityUpdate> updates;
        for (const ItemKey& key : drawn) {
          updates.push_back({.key = key, .priority = random.Uniform(0, 5)});
        }
        const Found found = store->table(table).UpdatePriorities(updates);
        seen.insert(seen.end(),
                    {static_cast<double>(found.found), static_cast<double>(found.stale)});
        return;
      }
      default:
        if (drawn.empty() || random.Integers(0, 4) > 0) return;
        store->table(table).Delete({drawn.data(), 1});
    }
  }

  ReplayStoreOptions options;
  Random random = Random::FromSeed(3);
  std::unique_ptr<ReplayStore> store;
  std::vector<std::unique_ptr<TrajectoryWriter>> writers;
  std::int64_t next_value = 0;
  std::vector<ItemKey> drawn;
  std::vector<double> seen;
};

}  // namespace menger::testing_checkpoints
