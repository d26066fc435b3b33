#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/options.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/server/replay_server.h"

namespace menger {

// A table of a replay server, as its file has it. Items are described a line each:
//   steps:    "NAME: TYPE SHAPE", as "observation: uint8 (84, 84)"
//   columns:  "NAME: LEAF x ROWS" or "NAME: LEAF x ROWS, zeros in front", where an episode is
//             younger than that many rows
struct ServedTableOptions {
  std::string name;
  std::int64_t seed = 2;
  std::vector<std::string> steps;
  std::vector<std::string> columns;
  std::int64_t items_max = 1'000'000;
  std::int64_t bytes_max = std::int64_t{1} << 30;
  std::int64_t times_sampled_max = 0;
  std::string sampler = "uniform";
  std::string remover = "fifo";
  double priority_exponent = 1;
  bool stratified = false;
  std::string limiter = "min_size";
  std::int64_t min_size = 1;
  double samples_per_insert = 1;
  double error_buffer = 0;

  void Declare(Options& options);
  TableOptions ForTable() const;  // Throws InvalidArgument that names the table and the key.
  // A recipe's table, whose limiter is MinSize, of a run of this seed.
  static ServedTableOptions OfRecipe(const TableOptions& table, std::int64_t seed);
};

// What `menger replay serve` reads: everything that a replay server is.
struct ReplayConfig {
  std::string socket = "replay.sock";
  std::string listen;
  std::int64_t bytes_max = 0;
  std::int64_t connections_max = 4096;
  double drain = 5;  // Seconds.

  std::string durability = "none";
  std::string folder = "replay";
  double checkpoint_every = 600;  // Seconds.
  std::int64_t journal_bytes_max = std::int64_t{4} << 30;
  double loss_max = 1;  // Seconds.

  std::vector<ServedTableOptions> tables;

  // `origin` is the file's name, for errors: InvalidArgument with its line for unknown keys, wrong
  // types, values out of range, and for no table.
  static ReplayConfig Read(std::string_view toml, const std::string& origin);
  std::string ToToml() const;  // Which Read reads again.

  ReplayStoreOptions ForStore() const;
  DurabilityOptions ForDurability() const;
  ReplayServerOptions ForServer() const;

  void DeclareTop(Options& options);
  void DeclareDurability(Options& options);
};

}  // namespace menger
