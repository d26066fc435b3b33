#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/sharing/stream_channel.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/replay/protocol/messages.h"
#include "menger/replay/sample.h"

namespace menger {

// Sends samples with their rows (RowsReply) to a client that does not see the store's memory.
//
// Each row goes once, however many items and columns show it, in the order in which rows lie: long
// runs from where they lie, short ones gathered into few pieces. Compressed rows are decompressed
// here: a chunk as it lies is often more than the few rows of it that are wanted. One thread.
class RowSender {
 public:
  // The channel outlives it.
  explicit RowSender(StreamChannel& channel);

  // Returns when all of it has left. Throws Unavailable where the client takes nothing for so long,
  // or `gone` is set, ChannelClosed, DataLoss for compressed rows that are damaged: the stream
  // then ends in the middle and is of no use any longer.
  void Send(const Sample& sample, std::chrono::nanoseconds wait_max, const std::atomic<bool>& gone);

 private:
  // A slice, by where its rows lie, and where it is in the sample.
  struct Place {
    std::uint64_t begin = 0;  // Chunk, leaf, first row: so sorted, rows lie side by side.
    std::uint32_t length = 0;
    std::uint32_t index = 0;
  };
  struct Run {
    ChunkId chunk = 0;
    std::uint16_t leaf = 0;
    std::uint16_t first = 0;
    std::uint32_t rows = 0;
  };

  void Know(const ItemSpec& spec);
  void FindPlaces(const Sample& sample);
  void FindRuns();
  std::uint64_t RowBytes() const;
  void SendHead(const Sample& sample);
  void SendRows(const ChunkView& chunks);
  void Prefetch(const ChunkView& chunks, std::size_t run);
  void Add(std::span<const std::byte> rows, bool stays);
  void SendPieces();
  Deadline Soon() const { return Deadline::After(wait_max_).OrWhen(*gone_); }

  StreamChannel& channel_;
  std::chrono::nanoseconds wait_max_{};  // Of the call that goes on.
  const std::atomic<bool>* gone_ = nullptr;

  // Of the table that was drawn from last.
  const ItemSpec* known_ = nullptr;
  std::optional<SliceReader> reader_;
  std::vector<std::uint16_t> leaf_of_;     // A column's.
  std::vector<int> column_of_;             // One that shows the leaf; -1 if none does.
  std::vector<std::size_t> row_bytes_of_;  // A leaf's.

  // Kept for their memory.
  std::vector<Place> places_;
  std::vector<Run> runs_;
  std::vector<Slice> slices_;  // As they are sent.
  std::vector<std::byte> head_;
  std::vector<std::span<const std::byte>> pieces_;
  const std::unique_ptr<std::byte[]> copies_;  // What short pieces are gathered in.
  std::size_t copied_ = 0;
};

}  // namespace menger
