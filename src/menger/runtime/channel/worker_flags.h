#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "menger/runtime/channel/doorbell.h"

namespace menger {

// A flag for each worker of a node: it has written something that the node has not read. So the
// node looks at those alone that have, however many there are that do nothing.
//
// Valid as zero bytes, in memory that all workers can write. One that scribbles over it makes the
// node look in vain, or look at others late: now and then it looks at all of them.
//
// Nothing is lost: a worker publishes, then looks at its flag, and the node takes a flag down, then
// looks at what is published. All four are sequentially consistent, the publishing, too: so what a
// worker has published that finds its flag up still is seen by the node when it looks.
class WorkerFlags {
 public:
  static constexpr std::size_t kWorkersMax = 32'768;

  // By the worker with this place, after it has published. One that has something unread pays no
  // more than a look.
  void Raise(std::size_t place) {
    std::atomic<std::uint64_t>& word = words_[place / 64];
    const std::uint64_t flag = std::uint64_t{1} << place % 64;
    if ((word.load(std::memory_order_seq_cst) & flag) == 0) {
      word.fetch_or(flag, std::memory_order_seq_cst);
    }
  }

  // By the node: takes down what is up of the first `places` flags, and calls `visit` with the
  // place of each.
  template <typename Visit>
  void TakeDown(std::size_t places, const Visit& visit) {
    for (std::size_t i = 0; i < (places + 63) / 64; ++i) {
      if (words_[i].load(std::memory_order_seq_cst) == 0) continue;
      std::uint64_t raised = words_[i].exchange(0, std::memory_order_seq_cst);
      for (; raised != 0; raised &= raised - 1) {
        const std::size_t place = i * 64 + static_cast<std::size_t>(std::countr_zero(raised));
        if (place < places) visit(place);
      }
    }
  }

 private:
  alignas(64) std::array<std::atomic<std::uint64_t>, kWorkersMax / 64> words_{};
};

// What a node shares with all of its workers.
struct NodeBell {
  Doorbell doorbell;
  WorkerFlags flags;
};

}  // namespace menger
