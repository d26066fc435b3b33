#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/sample.h"

// What the programs that are killed keep: two tables with the same items, whose rows tell which
// they are.
namespace menger::crash {

inline constexpr int kRowWords = 64;
inline constexpr int kRowBytes = 8 * kRowWords;
inline constexpr int kChunkSteps = 16;
inline constexpr std::chrono::milliseconds kLossMax(40);  // As the scripts have it.

inline Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

inline void Expect(bool fact, const std::string& otherwise) {
  if (!fact) throw DataLoss("a corrupt recovery: {}", otherwise);
}

inline ItemSpec Items() {
  return {.steps = Spec({LeafSpec::Box("words", DataType::kInt64, {kRowWords}, {0}, {1e18})}),
          .columns = {{.name = "words", .leaf = "words", .rows = 4}}};
}

// `once`: each item can be drawn once, newest first.
inline ReplayStoreOptions Options(std::int64_t items_max, bool compressed, bool once) {
  TableOptions first{
      .name = "first",
      .items = Items(),
      .items_max = items_max,
      .bytes_max = static_cast<std::size_t>(items_max) * kRowBytes * (compressed ? 1 : 8) / 2};
  if (once) {
    first.sampler.kind = SelectorKind::kLifo;
    first.times_sampled_max = 1;
  }
  TableOptions second = first;
  second.name = "second";
  return {.tables = {first, second}, .writer_bytes = std::size_t{1} << 20};
}

inline DurabilityOptions Kept(const std::string& folder) {
  return {.kind = Durability::kJournal,
          .folder = folder,
          .checkpoint_every = std::chrono::milliseconds(100),
          .loss_max = kLossMax};
}

// Word `index` of step `number` of a stream.
inline std::int64_t WordOf(std::int64_t stream, std::int64_t number, int index) {
  return index == 0 ? stream : number + index / 8;
}

// An item of both tables: step `number` of the stream, and up to three before it. Its priority is
// odd until it is updated, and twice as much from then on.
inline double PriorityOf(std::int64_t number) { return 1.0 + 2.0 * static_cast<double>(number); }

inline StepRange RangeOf(std::int64_t number) {
  const int count = static_cast<int>(std::min<std::int64_t>(number + 1, 4));
  return {.first = number + 1 - count, .count = count};
}

// The updates that double the priorities which were not.
inline std::vector<PriorityUpdate> UpdatesOf(const Sample& sample) {
  std::vector<PriorityUpdate> updates;
  for (const SampledItem& item : sample.items()) {
    const bool was_updated = std::fmod(item.priority, 2) == 0;
    if (!was_updated) updates.push_back({.key = item.key, .priority = 2 * item.priority});
  }
  return updates;
}

// Nothing is deleted from the second table, and it never removes anything to save bytes.
inline void CheckCount(Table& second) {
  const TableInfo info = second.info();
  Expect(info.items == std::min(info.inserts, second.options().items_max),
         fmt::format("the second table has {} items after {} inserts", info.items, info.inserts));
}

// Stream and number of the step that an item ends with.
inline std::pair<std::int64_t, std::int64_t> CheckItem(SliceReader& reader, const Sample& sample,
                                                       int item) {
  std::int64_t stream = -1;
  std::int64_t number = -1;
  int rows = 0;
  for (const Slice& slice : sample.slices(item, 0)) {
    const StridedView view = reader.Find(*sample.chunks(), slice, 0);
    for (int row = 0; row < slice.length; ++row, ++rows) {
      std::int64_t words[kRowWords];
      std::memcpy(words, view.data + view.stride * row, sizeof words);
      Expect(rows == 0 || (words[0] == stream && words[1] == number + 1),
             fmt::format("{} of {} after {} of {}", words[1], words[0], number, stream));
      stream = words[0];
      number = words[1];
      for (int i = 0; i < kRowWords; ++i) {
        if (words[i] == WordOf(stream, number, i)) continue;  // Millions of times.
        Expect(false, fmt::format("word {} of step {} of {} is {}", i, number, stream, words[i]));
      }
    }
  }
  Expect(rows == std::min<std::int64_t>(number + 1, 4),
         fmt::format("step {} of {} has {} rows", number, stream, rows));
  const double priority = sample.items()[item].priority;
  Expect(priority == PriorityOf(number) || priority == 2 * PriorityOf(number),
         fmt::format("step {} of {} has priority {}", number, stream, priority));
  return {stream, number};
}

struct Steps {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::vector<std::int64_t> missing;  // Between them, the last one first.
};

// Draws every item, newest first; the steps that they end with, by stream.
inline std::map<std::int64_t, Steps> CheckTable(Table& table) {
  const std::int64_t items = table.info().items;
  std::map<std::int64_t, Steps> streams;
  if (items == 0) return streams;
  Sample sample;
  table.SampleInto({.count = static_cast<int>(items), .deadline = Soon()}, sample);
  Expect(sample.size() == items, fmt::format("{} of {} items", sample.size(), items));
  SliceReader reader(Items());
  for (int item = 0; item < sample.size(); ++item) {
    const auto [stream, number] = CheckItem(reader, sample, item);
    const auto [found, is_new] = streams.try_emplace(stream, Steps{number, number, {}});
    Steps& steps = found->second;
    Expect(is_new || number < steps.first, "items are out of order, or there twice");
    while (steps.first > number + 1) steps.missing.push_back(--steps.first);
    steps.first = number;
  }
  return streams;
}

}  // namespace menger::crash
