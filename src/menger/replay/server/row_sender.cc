#include "menger/replay/server/row_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/plain_bytes.h"

namespace menger {
namespace {

// Runs up to this are copied together: a piece of its own costs the system as much.
constexpr std::size_t kCopiedMax = 4096;
constexpr std::size_t kCopiesBytes = std::size_t{256} << 10;

// How many runs before its turn a run's record, and then its rows, are fetched.
constexpr std::size_t kRecordsAhead = 8;
constexpr std::size_t kRowsAhead = 4;
constexpr std::size_t kPrefetchBytes = 512;
constexpr std::size_t kCacheLine = 64;

constexpr std::byte kZeros[kRowAlignment]{};

std::uint64_t KeyOf(ChunkId chunk, std::uint16_t leaf, std::uint16_t row) {
  return std::uint64_t{chunk} << 32 | std::uint64_t{leaf} << 16 | row;
}

std::size_t PaddingAfter(std::size_t bytes) { return -bytes % kRowAlignment; }

}  // namespace

RowSender::RowSender(StreamChannel& channel)
    : channel_(channel), copies_(std::make_unique_for_overwrite<std::byte[]>(kCopiesBytes)) {}

void RowSender::Know(const ItemSpec& spec) {
  if (known_ == &spec) return;
  known_ = nullptr;
  reader_.emplace(spec);
  leaf_of_.clear();
  column_of_.assign(static_cast<std::size_t>(spec.steps.size()), -1);
  row_bytes_of_.clear();
  for (const LeafSpec& leaf : spec.steps.leaves()) row_bytes_of_.push_back(leaf.bytes());
  for (const ItemColumn& column : spec.columns) {
    const int leaf = spec.steps.Find(column.leaf);
    column_of_[static_cast<std::size_t>(leaf)] = static_cast<int>(leaf_of_.size());
    leaf_of_.push_back(static_cast<std::uint16_t>(leaf));
  }
  known_ = &spec;
}

void RowSender::Send(const Sample& sample, std::chrono::nanoseconds wait_max,
                     const std::atomic<bool>& gone) {
  wait_max_ = wait_max;
  gone_ = &gone;
  Know(*sample.spec());
  FindPlaces(sample);
  FindRuns();
  SendHead(sample);
  SendRows(*sample.chunks());
}

void RowSender::FindPlaces(const Sample& sample) {
  const int columns = static_cast<int>(leaf_of_.size());
  places_.clear();
  for (int item = 0; item < sample.size(); ++item) {
    for (int column = 0; column < columns; ++column) {
      for (const Slice& slice : sample.slices(item, column)) {
        places_.push_back({.begin = KeyOf(slice.chunk, leaf_of_[column], slice.offset),
                           .length = slice.length,
                           .index = static_cast<std::uint32_t>(places_.size())});
      }
    }
  }
  std::ranges::sort(places_, [](const Place& a, const Place& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.index < b.index;
  });
}

// What overlaps or touches is one run; a chunk has fewer rows than a slice can count.
void RowSender::FindRuns() {
  runs_.clear();
  slices_.resize(places_.size());
  std::uint64_t run_begin = 0;
  std::uint64_t run_end = 0;  // 0: there is none that could go on.
  for (const Place& place : places_) {
    if (runs_.empty() || place.begin > run_end) {
      runs_.push_back({.chunk = static_cast<ChunkId>(place.begin >> 32),
                       .leaf = static_cast<std::uint16_t>(place.begin >> 16),
                       .first = static_cast<std::uint16_t>(place.begin)});
      run_begin = place.begin;
      run_end = place.begin;
    }
    run_end = std::max(run_end, place.begin + place.length);
    runs_.back().rows = static_cast<std::uint32_t>(run_end - run_begin);
    slices_[place.index] = {.chunk = static_cast<ChunkId>(runs_.size() - 1),
                            .offset = static_cast<std::uint16_t>(place.begin - run_begin),
                            .length = static_cast<std::uint16_t>(place.length)};
  }
}

std::uint64_t RowSender::RowBytes() const {
  std::uint64_t bytes = 0;
  for (const Run& run : runs_) {
    const std::uint64_t rows = run.rows * row_bytes_of_[run.leaf];
    bytes += rows + PaddingAfter(rows);
  }
  return bytes;
}

void RowSender::SendHead(const Sample& sample) {
  const RowsReply reply{.items = static_cast<std::uint32_t>(sample.size()),
                        .slices = slices_.size(),
                        .runs = runs_.size(),
                        .row_bytes = RowBytes(),
                        .table_items = sample.table_items()};
  const std::span<std::byte> room = channel_.Reserve(sizeof reply, Soon());
  if (room.data() == nullptr) throw Unavailable("it does not read its answers");
  std::memcpy(room.data(), &reply, sizeof reply);
  head_.clear();
  AppendArray(sample.items(), head_);
  AppendArray(slices_, head_);
  for (int item = 0; item < sample.size(); ++item) {
    for (int column = 0; column < static_cast<int>(leaf_of_.size()); ++column) {
      AppendPlain(static_cast<std::uint16_t>(sample.slices(item, column).size()), head_);
    }
  }
  for (const Run& run : runs_) AppendPlain(RowRun{.leaf = run.leaf, .rows = run.rows}, head_);
  pieces_.clear();
  pieces_.emplace_back(head_);
}

void RowSender::SendRows(const ChunkView& chunks) {
  for (std::size_t i = 0; i < std::min(kRecordsAhead, runs_.size()); ++i) {
    chunks.Prefetch(runs_[i].chunk);
  }
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (i + kRecordsAhead < runs_.size()) chunks.Prefetch(runs_[i + kRecordsAhead].chunk);
    if (i + kRowsAhead < runs_.size()) Prefetch(chunks, i + kRowsAhead);
    const Run& run = runs_[i];
    const Slice slice{
        .chunk = run.chunk, .offset = run.first, .length = static_cast<std::uint16_t>(run.rows)};
    const StridedView view = reader_->Find(chunks, slice, column_of_[run.leaf]);
    const std::span rows(view.data, view.item * static_cast<std::size_t>(view.count));
    Add(rows, /*stays=*/!chunks.is_compressed(run.chunk));
    Add(std::span(kZeros).first(PaddingAfter(rows.size())), /*stays=*/true);
  }
  SendPieces();
}

void RowSender::Prefetch(const ChunkView& chunks, std::size_t run) {
  const Run& next = runs_[run];
  if (chunks.is_compressed(next.chunk)) return;
  const Slice slice{.chunk = next.chunk, .offset = next.first, .length = 1};
  const StridedView view = reader_->Find(chunks, slice, column_of_[next.leaf]);
  const std::size_t bytes = std::min(view.item * next.rows, kPrefetchBytes);
  for (std::size_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(view.data + i);
}

// What does not stay where it is until the next row is asked for is sent before.
void RowSender::Add(std::span<const std::byte> rows, bool stays) {
  if (rows.empty()) return;
  const bool copy = rows.size() <= kCopiedMax;
  if (pieces_.size() == StreamChannel::kPiecesMax ||
      (copy && rows.size() > kCopiesBytes - copied_)) {
    SendPieces();
  }
  if (!copy) {
    pieces_.push_back(rows);
    if (!stays) SendPieces();
    return;
  }
  std::byte* const to = &copies_[copied_];
  std::memcpy(to, rows.data(), rows.size());
  copied_ += rows.size();
  const bool goes_on = !pieces_.empty() && pieces_.back().data() + pieces_.back().size() == to;
  if (goes_on) {
    pieces_.back() = {pieces_.back().data(), pieces_.back().size() + rows.size()};
  } else {
    pieces_.emplace_back(to, rows.size());
  }
}

void RowSender::SendPieces() {
  if (!channel_.SendBytes(pieces_, Soon())) throw Unavailable("it does not read its answers");
  pieces_.clear();
  copied_ = 0;
}

}  // namespace menger
