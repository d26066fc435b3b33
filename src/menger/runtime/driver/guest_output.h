#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "menger/runtime/driver/line_queue.h"
#include "menger/runtime/net/printed_line.h"
#include "menger/runtime/node/node_records.h"

namespace menger {

// What guests print, until it goes to the nodes whose programs they run: for each of these some
// bytes wait, and some a second go, so that it neither fills memory nor delays what nodes tell each
// other. Any thread.
class GuestOutput {
 public:
  struct Options {
    std::size_t waiting_bytes_max = std::size_t{256} << 10;
    std::size_t second_bytes_max = std::size_t{1} << 20;
    std::size_t letter_bytes_max = std::size_t{64} << 10;
    std::int64_t pause = 5'000'000;  // Nanoseconds between two letters: lines gather.
  };
  struct Batch {
    std::vector<PrintedLine> lines;
    bool last = false;  // All that was printed before Mark is out with these.
  };

  GuestOutput() : GuestOutput(Options{}) {}
  explicit GuestOutput(const Options& options) : options_(options) {}

  // A worker that runs that program is started, or gone.
  void Begin(WorkerIndex worker, ProgramIndex program);
  void End(WorkerIndex worker);
  void Drop(ProgramIndex program);  // Nobody wants to know any longer what its workers print.

  enum class Added : std::uint8_t { kNoGuest, kKept, kFirst };  // kFirst: nothing waited.
  Added Add(WorkerIndex worker, pid_t process, std::string_view text);
  // The next Batch with which nothing is left has `last`.
  void Mark(ProgramIndex program);

  // Whether there may be something to take, soon if not now.
  bool waits() const { return waiting_.load(std::memory_order_relaxed); }
  Batch Take(ProgramIndex program, std::int64_t now);

 private:
  struct Waiting {
    LineQueue<PrintedLine> lines;
    bool marked = false;
    double allowance = 0;  // Bytes that may go,
    std::int64_t at = 0;   // as of then.
    std::int64_t next_at = 0;
  };
  // With mutex_ held.
  Waiting& Of(ProgramIndex program);
  void LookWhetherAnyWaits();

  const Options options_;
  std::atomic<bool> waiting_{false};
  std::mutex mutex_;
  std::map<WorkerIndex, ProgramIndex> programs_;  // Guarded by mutex_.
  std::map<ProgramIndex, Waiting> output_;        // Likewise.
};

}  // namespace menger
