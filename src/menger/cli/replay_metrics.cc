#include "menger/cli/replay_metrics.h"

#include <fmt/format.h>

#include <cstdint>

#include "menger/base/memory_need.h"

namespace menger {
namespace {

std::string Bytes(std::uint64_t bytes) { return MemoryText(static_cast<double>(bytes)); }

// "1234", with " (56/s)" behind it where it was looked at before.
std::string Counted(std::int64_t now, const std::int64_t* before, double seconds) {
  if (before == nullptr || seconds <= 0) return fmt::format("{}", now);
  return fmt::format("{} ({:.0f}/s)", now, static_cast<double>(now - *before) / seconds);
}

// A metric of every table.
template <typename Value>
void AppendMetric(std::string& text, const ServerInfo& info, const char* name, const char* type,
                  const char* help, Value value) {
  text +=
      fmt::format("# HELP menger_replay_{0} {1}\n# TYPE menger_replay_{0} {2}\n", name, help, type);
  for (const ServerInfo::ServedTable& table : info.tables) {
    std::string label;
    for (const char character : table.name) {
      if (character == '"' || character == '\\') label += '\\';
      label += character == '\n' ? ' ' : character;
    }
    text += fmt::format("menger_replay_{}{{table=\"{}\"}} {}\n", name, label, value(table));
  }
}

}  // namespace

std::string ReadableText(const ServerInfo& info, const ServerInfo* before) {
  std::string text =
      fmt::format("process {}, for {:.1f} s; {} client{}; {} of {} of steps; durability {}\n",
                  info.process, info.seconds, info.connections, info.connections == 1 ? "" : "s",
                  Bytes(info.bytes), Bytes(info.bytes_max), info.durability);
  if (!info.trouble.empty()) text += fmt::format("NOT KEPT: {}\n", info.trouble);
  const double seconds = before == nullptr ? 0 : info.seconds - before->seconds;
  for (std::size_t i = 0; i < info.tables.size(); ++i) {
    const ServerInfo::ServedTable& table = info.tables[i];
    const TableInfo& now = table.info;
    const TableInfo* const then =
        before != nullptr && i < before->tables.size() ? &before->tables[i].info : nullptr;
    text += fmt::format(
        "{}: {} of {} items, {} of {}\n  inserts {}, {} waiting; samples {}, {} waiting\n"
        "  drawn {}, removed {}: {} evicted, {} too old, {} deleted in all; {} sent again, {} keys "
        "of items that were gone\n",
        table.name, now.items, table.items_max, Bytes(now.bytes), Bytes(table.bytes_max),
        Counted(now.inserts, then == nullptr ? nullptr : &then->inserts, seconds),
        now.inserts_waiting,
        Counted(now.samples, then == nullptr ? nullptr : &then->samples, seconds),
        now.samples_waiting, table.sampler, table.remover, now.evicted, now.dropped_stale,
        now.deletes, now.repeated, now.stale_keys);
  }
  return text;
}

std::string PrometheusText(const ServerInfo& info) {
  using Table = ServerInfo::ServedTable;
  std::string text = fmt::format(
      "# HELP menger_replay_connections Clients of this server.\n"
      "# TYPE menger_replay_connections gauge\nmenger_replay_connections {}\n"
      "# HELP menger_replay_chunk_bytes Memory that steps take, of tables, readers and writers.\n"
      "# TYPE menger_replay_chunk_bytes gauge\nmenger_replay_chunk_bytes {}\n"
      "# HELP menger_replay_chunk_bytes_max The most that they may take.\n"
      "# TYPE menger_replay_chunk_bytes_max gauge\nmenger_replay_chunk_bytes_max {}\n"
      "# HELP menger_replay_uptime_seconds Since this server began to serve.\n"
      "# TYPE menger_replay_uptime_seconds gauge\nmenger_replay_uptime_seconds {:.3f}\n",
      info.connections, info.bytes, info.bytes_max, info.seconds);
  text += fmt::format(
      "# HELP menger_replay_durability_failed 1 where what is inserted is not kept.\n"
      "# TYPE menger_replay_durability_failed gauge\nmenger_replay_durability_failed {}\n",
      info.trouble.empty() ? 0 : 1);
  const auto add = [&](const char* name, const char* type, const char* help, auto value) {
    AppendMetric(text, info, name, type, help, value);
  };
  add("items", "gauge", "Items in the table.", [](const Table& t) { return t.info.items; });
  add("items_max", "gauge", "The most there may be.", [](const Table& t) { return t.items_max; });
  add("table_bytes", "gauge", "Memory of the steps that the items need.",
      [](const Table& t) { return t.info.bytes; });
  add("metadata_bytes", "gauge", "Memory of the items themselves.",
      [](const Table& t) { return t.info.metadata_bytes; });
  add("inserts_total", "counter", "Items inserted.", [](const Table& t) { return t.info.inserts; });
  add("samples_total", "counter", "Items drawn.", [](const Table& t) { return t.info.samples; });
  add("deletes_total", "counter", "Items removed, for whatever cause.",
      [](const Table& t) { return t.info.deletes; });
  add("evicted_total", "counter", "Items removed to make room.",
      [](const Table& t) { return t.info.evicted; });
  add("dropped_stale_total", "counter", "Items removed because they were too old for a reader.",
      [](const Table& t) { return t.info.dropped_stale; });
  add("repeated_total", "counter", "Items passed over: they had been sent before.",
      [](const Table& t) { return t.info.repeated; });
  add("inserts_waiting", "gauge", "Calls that wait to insert.",
      [](const Table& t) { return t.info.inserts_waiting; });
  add("samples_waiting", "gauge", "Calls that wait to draw.",
      [](const Table& t) { return t.info.samples_waiting; });
  return text;
}

}  // namespace menger
