#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/error.h"
#include "menger/replay/column_writer.h"
#include "menger/replay/sample.h"
#include "menger/replay/table.h"
#include "menger/replay/trajectory_writer.h"

namespace menger {

// What clients of a replay server and the server say to each other, message by message, over a
// MessageChannel (base/sharing): rings, or a stream. Each begins with the number of its kind; its
// fields are plain bytes, as this build lays them out: the greeting compares versions.
//
// The client asks, the server answers in order; Append, Add, Release and what is said of columns
// have no answer, Flush may have others before it. A server trusts nothing in a request: what is
// not a message is DataLoss, and ends the connection.

// Counts up with each change of what follows, or of the types that it names.
inline constexpr std::uint32_t kReplayProtocol = 3;

enum class RequestKind : std::uint32_t {
  kTables = 1,  // -> Text: EncodeTables.
  kServer,      // -> Text: EncodeServer.
  kStreams,     // StreamsRequest as text. -> Done.
  kAppend,      // AppendRequest, then a step's leaves, one after the other.
  kAdd,         // AddRequest, then a StepRange a column.
  kFlush,       // FlushRequest. -> Done.
  kSample,      // SampleCall. -> Items, in one or more parts, or Rows; or Done, with an error.
  kRelease,     // ReleaseRequest.
  kUpdate,      // TableRequest, then PriorityUpdates. -> Found.
  kDelete,      // TableRequest, then ItemKeys. -> Found.
  kInfo,        // TableRequest. -> Info.
  kCheckpoint,  // WaitRequest. -> Done.
  kReset,       // TableRequest. -> Done.
  kBeginRows,   // BeginRowsRequest: a ColumnWriter, the connection's only one, begins anew.
  kColumn,      // ColumnRequest.
  kRow,         // RowRequest, then its bytes.
  kAddRows,     // AddRowsRequest, then as many RowRanges.
  kFlushRows,   // WaitRequest. -> Done, as soon as some items were inserted.
};

// One step of a stream, by the version that acted in it.
struct AppendRequest {
  RequestKind kind = RequestKind::kAppend;
  std::uint32_t stream = 0;
  std::uint64_t version = 0;
};

// An item of the stream's steps; its ranges count in the client's numbers of steps.
struct AddRequest {
  RequestKind kind = RequestKind::kAdd;
  std::uint32_t stream = 0;
  std::uint32_t table = 0;
  std::uint32_t has_priority = 0;
  double priority = 0;
  std::uint64_t sequence = 0;  // In its stream, from 1 on.
};

// Inserts what was added to the stream, within `wait`.
struct FlushRequest {
  RequestKind kind = RequestKind::kFlush;
  std::uint32_t stream = 0;
  std::int64_t wait = 0;  // Nanoseconds, here and below.
};

// As SampleRequest.
struct SampleCall {
  RequestKind kind = RequestKind::kSample;
  std::uint32_t table = 0;
  std::uint32_t count = 0;
  std::uint16_t has_bound = 0;
  std::uint16_t whole = 0;
  std::int64_t wait = 0;
  std::uint64_t version = 0;
  std::uint64_t staleness_max = 0;
  std::uint64_t lease = 0;  // By which it is released: a number of the client's.
};

// Gives back the rows of a sample.
struct ReleaseRequest {
  RequestKind kind = RequestKind::kRelease;
  std::uint32_t unused = 0;
  std::uint64_t lease = 0;
};

// Something about one table, or entries of it that follow.
struct TableRequest {
  RequestKind kind = RequestKind::kInfo;
  std::uint32_t table = 0;
  std::uint64_t count = 0;  // Of what follows.
};

// Something that is to be done within `wait`.
struct WaitRequest {
  RequestKind kind = RequestKind::kCheckpoint;
  std::uint32_t unused = 0;
  std::int64_t wait = 0;
};

// A writer of columns begins: its stream, as Table::Insert's.
struct BeginRowsRequest {
  RequestKind kind = RequestKind::kBeginRows;
  std::uint32_t unused = 0;
  std::uint64_t stream = 0;  // Random: a stream of Table::Insert.
};

// A column begins, or begins anew.
struct ColumnRequest {
  RequestKind kind = RequestKind::kColumn;
  std::uint32_t column = 0;
  ColumnOptions options;
};

// One row of a column, by its number.
struct RowRequest {
  RequestKind kind = RequestKind::kRow;
  std::uint32_t column = 0;
  std::int64_t number = 0;
  std::uint64_t bytes = 0;
};

// An item of an open table, of rows that were sent.
struct AddRowsRequest {
  RequestKind kind = RequestKind::kAddRows;
  std::uint32_t table = 0;
  std::uint32_t has_priority = 0;
  std::uint32_t ranges = 0;
  double priority = 0;
  std::uint64_t sequence = 0;  // In its stream, from 1 on.
};

enum class ReplyKind : std::uint32_t {
  kDone = 1,  // DoneReply, then the error's text.
  kText,      // TextReply, then the text.
  kItems,     // ItemsReply, then SampledItems, Slices, and how many of these a column has.
  kFound,     // FoundReply.
  kInfo,      // InfoReply.
  kRows,      // RowsReply, and bytes that follow it.
};

// It is done, or was not: then why.
struct DoneReply {
  ReplyKind kind = ReplyKind::kDone;
  std::uint32_t failed = 0;
  std::uint32_t code = 0;    // ErrorCode, where it failed.
  std::uint32_t stream = 0;  // Of a Flush; of FlushRows how many items still wait.
};

// A text follows.
struct TextReply {
  ReplyKind kind = ReplyKind::kText;
  std::uint32_t unused = 0;
};

// Items that were drawn, or a part of them, for a client that sees the server's memory.
struct ItemsReply {
  ReplyKind kind = ReplyKind::kItems;
  std::uint32_t is_last = 0;
  std::uint32_t items = 0;
  std::uint32_t slices = 0;
  std::int64_t table_items = 0;
};

// What was drawn, for a client that does not see the server's memory. Behind the message follow, as
// bytes of the stream: SampledItems, Slices, how many of these a column has (all as in ItemsReply,
// but a slice names a run instead of a chunk), RowRuns, and their rows, run after run, each of
// which begins at a multiple of kRowAlignment. Each row comes once. Nothing is leased.
struct RowsReply {
  ReplyKind kind = ReplyKind::kRows;
  std::uint32_t items = 0;
  std::uint64_t slices = 0;
  std::uint64_t runs = 0;
  std::uint64_t row_bytes = 0;  // Of all runs.
  std::int64_t table_items = 0;
};
// Consecutive rows of one leaf.
struct RowRun {
  std::uint32_t leaf = 0;
  std::uint32_t rows = 0;
};
inline constexpr std::size_t kRowAlignment = 16;

// How many of the entries there were.
struct FoundReply {
  ReplyKind kind = ReplyKind::kFound;
  std::uint32_t unused = 0;
  Found found;
};

// What the table holds and has seen.
struct InfoReply {
  ReplyKind kind = ReplyKind::kInfo;
  std::uint32_t unused = 0;
  TableInfo info;
};

// A writer's streams, as it asks for them. The first step that it will append to each, by its own
// count, and the most that it has to say.
struct StreamsRequest {
  struct Stream {
    std::uint32_t index = 0;
    std::uint64_t id = 0;  // Random: a stream of Table::Insert.
    std::int64_t first_step = 0;
  };
  std::vector<Stream> streams;
  Spec steps;
  WriterOptions options;
};

// As JSON, which is small and seldom. What is no such text, or beyond sensible bounds (65,536
// streams; steps of 1 GiB), is DataLoss.
std::string EncodeStreams(const StreamsRequest& request);
StreamsRequest DecodeStreams(std::string_view text);

// Of each table what a client may know: all but its seed and shard.
std::string EncodeTables(std::span<const TableOptions* const> tables);
std::vector<TableOptions> DecodeTables(std::string_view text);

// What a server tells of itself.
struct ServerInfo {
  struct ServedTable {
    std::string name;
    std::string sampler;
    std::string remover;
    std::int64_t items_max = 0;
    std::uint64_t bytes_max = 0;
    TableInfo info;
  };
  std::int64_t process = 0;
  double seconds = 0;  // Since it began to serve.
  int connections = 0;
  std::int64_t refused = 0;  // Who came while there were too many.
  std::uint64_t bytes = 0;   // Of chunks.
  std::uint64_t bytes_max = 0;
  std::string durability;  // "none", "checkpoint", "journal".
  std::string trouble;     // ReplayKeeper's.
  std::vector<ServedTable> tables;
};
std::string EncodeServer(const ServerInfo& info);
ServerInfo DecodeServer(std::string_view text);

// What connections begin with: a Greeting from the client, a Welcome from the server. Over a Unix
// socket there comes with it the channel's descriptor, and the arena's and the records' where they
// were asked for; over TCP both are messages of the stream that goes on as the channel. A server
// that refuses sends the reason behind its Welcome.
//
// After that, who asks or answers no more says so by the Unix socket with a byte (SayTheEnd), or
// closes it. Rows of samples stay until the client has closed it. A stream is ended.
struct Greeting {
  std::uint64_t magic = kMagic;
  std::uint32_t protocol = kReplayProtocol;
  std::uint32_t wants_memory = 0;
  std::uint64_t ring_bytes = 0;

  static constexpr std::uint64_t kMagic = 0x79616c7065726567;
};
enum class Refusal : std::uint32_t {
  kNone,
  kForGood,
  kFull,  // For now: ask again.
};
// The server's answer to a Greeting.
struct Welcome {
  std::uint64_t magic = Greeting::kMagic;
  std::uint32_t protocol = kReplayProtocol;
  std::uint32_t refused = 0;  // Refusal.
  std::uint64_t server = 0;   // A random number of this life of the server.
  std::uint64_t arena_bytes = 0;
};
inline constexpr std::size_t kWelcomeBytesMax = 4096;

// The capacity of a channel whose client has asked for so much: both ends count with it.
std::size_t ChannelCapacity(std::uint64_t asked);

}  // namespace menger
