#include <algorithm>
#include <span>

#include "menger/replay/library/interface.h"

struct menger_replay_sampler {
  // Consecutive rows where they lie.
  struct Run {
    const std::byte* rows = nullptr;
    std::size_t row_bytes = 0;
    std::size_t count = 0;
  };

  std::shared_ptr<menger::ServedReplay> replay;  // Goes after what it has made.
  std::unique_ptr<menger::ReplaySampler> sampler;
  menger::Sample sample;
  std::vector<menger_replay_item> items;
  std::vector<menger_replay_column> columns;
  std::vector<std::size_t> run_ends;  // Of each column.
  std::vector<Run> runs;

  void Read();
  void ReadItem(int index);
  Run RunOf(const menger::Slice& slice) const;
};

// ---- Items as columns

menger_replay_sampler::Run menger_replay_sampler::RunOf(const menger::Slice& slice) const {
  const menger::ChunkView& chunks = *sample.chunks();
  const std::optional<std::int64_t> bytes = menger::ByteRowsIn(chunks.steps_id(slice.chunk));
  if (!bytes || chunks.is_compressed(slice.chunk)) {
    throw menger::DataLoss("an item lies in chunk {}, which has no rows of bytes", slice.chunk);
  }
  const auto row_bytes = static_cast<std::size_t>(*bytes);
  return {.rows = chunks.Data(slice.chunk, slice.offset * row_bytes),
          .row_bytes = row_bytes,
          .count = slice.length};
}

// A slice of the description's chunk begins a column.
void menger_replay_sampler::ReadItem(int index) {
  const menger::SampledItem& drawn = sample.items()[index];
  const std::span<const menger::Slice> slices = sample.slices(index, 0);
  if (slices.empty() || slices[0].length != 1) {
    throw menger::DataLoss("an item does not begin with a description of one row");
  }
  const Run description = RunOf(slices[0]);
  menger_replay_item item = {menger::PackKey(drawn.key),
                             drawn.probability,
                             drawn.priority,
                             drawn.times_sampled,
                             sample.table_items(),
                             description.rows,
                             description.row_bytes,
                             static_cast<std::uint32_t>(columns.size()),
                             0};
  for (const menger::Slice& slice : slices) {
    if (slice == slices[0]) {
      columns.push_back({.rows = 0, .row_bytes = 0, .is_even = 1, .unused = 0});
      run_ends.push_back(runs.size());
      ++item.columns;
      continue;
    }
    const Run run = RunOf(slice);
    menger_replay_column& column = columns.back();
    if (column.rows > 0 && column.row_bytes != run.row_bytes) column.is_even = 0;
    column.rows += run.count;
    column.row_bytes = std::max<std::uint64_t>(column.row_bytes, run.row_bytes);
    runs.push_back(run);
    run_ends.back() = runs.size();
  }
  items.push_back(item);
}

void menger_replay_sampler::Read() {
  items.clear();
  columns.clear();
  run_ends.clear();
  runs.clear();
  for (int i = 0; i < sample.size(); ++i) ReadItem(i);
}

// ---- The interface

menger_replay_sampler* menger_replay_sampler_new(menger_replay_client* client, std::int32_t table) {
  return menger::Made([=] {
    menger::CheckNotNull(client, "client");
    if (table < 0 || table >= client->replay->tables()) {
      throw menger::InvalidArgument("table {} of {}", table, client->replay->tables());
    }
    if (!client->replay->table(table).items.open) {
      throw menger::InvalidArgument(
          "table '{}' has items of steps; this interface is for open ones",
          client->replay->table(table).name);
    }
    auto sampler = std::make_unique<menger_replay_sampler>();
    sampler->replay = client->replay;
    sampler->sampler = client->replay->NewSampler(table);
    return sampler.release();
  });
}

void menger_replay_sampler_delete(menger_replay_sampler* sampler) {
  if (sampler != nullptr) sampler->sample.Release();
  delete sampler;
}

std::int32_t menger_replay_sampler_draw(menger_replay_sampler* sampler, std::int32_t count,
                                        std::int64_t wait, const menger_replay_item** items,
                                        std::uint32_t* item_count,
                                        const menger_replay_column** columns) {
  return menger::With(sampler, [=](menger_replay_sampler& self) {
    menger::CheckNotNull(items, "items");
    menger::CheckNotNull(item_count, "item_count");
    menger::CheckNotNull(columns, "columns");
    self.sampler->SampleInto({.count = count, .deadline = menger::Within(wait)}, self.sample);
    self.Read();
    *items = self.items.data();
    *item_count = static_cast<std::uint32_t>(self.items.size());
    *columns = self.columns.data();
  });
}

std::int32_t menger_replay_sampler_copy(menger_replay_sampler* sampler, std::uint32_t column,
                                        void* to, std::uint64_t bytes) {
  return menger::With(sampler, [=](menger_replay_sampler& self) {
    if (column >= self.columns.size()) {
      throw menger::InvalidArgument("column {} of {}", column, self.columns.size());
    }
    const menger_replay_column& here = self.columns[column];
    if (bytes != here.rows * here.row_bytes) {
      throw menger::InvalidArgument("room of {} bytes for {} rows of {}", bytes, here.rows,
                                    here.row_bytes);
    }
    auto* out = static_cast<std::byte*>(to);
    std::size_t run = column == 0 ? 0 : self.run_ends[column - 1];
    for (; run < self.run_ends[column]; ++run) {
      const menger_replay_sampler::Run& rows = self.runs[run];
      if (rows.row_bytes == here.row_bytes) {
        std::memcpy(out, rows.rows, rows.count * rows.row_bytes);
        out += rows.count * rows.row_bytes;
        continue;
      }
      for (std::size_t row = 0; row < rows.count; ++row, out += here.row_bytes) {
        std::memcpy(out, rows.rows + row * rows.row_bytes, rows.row_bytes);
        std::memset(out + rows.row_bytes, 0, here.row_bytes - rows.row_bytes);
      }
    }
  });
}

void menger_replay_sampler_release(menger_replay_sampler* sampler) {
  if (sampler == nullptr) return;
  sampler->sample.Release();
  sampler->Read();
}
