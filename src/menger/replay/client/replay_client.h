#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/replay/sample.h"
#include "menger/replay/table.h"
#include "menger/replay/trajectory_writer.h"
#include "menger/tensor/spec.h"

namespace menger {

// The server of the tables has not answered for as long as the client was told to wait for it: what
// was asked may have been done or not.
class ReplayLost : public Error {
 public:
  explicit ReplayLost(const std::string& why) : Error(ErrorCode::kUnavailable, why) {}
};

// Throws InvalidArgument unless the index ("stream", "table") is one of `count`.
void CheckIndex(const char* what, int index, int count);

// Streams of steps (one an environment) that one thread at a time writes, and items that refer to
// their steps: a TrajectoryWriter for each stream, wherever the tables are. Streams count from 0,
// steps of each from 0, tables as in the client that made it.
class ReplayWriter {
 public:
  virtual ~ReplayWriter() = default;

  virtual int streams() const = 0;

  // As TrajectoryWriter's. Where the tables are elsewhere, what a full store has to say is told by
  // Flush or Await.
  virtual std::int64_t Append(int stream, std::span<const std::byte* const> leaves,
                              std::uint64_t version) = 0;
  virtual void Add(int stream, int table, std::optional<double> priority,
                   std::span<const StepRange> columns) = 0;

  // Inserts what was added to the stream, as TrajectoryWriter's; but it may return before that is
  // done. What could not be inserted in time is kept for another Flush.
  virtual void Flush(int stream, const Deadline& deadline) = 0;

  // Returns when all that was flushed is in its tables. Throws what Flush would have thrown.
  virtual void Await(const Deadline& deadline) = 0;

  virtual std::int64_t steps(int stream) const = 0;  // Appended so far.
  virtual int pending(int stream) const = 0;         // Items that are not known to be inserted.
};

// Draws from one table. One thread at a time.
class ReplaySampler {
 public:
  virtual ~ReplaySampler() = default;

  // Of the table; one and the same object while the sampler lives.
  virtual const ItemSpec& items() const = 0;

  // As Table::SampleInto. `sample` is released before the sampler goes.
  virtual void SampleInto(const SampleRequest& request, Sample& sample) = 0;
};

// The replay tables of this process, or of a server: who writes, draws or updates priorities knows
// nothing of where they are.
//
// Any thread. A table is named by its index. Calls have deadlines and throw as those of Table and
// ReplayStore, where tables are elsewhere also ReplayLost. What it makes goes before the client.
class ReplayClient {
 public:
  virtual ~ReplayClient() = default;

  virtual int tables() const = 0;
  virtual const TableOptions& table(int index) const = 0;
  // Throws NotFound that names the nearest table there is.
  int Find(std::string_view name) const;

  // Throws InvalidArgument for less than one stream, or as WriterOptions::Check.
  virtual std::unique_ptr<ReplayWriter> NewWriter(const Spec& steps, const WriterOptions& options,
                                                  int streams) = 0;
  virtual std::unique_ptr<ReplaySampler> NewSampler(int table) = 0;

  virtual Found UpdatePriorities(int table, std::span<const PriorityUpdate> updates) = 0;
  virtual Found Delete(int table, std::span<const ItemKey> keys) = 0;
  virtual TableInfo info(int table) = 0;
};

}  // namespace menger
