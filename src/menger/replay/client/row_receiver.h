#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/replay/chunks/item.h"
#include "menger/replay/client/server_link.h"
#include "menger/replay/protocol/messages.h"
#include "menger/replay/sample.h"

namespace menger {

// Fills samples with items whose rows come over the wire (RowsReply).
//
// The rows of a sample lie in memory of this process, run after run, each shown as a chunk of its
// own: the sample is read as any other. The memory is used again once the sample is released, by
// any thread, also after this object has gone. One thread.
class RowReceiver {
 public:
  // The spec outlives the samples.
  explicit RowReceiver(const ItemSpec& items);

  // Takes what follows `reply`. Throws DataLoss for what cannot be rows of these items, ServerGone;
  // the sample is then empty, and the link of no use.
  void Receive(ServerLink& server, const RowsReply& reply, Sample& sample);

 private:
  struct Rows;
  class Pool;

  void TakeHead(ServerLink& server, const RowsReply& reply);
  void LayOut(const RowsReply& reply, Rows& rows) const;
  void Fill(const RowsReply& reply, Sample& sample) const;

  const ItemSpec& spec_;
  const ChunkLayout layout_;            // Of one row: as which each run is shown.
  std::vector<std::uint32_t> leaf_of_;  // A column's.
  const std::shared_ptr<Pool> pool_;

  // Of the sample that comes.
  std::vector<std::byte> head_;
  std::vector<SampledItem> items_;
  std::vector<Slice> slices_;
  std::vector<std::uint16_t> counts_;
  std::vector<RowRun> runs_;
};

}  // namespace menger
