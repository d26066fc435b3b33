#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "menger/base/memory_need.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/library/interface.h"
#include "menger/replay/server/replay_server.h"

// Tables, kept and served. Members go in the opposite order.
struct menger_replay_server {
  menger_replay_server(const menger::ReplayStoreOptions& options,
                       const menger::DurabilityOptions& durability, std::string socket)
      : store(options),
        keeper(store, durability),
        server(std::make_unique<menger::ReplayServer>(
            store, durability.kind == menger::Durability::kNone ? nullptr : &keeper,
            menger::ReplayServerOptions{.socket = std::move(socket)})) {}

  menger::Table& table(std::int32_t index) {
    if (index >= 0 && index < store.tables()) return store.table(index);
    throw menger::InvalidArgument("table {} of {}", index, store.tables());
  }

  menger::ReplayStore store;
  menger::ReplayKeeper keeper;
  std::unique_ptr<menger::ReplayServer> server;
};

namespace menger {
namespace {

using Json = nlohmann::json;

// Checkpoints are made when they are asked for.
constexpr std::chrono::hours kNever{24 * 365 * 10};

SelectorOptions SelectorIn(const Json& json) {
  const auto kind = json.at("kind").get<int>();
  if (kind < 0 || kind > static_cast<int>(SelectorKind::kPrioritised)) {
    throw InvalidArgument("there is no selector of kind {}", kind);
  }
  return {.kind = static_cast<SelectorKind>(kind), .exponent = json.value("exponent", 1.0)};
}

TableOptions TableIn(const Json& json) {
  const RateLimiterOptions unbounded;
  return {.name = json.at("name"),
          .items = ItemSpec::Open(json.value("notes", "")),
          .sampler = SelectorIn(json.at("sampler")),
          .remover = SelectorIn(json.at("remover")),
          .rate_limiter = {.samples_per_insert = json.at("samples_per_insert"),
                           .min_size = json.at("min_size"),
                           .min_diff = json.value("min_diff", unbounded.min_diff),
                           .max_diff = json.value("max_diff", unbounded.max_diff)},
          .items_max = json.at("items_max"),
          .times_sampled_max = json.at("times_sampled_max")};
}

// Where nobody says how many bytes a table may hold, tables have equal shares of what readers and
// writers leave.
ReplayStoreOptions StoreIn(const Json& json) {
  ReplayStoreOptions options{.shared = true};
  const std::uint64_t limit = MemoryLimit();
  options.bytes_max = json.value("bytes_max", std::size_t{0});
  if (options.bytes_max == 0) options.bytes_max = limit / 4 * 3;
  const Json& tables = json.at("tables");
  const std::size_t share = options.bytes_max / 8 * 7 / std::max<std::size_t>(1, tables.size());
  for (const Json& table : tables) {
    options.tables.push_back(TableIn(table));
    TableOptions& added = options.tables.back();
    const double metadata =
        static_cast<double>(added.items_max) * static_cast<double>(added.ItemBytes());
    const double left = static_cast<double>(limit) - metadata;
    added.bytes_max = table.value("bytes_max", share);
    if (left >= 1) added.bytes_max = std::min(added.bytes_max, static_cast<std::size_t>(left));
  }
  return options;
}

menger_replay_server* Start(const char* config) {
  CheckNotNull(config, "config");
  try {
    const Json json = Json::parse(config);
    const std::string folder = json.value("folder", "");
    const DurabilityOptions durability{
        .kind = folder.empty() ? Durability::kNone : Durability::kCheckpoint,
        .folder = folder,
        .checkpoint_every = kNever};
    return new menger_replay_server(StoreIn(json), durability, json.at("socket"));
  } catch (const Json::exception& error) {
    throw InvalidArgument("the configuration of a replay server is not as it must be: {}",
                          error.what());
  }
}

}  // namespace
}  // namespace menger

menger_replay_server* menger_replay_server_start(const char* config) {
  return menger::Made([config] { return menger::Start(config); });
}

std::int32_t menger_replay_server_stop(menger_replay_server* server, std::int64_t wait) {
  return menger::With(server, [wait](menger_replay_server& self) {
    if (self.server == nullptr) return;
    self.server->Stop(menger::Within(wait));
    self.server.reset();
  });
}

void menger_replay_server_delete(menger_replay_server* server) { delete server; }

std::int32_t menger_replay_server_info(menger_replay_server* server, char** text) {
  return menger::With(server, [text](menger_replay_server& self) {
    menger::CheckNotNull(text, "text");
    std::vector<const menger::TableOptions*> tables;
    menger::ServerInfo info;
    if (self.server != nullptr) info = self.server->info();
    for (int i = 0; i < self.store.tables(); ++i) {
      menger::Table& table = self.store.table(i);
      tables.push_back(&table.options());
      if (self.server != nullptr) continue;
      info.tables.push_back({.name = table.options().name, .info = table.info()});
    }
    *text = menger::NewText(menger::InfoText(tables, info));
  });
}

std::int32_t menger_replay_server_can_insert(menger_replay_server* server, std::int32_t table,
                                             std::int64_t count, std::int32_t* answer) {
  return menger::With(server, [=](menger_replay_server& self) {
    menger::CheckNotNull(answer, "answer");
    *answer = self.table(table).CanInsert(count) ? 1 : 0;
  });
}

std::int32_t menger_replay_server_can_sample(menger_replay_server* server, std::int32_t table,
                                             std::int64_t count, std::int32_t* answer) {
  return menger::With(server, [=](menger_replay_server& self) {
    menger::CheckNotNull(answer, "answer");
    *answer = self.table(table).CanSample(count) ? 1 : 0;
  });
}
