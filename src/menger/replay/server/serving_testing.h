#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/file_testing.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/server/replay_server.h"
#include "menger/replay/table_testing.h"

namespace menger::testing_tables {

// Steps of one int64 each in a table "small"; items of up to four of them, and of the last.
inline TableOptions ServedTable() {
  TableOptions table = SmallTable();
  table.bytes_max = std::size_t{1} << 20;
  return table;
}

// How a client says what it says.
enum class Transport : std::uint8_t { kRings, kTcp };

inline std::string NameOfTransport(const testing::TestParamInfo<Transport>& info) {
  return info.param == Transport::kRings ? "Rings" : "Tcp";
}

// A server of one table in this process, at a socket of its own, and at a port.
class Served {
 public:
  explicit Served(std::vector<TableOptions> tables = {ServedTable()}, std::string socket = {},
                  const DurabilityOptions& durability = {},
                  ReplayServerOptions options = {.listen = "127.0.0.1:0"})
      : socket_(socket.empty() ? folder_.path() + "/socket" : std::move(socket)),
        store_({.tables = std::move(tables), .shared = true}),
        keeper_(store_, durability),
        server_(std::make_unique<ReplayServer>(
            store_, durability.kind == Durability::kNone ? nullptr : &keeper_,
            (options.socket = socket_, options))) {}

  const std::string& socket() const { return socket_; }
  const std::string& address(Transport transport) const {
    return transport == Transport::kRings ? socket_ : server_->listens_at();
  }
  ReplayStore& store() { return store_; }
  Table& table(int index = 0) { return store_.table(index); }
  ReplayServer& server() { return *server_; }
  void Stop() { server_.reset(); }

 private:
  const testing_files::Folder folder_;
  const std::string socket_;
  ReplayStore store_;
  ReplayKeeper keeper_;
  std::unique_ptr<ReplayServer> server_;
};

// Appends the step `value` to a stream and adds its item, which shows it and up to three before.
inline void WriteValue(ReplayWriter& writer, int stream, std::int64_t value,
                       std::optional<double> priority = {}, int table = 0) {
  const std::byte* const leaf = reinterpret_cast<const std::byte*>(&value);
  const std::int64_t step = writer.Append(stream, {{leaf}}, static_cast<std::uint64_t>(value));
  const std::int64_t first = std::max<std::int64_t>(0, step - 3);
  const std::vector<StepRange> ranges = {
      {.first = first, .count = static_cast<int>(step - first + 1)}, {.first = step, .count = 1}};
  writer.Add(stream, table, priority, ranges);
}

// What the items of a sample show in column "last".
inline std::vector<std::int64_t> LastValues(const ItemSpec& items, const Sample& sample) {
  BatchGatherer gatherer(items, std::max(sample.size(), 1), 1);
  const auto columns = gatherer.Gather(sample);
  const auto* const data = reinterpret_cast<const std::int64_t*>(columns[1].data);
  return {data, data + sample.size()};
}

}  // namespace menger::testing_tables
