#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/replay/client/kept_steps.h"
#include "menger/replay/client/served_replay.h"

namespace menger {

// Writes streams of steps to a replay server, over one connection.
//
// A step is copied twice here: into the ring, and into what is kept, in case that the server does
// not come to insert what refers to it. Kept are the steps of the history and those since the first
// item that was not acknowledged.
//
// A stream that was never begun on this connection (a new one, one of a server that has gone, one
// that has failed there) is sent from its first kept step on when it is flushed next. Items have
// sequence numbers, so those that were inserted before all the same are not inserted twice.
class ServedWriter final : public ReplayWriter {
 public:
  ServedWriter(std::shared_ptr<const ServerFinder> finder, const Spec& steps,
               const WriterOptions& options, int streams);

  int streams() const override { return static_cast<int>(streams_.size()); }
  std::int64_t Append(int stream, std::span<const std::byte* const> leaves,
                      std::uint64_t version) override;
  void Add(int stream, int table, std::optional<double> priority,
           std::span<const StepRange> columns) override;
  void Flush(int stream, const Deadline& deadline) override;
  void Await(const Deadline& deadline) override;
  std::int64_t steps(int stream) const override { return streams_[stream].steps.end(); }
  int pending(int stream) const override { return static_cast<int>(streams_[stream].items.size()); }

 private:
  // An item that was not acknowledged.
  struct Item {
    std::uint64_t sequence = 0;
    std::uint32_t table = 0;
    std::optional<double> priority;
    std::int64_t first = 0;  // The oldest of its steps.
    std::int64_t end = 0;    // Steps that there were when it was added.
    std::vector<StepRange> ranges;
  };
  struct Stream {
    std::uint64_t id = 0;
    KeptSteps steps;
    std::deque<Item> items;
    std::uint64_t items_added = 0;
    bool begun = false;         // On this connection: all above was sent.
    std::uint64_t flushed = 0;  // Items up to this sequence are to be inserted.
  };
  // A Flush that was not answered.
  struct Asked {
    int stream = 0;
    std::uint64_t flushed = 0;
    Deadline deadline;
  };

  // Throws what is wrong with an item.
  std::int64_t FirstStepOf(const Stream& stream, int table,
                           std::span<const StepRange> columns) const;
  void Begin(ServerLink& link, int stream);
  static void SendStep(ServerLink& link, int index, const Stream& stream, std::int64_t step);
  static void SendItem(ServerLink& link, int index, const Item& item);
  void SendFlush(ServerLink& link, int stream, const Deadline& deadline);
  void TakeAnswer(std::span<const std::byte> answer);
  void TakeAnswers(ServerLink& link, std::size_t left);
  void Forget(Stream& stream, std::uint64_t flushed);
  void FlushAgain(ServerLink& link, const Deadline& deadline);
  void Disconnected();
  // Calls `work` where there is a server; false if it has gone meanwhile, which Await will mend.
  template <typename Work>
  bool Try(Work work);

  const std::shared_ptr<const ServerFinder> finder_;
  const WriterOptions options_;
  const ChunkLayout layout_;  // Of one row: for sizes.
  const std::size_t row_bytes_;
  const std::size_t bytes_max_;
  std::vector<bool> takes_;  // Whether a table's items are of these steps.
  std::unique_ptr<ServerLink> link_;
  std::vector<Stream> streams_;
  std::deque<Asked> asked_;
  std::optional<Error> failure_;  // The first since the last Await.
};

}  // namespace menger
