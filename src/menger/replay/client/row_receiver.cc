#include "menger/replay/client/row_receiver.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "menger/base/plain_bytes.h"
#include "menger/tensor/memory.h"

namespace menger {
namespace {

constexpr std::size_t kFreeMax = 4;
constexpr std::uint64_t kSlicesMax = std::uint64_t{1} << 30;
constexpr std::size_t kMemoryMin = std::size_t{1} << 20;

std::uint64_t Padded(std::uint64_t bytes) {
  return (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

void Need(bool holds, const char* what) {
  if (!holds) throw DataLoss("a replay server sent {}", what);
}

}  // namespace

struct RowReceiver::Rows {
  // Room for so much; what was there is lost.
  void Reserve(std::uint64_t bytes, std::size_t runs) {
    if (memory == nullptr || memory->size() < bytes) {
      memory.reset();
      memory = AllocatePlainMemory(std::bit_ceil(std::max<std::uint64_t>(bytes, kMemoryMin)));
    }
    if (capacity < runs) {
      capacity = std::bit_ceil(runs);
      records = std::make_unique<ChunkRecord[]>(capacity);
    }
  }

  std::unique_ptr<Memory> memory;
  std::unique_ptr<ChunkRecord[]> records;  // A run's.
  std::size_t capacity = 0;
};

// Any thread.
class RowReceiver::Pool {
 public:
  std::unique_ptr<Rows> Take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Rows>();
    std::unique_ptr<Rows> rows = std::move(free_.back());
    free_.pop_back();
    return rows;
  }
  void Give(std::unique_ptr<Rows> rows) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kFreeMax) free_.push_back(std::move(rows));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Rows>> free_;
};

RowReceiver::RowReceiver(const ItemSpec& items)
    : spec_(items), layout_(items.steps, 1), pool_(std::make_shared<Pool>()) {
  for (const ItemColumn& column : items.columns) {
    leaf_of_.push_back(static_cast<std::uint32_t>(items.steps.Find(column.leaf)));
  }
}

void RowReceiver::Receive(ServerLink& server, const RowsReply& reply, Sample& sample) {
  TakeHead(server, reply);
  const std::shared_ptr<Rows> rows(pool_->Take().release(), [pool = pool_](Rows* gone) {
    pool->Give(std::unique_ptr<Rows>(gone));
  });
  LayOut(reply, *rows);
  server.ReceiveBytes({rows->memory->data() + layout_.bytes(), reply.row_bytes});
  sample.Begin(ChunkView(rows->records.get(), rows->memory->data()), spec_, reply.table_items,
               rows);
  Fill(reply, sample);
}

void RowReceiver::TakeHead(ServerLink& server, const RowsReply& reply) {
  Need(reply.items <= kSampleItemsMax && reply.slices <= kSlicesMax && reply.runs <= reply.slices,
       "more than a sample can have");
  const std::uint64_t counts = reply.items * leaf_of_.size();
  head_.resize(reply.items * sizeof(SampledItem) + reply.slices * sizeof(Slice) +
               counts * sizeof(std::uint16_t) + reply.runs * sizeof(RowRun));
  server.ReceiveBytes(head_);
  PlainReader reader(head_);
  reader.TakeInto(reply.items, items_);
  reader.TakeInto(reply.slices, slices_);
  reader.TakeInto(counts, counts_);
  reader.TakeInto(reply.runs, runs_);
}

// A chunk begins where its leaf would have to, so that the run comes to lie where it is: before the
// first run is room for that.
void RowReceiver::LayOut(const RowsReply& reply, Rows& rows) const {
  std::uint64_t bytes = 0;
  for (const RowRun& run : runs_) {
    Need(run.leaf < static_cast<std::uint32_t>(spec_.steps.size()) && run.rows <= kChunkRowsMax,
         "rows of a leaf that there is not");
    bytes += Padded(run.rows * layout_.row_bytes(static_cast<int>(run.leaf)));
  }
  Need(bytes == reply.row_bytes, "another number of bytes than its rows have");
  rows.Reserve(layout_.bytes() + bytes, runs_.size());
  std::uint64_t begin = layout_.bytes();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const int leaf = static_cast<int>(runs_[i].leaf);
    ChunkRecord& record = rows.records[i];
    record.rows.store(runs_[i].rows, std::memory_order_relaxed);
    record.data_offset = begin - layout_.offset(leaf);
    record.steps_id = layout_.steps_id();
    record.capacity = 1;
    const std::uint64_t run_bytes = Padded(runs_[i].rows * layout_.row_bytes(leaf));
    record.bytes = run_bytes;
    begin += run_bytes;
  }
}

void RowReceiver::Fill(const RowsReply& reply, Sample& sample) const {
  std::span<const Slice> rest = slices_;
  const std::size_t columns = leaf_of_.size();
  for (std::size_t item = 0; item < reply.items; ++item) {
    const std::span<const std::uint16_t> counts =
        std::span(counts_).subspan(item * columns, columns);
    std::size_t all = 0;
    for (std::size_t column = 0; column < columns; ++column) {
      Need(all + counts[column] <= rest.size(), "fewer slices than it said");
      for (const Slice& slice : rest.subspan(all, counts[column])) {
        Need(slice.chunk < runs_.size() && runs_[slice.chunk].leaf == leaf_of_[column] &&
                 std::uint32_t{slice.offset} + slice.length <= runs_[slice.chunk].rows,
             "items whose rows it did not send");
      }
      all += counts[column];
    }
    sample.Add(items_[item], rest.first(all), counts);
    rest = rest.subspan(all);
  }
}

}  // namespace menger
