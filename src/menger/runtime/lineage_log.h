#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/runtime/control_store.h"
#include "menger/runtime/ids.h"

namespace menger {

struct LineageLogOptions {
  std::string prefix;       // Of its keys in the table kLineage: another log has another.
  std::uint64_t build = 0;  // Of the program: another one cannot run these specifications.
  // Of specifications that go into one record of the store; the last may exceed it. A larger record
  // lives longer for the sake of few that are alive.
  std::size_t segment_bytes = std::size_t{1} << 20;
  std::chrono::nanoseconds deadline = std::chrono::seconds(10);  // Of a call of the store.
};

// A specification that a LineageLog has been given.
using LineageEntry = std::uint32_t;

inline constexpr std::size_t kLineageBytesMax = std::size_t{8} << 20;  // Of one specification.

// Keeps the specifications of calls in the control store, from which their results can be made
// again, for as long as anybody may need them.
//
// They are written in batches: one that is forgotten before the next Flush, as nearly all are,
// costs no more than a few words here and never reaches the store. Others lie in segments, many in
// one record. A segment of which all are forgotten is deleted; one of which more than half of the
// bytes are forgotten is deleted once the rest has been written again with the next flush. So the
// store holds at most twice the bytes that are alive, and what two flushes have written; and writes
// at most twice those that were alive at a flush: what is written again is less than what was
// forgotten of that segment, and nothing is forgotten twice.
//
// About 11 ns for one that is appended and forgotten. Memory: 40 bytes for each that is alive, and
// copies of those that are being written. One thread at a time; the store answers on any.
class LineageLog {
 public:
  // The store outlives the log.
  LineageLog(ControlStore& store, LineageLogOptions options);

  // The bytes stay as they are until Forget. Throws InvalidArgument for more than kLineageBytesMax.
  LineageEntry Append(const Id& id, std::span<const std::byte> specification);
  void Forget(LineageEntry entry);

  // Begins to write all that is alive and was not written before. Does no more than Poll while four
  // flushes have not ended. Call both now and then: what the store has refused is tried again.
  void Flush();
  // Takes what the store has answered.
  void Poll();

  // How many have been appended, and of how many of these, the first ones, each is safe in the
  // store or forgotten: what depends on a specification may leave the node once `durable` has
  // reached what `appended` was.
  std::uint64_t appended() const { return appended_; }
  std::uint64_t durable() const { return durable_; }

  struct Counts {
    std::uint64_t alive = 0;
    std::uint64_t unwritten = 0;  // Of these.
    std::uint64_t segments = 0;
    std::uint64_t stored_bytes = 0;   // Of segments, also of those that are being written.
    std::uint64_t written_bytes = 0;  // In all.
  };
  const Counts& counts() const { return counts_; }
  const std::optional<Error>& last_error() const { return last_error_; }  // Of the store.

 private:
  struct Slot {
    Id id;
    const std::byte* data = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t segment = 0;   // kNone: it is unwritten.
    std::uint32_t previous = 0;  // Of the same segment, or of those unwritten.
    std::uint32_t next = 0;      // The same; or of free slots.
  };
  struct Segment {
    enum class State : std::uint8_t { kFree, kWriting, kStored, kMoved, kDeleting };
    State state = State::kFree;
    bool is_sparse = false;    // It is in sparse_.
    std::uint32_t first = 0;   // Of its slots.
    std::uint64_t number = 0;  // In its key.
    std::uint64_t flush = 0;   // Which wrote it; kMoved: with which the rest is written again.
    std::uint64_t bytes = 0;
    std::uint64_t alive_bytes = 0;
    std::string value;  // Until it is stored.
  };
  struct FlushState {
    std::uint64_t appended = 0;  // When it began.
    int segments = 0;            // That are not stored yet.
  };
  struct Answers;  // What the store has said, on whatever thread.

  static constexpr std::uint32_t kNone = UINT32_MAX;

  void Link(std::uint32_t slot, std::uint32_t& first);
  void Unlink(const Slot& slot, std::uint32_t& first);
  void MoveSparse();
  void BeginFlush();
  void WriteSegment(std::uint64_t flush);
  std::uint32_t NewSegment();
  void Delete(std::uint32_t segment);
  void Send();
  void TakeAnswers();
  void EndFlushes();

  ControlStore& store_;
  const LineageLogOptions options_;
  const std::shared_ptr<Answers> answers_;  // Shared with completions, which may come later.

  std::vector<Slot> slots_;
  std::uint32_t free_slot_ = kNone;
  std::uint32_t unwritten_ = kNone;

  std::vector<Segment> segments_;
  std::vector<std::uint32_t> free_segments_;
  std::vector<std::uint32_t> sparse_;  // More than half is forgotten.
  std::deque<std::uint32_t> moved_;    // Wait for their flush.
  std::vector<std::uint32_t> to_send_;
  std::uint64_t segment_number_ = 0;

  std::deque<FlushState> flushes_;  // That have not ended; the first is number ended_ + 1.
  std::uint64_t ended_ = 0;
  std::uint64_t appended_ = 0;
  std::uint64_t durable_ = 0;
  Counts counts_;
  std::optional<Error> last_error_;
};

// Calls `visit` once with each specification that logs with this prefix have in the store, some of
// which may have been forgotten. Returns the keys of their segments, to be deleted when what was
// visited is kept elsewhere. Throws FailedPrecondition if they are another build's, DataLoss if
// they are damaged, and as RunScan.
using LineageVisitor = std::function<void(const Id& id, std::span<const std::byte> specification)>;
std::vector<std::string> LoadLineage(ControlStore& store, const std::string& prefix,
                                     std::uint64_t build, Deadline deadline,
                                     const LineageVisitor& visit);

}  // namespace menger
