#include "menger/replay/protocol/messages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace menger {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kStreamsMax = 65'536;
constexpr std::size_t kLeavesMax = 4096;
constexpr std::int64_t kStepBytesMax = std::int64_t{1} << 30;
constexpr std::uint64_t kCapacityMin = std::uint64_t{64} << 10;
constexpr std::uint64_t kCapacityMax = std::uint64_t{256} << 20;

// Calls `read` on a text that must be JSON of one form.
template <typename Read>
auto Decode(const char* what, std::string_view text, Read read) {
  try {
    return read(Json::parse(text));
  } catch (const Json::exception& error) {
    throw DataLoss("what came is no {}: {}", what, error.what());
  } catch (const Error& error) {
    throw DataLoss("what came is no {}: {}", what, error.what());
  }
}

void Need(bool holds, std::string_view what) {
  if (!holds) throw DataLoss("{}", what);
}

DataType TypeNamed(const std::string& name) {
  constexpr std::array kTypes = {DataType::kUint8, DataType::kInt32, DataType::kInt64,
                                 DataType::kFloat32, DataType::kFloat64};
  for (const DataType type : kTypes) {
    if (NameOf(type) == name) return type;
  }
  throw DataLoss("there is no data type '{}'", name);
}

Json ToJson(const Spec& steps) {
  Json leaves = Json::array();
  for (const LeafSpec& leaf : steps.leaves()) {
    leaves.push_back(
        {{"name", leaf.name}, {"dtype", std::string(NameOf(leaf.dtype))}, {"shape", leaf.shape}});
  }
  return leaves;
}

// Of numbers that are not negative, without overflow; what is larger than the bound is DataLoss.
std::int64_t BytesOf(const LeafSpec& leaf) {
  auto bytes = static_cast<std::int64_t>(SizeOf(leaf.dtype));
  for (const std::int64_t size : leaf.shape) {
    Need(size >= 0 && size <= kStepBytesMax, "a leaf's shape is out of range");
    Need(size == 0 || bytes <= kStepBytesMax / size, "a leaf is too large");
    bytes *= size;
  }
  return bytes;
}

Spec SpecFrom(const Json& json) {
  Need(json.is_array() && json.size() <= kLeavesMax, "steps have a list of leaves");
  std::vector<LeafSpec> leaves;
  std::int64_t bytes = 0;
  for (const Json& leaf : json) {
    leaves.push_back({.name = leaf.at("name").get<std::string>(),
                      .dtype = TypeNamed(leaf.at("dtype").get<std::string>()),
                      .shape = leaf.at("shape").get<Shape>()});
    bytes += BytesOf(leaves.back());
    Need(bytes <= kStepBytesMax, "a step is too large");
  }
  return Spec(std::move(leaves));
}

Json ToJson(const ItemColumn& column) {
  return {{"name", column.name},
          {"leaf", column.leaf},
          {"rows", column.rows},
          {"front", column.padding == Padding::kFront}};
}

ItemColumn ColumnFrom(const Json& json) {
  return {.name = json.at("name"),
          .leaf = json.at("leaf"),
          .rows = json.at("rows"),
          .padding = json.at("front").get<bool>() ? Padding::kFront : Padding::kBack};
}

Json ToJson(const TableInfo& info) {
  return {{"items", info.items},
          {"bytes", info.bytes},
          {"metadata_bytes", info.metadata_bytes},
          {"inserts", info.inserts},
          {"samples", info.samples},
          {"deletes", info.deletes},
          {"evicted", info.evicted},
          {"dropped_stale", info.dropped_stale},
          {"stale_keys", info.stale_keys},
          {"repeated", info.repeated},
          {"items_sampled", info.items_sampled},
          {"inserts_waiting", info.inserts_waiting},
          {"samples_waiting", info.samples_waiting}};
}

TableInfo InfoFrom(const Json& json) {
  return {.items = json.at("items"),
          .bytes = json.at("bytes"),
          .metadata_bytes = json.at("metadata_bytes"),
          .inserts = json.at("inserts"),
          .samples = json.at("samples"),
          .deletes = json.at("deletes"),
          .evicted = json.at("evicted"),
          .dropped_stale = json.at("dropped_stale"),
          .stale_keys = json.at("stale_keys"),
          .repeated = json.at("repeated"),
          .items_sampled = json.at("items_sampled"),
          .inserts_waiting = json.at("inserts_waiting"),
          .samples_waiting = json.at("samples_waiting")};
}

Json ToJson(const SelectorOptions& selector) {
  return {{"kind", static_cast<int>(selector.kind)},
          {"exponent", selector.exponent},
          {"stratified", selector.stratified}};
}

SelectorOptions SelectorFrom(const Json& json) {
  const auto kind = json.at("kind").get<int>();
  Need(kind >= 0 && kind <= static_cast<int>(SelectorKind::kPrioritised),
       "there is no such selector");
  return {.kind = static_cast<SelectorKind>(kind),
          .exponent = json.at("exponent"),
          .stratified = json.at("stratified")};
}

// JSON has no infinity.
Json ToJson(const RateLimiterOptions& limiter) {
  Json json = {{"samples_per_insert", limiter.samples_per_insert}, {"min_size", limiter.min_size}};
  if (std::isfinite(limiter.min_diff)) json["min_diff"] = limiter.min_diff;
  if (std::isfinite(limiter.max_diff)) json["max_diff"] = limiter.max_diff;
  return json;
}

RateLimiterOptions LimiterFrom(const Json& json) {
  const RateLimiterOptions unbounded;
  return {.samples_per_insert = json.at("samples_per_insert"),
          .min_size = json.at("min_size"),
          .min_diff = json.value("min_diff", unbounded.min_diff),
          .max_diff = json.value("max_diff", unbounded.max_diff)};
}

// Names are anybody's bytes; JSON has UTF-8.
std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string EncodeStreams(const StreamsRequest& request) {
  Json streams = Json::array();
  for (const StreamsRequest::Stream& stream : request.streams) {
    streams.push_back({stream.index, stream.id, stream.first_step});
  }
  const WriterOptions& options = request.options;
  return Text({{"streams", std::move(streams)},
               {"steps", ToJson(request.steps)},
               {"chunk_steps", options.chunk_steps},
               {"history", options.history},
               {"pending_max", options.pending_max},
               {"bytes_max", options.bytes_max},
               {"room_wait_max", options.room_wait_max.count()},
               {"compression", options.compression == Compression::kAutomatic}});
}

StreamsRequest DecodeStreams(std::string_view text) {
  return Decode("description of streams", text, [](const Json& json) {
    StreamsRequest request;
    const Json& streams = json.at("streams");
    Need(streams.is_array() && streams.size() <= kStreamsMax, "too many streams");
    for (const Json& stream : streams) {
      request.streams.push_back(
          {.index = stream.at(0), .id = stream.at(1), .first_step = stream.at(2)});
      Need(request.streams.back().index < kStreamsMax, "a stream's index is out of range");
      Need(request.streams.back().first_step >= 0, "a stream begins before its first step");
    }
    request.steps = SpecFrom(json.at("steps"));
    WriterOptions& options = request.options;
    options.chunk_steps = json.at("chunk_steps");
    options.history = json.at("history");
    options.pending_max = json.at("pending_max");
    options.bytes_max = json.at("bytes_max");
    options.room_wait_max = std::chrono::nanoseconds(json.at("room_wait_max").get<std::int64_t>());
    options.compression =
        json.at("compression").get<bool>() ? Compression::kAutomatic : Compression::kNone;
    return request;
  });
}

std::string EncodeTables(std::span<const TableOptions* const> tables) {
  Json described = Json::array();
  for (const TableOptions* const table : tables) {
    Json columns = Json::array();
    for (const ItemColumn& column : table->items.columns) columns.push_back(ToJson(column));
    described.push_back({{"name", table->name},
                         {"steps", ToJson(table->items.steps)},
                         {"columns", std::move(columns)},
                         {"items_max", table->items_max},
                         {"bytes_max", table->bytes_max},
                         {"times_sampled_max", table->times_sampled_max},
                         {"open", table->items.open},
                         {"notes", table->items.notes},
                         {"rate_limiter", ToJson(table->rate_limiter)},
                         {"sampler", ToJson(table->sampler)},
                         {"remover", ToJson(table->remover)}});
  }
  return Text(described);
}

std::vector<TableOptions> DecodeTables(std::string_view text) {
  return Decode("description of tables", text, [](const Json& json) {
    std::vector<TableOptions> tables;
    for (const Json& table : json) {
      TableOptions options{.name = table.at("name"),
                           .sampler = SelectorFrom(table.at("sampler")),
                           .remover = SelectorFrom(table.at("remover")),
                           .rate_limiter = LimiterFrom(table.at("rate_limiter")),
                           .items_max = table.at("items_max"),
                           .bytes_max = table.at("bytes_max"),
                           .times_sampled_max = table.at("times_sampled_max")};
      options.items.open = table.at("open");
      options.items.notes = table.at("notes");
      options.items.steps = SpecFrom(table.at("steps"));
      for (const Json& column : table.at("columns")) {
        options.items.columns.push_back(ColumnFrom(column));
      }
      options.items.Check();
      tables.push_back(std::move(options));
    }
    return tables;
  });
}

std::string EncodeServer(const ServerInfo& info) {
  Json tables = Json::array();
  for (const ServerInfo::ServedTable& table : info.tables) {
    tables.push_back({{"name", table.name},
                      {"sampler", table.sampler},
                      {"remover", table.remover},
                      {"items_max", table.items_max},
                      {"bytes_max", table.bytes_max},
                      {"info", ToJson(table.info)}});
  }
  return Text({{"process", info.process},
               {"seconds", info.seconds},
               {"connections", info.connections},
               {"refused", info.refused},
               {"bytes", info.bytes},
               {"bytes_max", info.bytes_max},
               {"durability", info.durability},
               {"trouble", info.trouble},
               {"tables", std::move(tables)}});
}

ServerInfo DecodeServer(std::string_view text) {
  return Decode("description of a server", text, [](const Json& json) {
    ServerInfo info{.process = json.at("process"),
                    .seconds = json.at("seconds"),
                    .connections = json.at("connections"),
                    .refused = json.at("refused"),
                    .bytes = json.at("bytes"),
                    .bytes_max = json.at("bytes_max"),
                    .durability = json.at("durability"),
                    .trouble = json.at("trouble")};
    for (const Json& table : json.at("tables")) {
      info.tables.push_back({.name = table.at("name"),
                             .sampler = table.at("sampler"),
                             .remover = table.at("remover"),
                             .items_max = table.at("items_max"),
                             .bytes_max = table.at("bytes_max"),
                             .info = InfoFrom(table.at("info"))});
    }
    return info;
  });
}

std::size_t ChannelCapacity(std::uint64_t asked) {
  return std::bit_ceil(std::clamp(asked, kCapacityMin, kCapacityMax));
}

}  // namespace menger
