#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/plain_bytes.h"
#include "menger/base/sharing/message_channel.h"
#include "menger/base/sharing/ring_channel.h"
#include "menger/base/sharing/stream_channel.h"
#include "menger/replay/protocol/messages.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/server/row_requests.h"
#include "menger/replay/server/row_sender.h"

namespace menger {

// What a connection asks of its server.
struct ServerCalls {
  std::function<ServerInfo()> info;
  std::function<void(const Deadline& deadline)> checkpoint;
};

// One client of a replay server: reads its requests, does them on the store, answers. It trusts
// nothing that it reads. Streams of its writers end with Serve; rows of samples that it has not
// released stay until this object goes, which its owner keeps for as long as the client may read
// them: until the socket has hung up.
//
// Serve is one thread's; Finish, Abandon and done are any thread's.
class Connection {
 public:
  // The store and the calls outlive it. Over rings, beside `socket`: the client sees the store's
  // memory. Over a stream, samples go with their rows, and are not held for the client.
  Connection(ReplayStore& store, const ServerCalls& calls, std::unique_ptr<RingChannel> channel,
             FileDescriptor socket);
  Connection(ReplayStore& store, const ServerCalls& calls, std::unique_ptr<StreamChannel> channel);

  // Until the client has gone, says what makes no sense, Finish or Abandon; the client is told by
  // its socket that nothing more will be said. Throws nothing.
  void Serve();

  // Serve returns once it has answered what has come.
  void Finish();
  // The client has gone, or the server goes: ends waits, within a second those in tables, and
  // answers nothing any longer.
  void Abandon();

  bool done() const { return done_.load(std::memory_order_acquire); }
  bool has_leases() const { return !leases_.empty(); }  // Once it is done.

 private:
  // A writer's stream. Once it has failed, what comes for it is passed over until the client has
  // begun it anew.
  struct Stream {
    std::uint64_t id = 0;
    std::int64_t first_step = 0;                // The client's number of the writer's step 0.
    std::shared_ptr<const ChunkLayout> layout;  // Of one step.
    std::unique_ptr<TrajectoryWriter> writer;
    WriterOptions options;
    std::size_t pending_bytes = 0;  // Of items that wait for Flush.
    std::optional<Error> failure;
  };

  void Handle(std::span<const std::byte> request);
  void BeginStreams(std::string_view text);
  WriterOptions Bounded(const WriterOptions& options, std::size_t streams) const;
  void CountPending(Stream& stream, std::span<const StepRange> ranges);
  void ForgetPending(Stream& stream);
  void Append(PlainReader& reader);
  void Add(PlainReader& reader);
  void Flush(PlainReader& reader);
  void SampleItems(PlainReader& reader);
  std::unique_ptr<Sample> Draw(Table& table, const SampleCall& request);
  void SendItems(const Sample& sample);
  void Release(PlainReader& reader);
  void Update(PlainReader& reader);
  void Delete(PlainReader& reader);
  void Info(PlainReader& reader);
  void Checkpoint(PlainReader& reader);
  void Reset(PlainReader& reader);
  void FlushRows(PlainReader& reader);

  // Throw DataLoss for what there is not.
  Stream& StreamAt(std::uint32_t index);
  Table& TableAt(std::uint32_t index);
  Deadline Within(std::int64_t nanoseconds) const;

  // Calls `work`; what it throws is the answer.
  template <typename Work>
  void AnswerErrors(Work work);
  void AnswerDone(const Error* error, std::uint32_t stream = 0);
  void AnswerText(std::string_view text);
  template <typename Reply>
  void AnswerPlain(const Reply& reply);
  std::span<std::byte> Room(std::size_t bytes);
  void Send();

  ReplayStore& store_;
  const ServerCalls& calls_;
  const FileDescriptor socket_;
  const std::unique_ptr<RowSender> rows_;
  const std::unique_ptr<MessageChannel> channel_;
  std::atomic<bool> finishing_{false};
  std::atomic<bool> gone_{false};
  std::atomic<bool> done_{false};

  std::vector<Stream> streams_;
  std::size_t pending_bytes_ = 0;  // Of all of them.
  RowRequests row_requests_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Sample>> leases_;
  std::int64_t leased_items_ = 0;
  std::vector<std::unique_ptr<Sample>> free_samples_;

  // Kept for their memory.
  std::vector<const std::byte*> leaves_;
  std::vector<StepRange> ranges_;
  std::vector<PriorityUpdate> updates_;
  std::vector<ItemKey> keys_;
  std::vector<std::uint16_t> counts_;
};

}  // namespace menger
