#include "menger/replay/client/batch_gatherer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/worker_pool.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/tensor/memory.h"

namespace menger {
namespace {

// Below this, waking threads costs more than they save: two break even near .9 MB of frames.
constexpr std::size_t kBytesToShare = 1 << 20;

// How many items before its turn an item's chunk records, and then its rows, are fetched: both are
// somewhere in gigabytes.
constexpr int kRecordsAhead = 8;
constexpr int kRowsAhead = 4;

// Of the rows of a slice, what is fetched ahead; processors fetch the rest of a long run alone.
constexpr std::size_t kPrefetchBytes = 512;
constexpr std::size_t kCacheLine = 64;

std::size_t RoundUp(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

int CheckedCount(const char* name, int count) {
  if (count < 1) throw InvalidArgument("{} of a batch is {}; it must be at least 1", name, count);
  return count;
}

}  // namespace

struct BatchGatherer::State {
  State(const ItemSpec& spec, int count, int threads, const MemoryAllocator& allocate)
      : items(spec),
        items_max(count),
        readers(threads, SliceReader(spec)),
        pool(threads, "gather") {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < items.columns.size(); ++i) {
      const std::size_t item_bytes = readers[0].row_bytes(static_cast<int>(i)) *
                                     static_cast<std::size_t>(items.columns[i].rows);
      columns.push_back({.item_bytes = item_bytes});
      batch_item_bytes += item_bytes;
      bytes += RoundUp(item_bytes * static_cast<std::size_t>(items_max));
    }
    memory = allocate(bytes);
    rows.assign(items.columns.size(), std::vector<std::int32_t>(items_max));
    std::byte* begin = memory->data();
    for (BatchColumn& column : columns) {
      column.data = begin;
      begin += RoundUp(column.item_bytes * static_cast<std::size_t>(items_max));
    }
  }

  void Check(const Sample& sample);
  void Prefetch(const Sample& sample, int item, SliceReader& reader) const;
  void CopyItems(const Sample& sample, int first, int last, SliceReader& reader);
  void CopyColumn(const Sample& sample, int item, int column, SliceReader& reader);

  const ItemSpec items;
  const int items_max;
  std::size_t batch_item_bytes = 0;  // Of one item, all columns.
  std::vector<BatchColumn> columns;
  std::vector<std::vector<std::int32_t>> rows;  // By column.
  std::unique_ptr<Memory> memory;
  std::vector<SliceReader> readers;  // One a thread.
  const ItemSpec* known = nullptr;   // The spec of the last sample, found to be equal to ours.
  WorkerPool pool;
};

void BatchGatherer::State::Check(const Sample& sample) {
  if (sample.size() > items_max) {
    throw InvalidArgument("a sample of {} items for a batch of at most {}", sample.size(),
                          items_max);
  }
  if (sample.spec() == known) return;
  const ItemSpec& theirs = *sample.spec();
  if (theirs.columns != items.columns || StepsId(theirs.steps) != StepsId(items.steps)) {
    throw InvalidArgument(
        "the sample is of a table whose items have other columns than this batch; gather it with a "
        "gatherer made for that table");
  }
  known = sample.spec();
}

void BatchGatherer::State::Prefetch(const Sample& sample, int item, SliceReader& reader) const {
  const int count = static_cast<int>(columns.size());
  for (int column = 0; column < count; ++column) {
    for (const Slice& slice : sample.slices(item, column)) {
      if (sample.chunks()->is_compressed(slice.chunk)) {
        __builtin_prefetch(sample.chunks()->Data(slice.chunk, 0));  // Says where the blocks are.
        continue;
      }
      const StridedView view = reader.Find(*sample.chunks(), slice, column);
      const std::size_t bytes =
          std::min(view.item * static_cast<std::size_t>(view.count), kPrefetchBytes);
      for (std::size_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(view.data + i);
    }
  }
}

void BatchGatherer::State::CopyColumn(const Sample& sample, int item, int column,
                                      SliceReader& reader) {
  const std::span<const Slice> slices = sample.slices(item, column);
  int count = 0;
  for (const Slice& slice : slices) count += slice.length;
  const ItemColumn& shown = items.columns[column];
  if (count > shown.rows) {
    throw Internal("an item has {} rows in column '{}', which shows at most {}", count, shown.name,
                   shown.rows);
  }
  rows[column][item] = count;
  const std::size_t item_bytes = columns[column].item_bytes;
  std::byte* out = columns[column].data + item_bytes * static_cast<std::size_t>(item);
  const std::size_t padding =
      item_bytes - reader.row_bytes(column) * static_cast<std::size_t>(count);
  if (padding > 0 && shown.padding == Padding::kFront) {
    std::memset(out, 0, padding);
    out += padding;
  }
  for (const Slice& slice : slices) {
    const StridedView view = reader.Find(*sample.chunks(), slice, column);
    const std::size_t bytes = view.item * static_cast<std::size_t>(view.count);
    std::memcpy(out, view.data, bytes);
    out += bytes;
  }
  if (padding > 0 && shown.padding == Padding::kBack) std::memset(out, 0, padding);
}

// Item by item, not column by column: what several columns show (an observation and the next one)
// is read from memory once and from the cache again.
void BatchGatherer::State::CopyItems(const Sample& sample, int first, int last,
                                     SliceReader& reader) {
  const int column_count = static_cast<int>(columns.size());
  for (int item = first - kRecordsAhead; item < last; ++item) {
    if (item + kRecordsAhead < last) {
      for (const Slice& slice : sample.slices(item + kRecordsAhead)) {
        sample.chunks()->Prefetch(slice.chunk);
      }
    }
    if (item + kRowsAhead >= first && item + kRowsAhead < last) {
      Prefetch(sample, item + kRowsAhead, reader);
    }
    if (item < first) continue;
    for (int column = 0; column < column_count; ++column) CopyColumn(sample, item, column, reader);
  }
}

BatchGatherer::BatchGatherer(const ItemSpec& items, int items_max, int threads,
                             const MemoryAllocator& allocate)
    : state_(std::make_unique<State>(items, CheckedCount("items_max", items_max),
                                     CheckedCount("threads", threads), allocate)) {}

BatchGatherer::~BatchGatherer() = default;

std::span<const BatchColumn> BatchGatherer::Gather(const Sample& sample) {
  State& state = *state_;
  const int size = sample.size();
  if (size > 0) state.Check(sample);
  for (std::size_t i = 0; i < state.columns.size(); ++i) {
    state.columns[i].rows = std::span(state.rows[i]).first(size);
  }
  if (state.batch_item_bytes * static_cast<std::size_t>(size) < kBytesToShare) {
    state.CopyItems(sample, 0, size, state.readers[0]);
  } else {
    const int shares = state.pool.threads();
    state.pool.Run(shares, [&](int share) {
      const auto begin_of = [&](int s) {
        return static_cast<int>(static_cast<std::int64_t>(size) * s / shares);
      };
      state.CopyItems(sample, begin_of(share), begin_of(share + 1), state.readers[share]);
    });
  }
  return state.columns;
}

}  // namespace menger
