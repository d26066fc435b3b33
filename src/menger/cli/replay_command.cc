#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"
#include "menger/base/sharing/unix_socket.h"
#include "menger/cli/commands.h"
#include "menger/cli/recipes.h"
#include "menger/cli/replay_config.h"
#include "menger/cli/replay_metrics.h"
#include "menger/replay/client/served_replay.h"
#include "menger/training/learning/replay_table.h"
#include "menger/training/resolve.h"
#include "menger/training/stop_signals.h"
#include "menger/training/training_parts.h"

// Replay as a server: `menger replay serve` and what is asked of one.
namespace menger {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::seconds kPatience{1};  // Of somebody who asks at a prompt.
constexpr const char* kAddressHelp =
    "The path of the server's socket, or HOST:PORT where it listens for TCP";

// ---- serve

struct ServeArguments {
  std::string config;
  std::string socket;
  std::string listen;
};

void Serve(const ServeArguments& arguments) {
  ReplayServer::PrepareProcess();
  ReplayConfig config = ReplayConfig::Read(ReadFile(arguments.config), arguments.config);
  if (!arguments.socket.empty()) config.socket = PathOfAddress(arguments.socket);
  if (!arguments.listen.empty()) config.listen = arguments.listen;
  const StopSignals signals;  // Before threads, so that all of them leave signals to it.
  ReplayStore store(config.ForStore());
  ReplayKeeper keeper(store, config.ForDurability());
  const bool keeps = keeper.kind() != Durability::kNone;
  ReplayServer server(store, keeps ? &keeper : nullptr, config.ForServer());
  LogInfo("serving {} replay table{} at '{}'{}", store.tables(), store.tables() == 1 ? "" : "s",
          config.socket,
          config.listen.empty() ? "" : fmt::format(" and at '{}'", server.listens_at()));
  for (int i = 0; keeps && i < store.tables(); ++i) {
    LogInfo("table '{}' goes on with {} items that '{}' had", store.table(i).options().name,
            store.table(i).info().items, config.folder);
  }
  while (signals.received() == 0) std::this_thread::sleep_for(kLook);
  LogInfo("{}: answering what has come, for {:g} s at most",
          StopSignals::NameOf(signals.received()), config.drain);
  server.Stop(
      Deadline::After(std::chrono::nanoseconds(static_cast<std::int64_t>(config.drain * 1e9))));
  if (!keeps) return;
  keeper.Checkpoint(Deadline::After(std::chrono::hours(1)));
  LogInfo("kept in '{}'", config.folder);
}

void AddServe(CLI::App& replay) {
  CLI::App* command = replay.add_subcommand("serve", "Serve replay tables to this host");
  command->footer(R"(
Serves until SIGTERM or Ctrl-C; then it answers what has come and, where it keeps anything, makes a last
checkpoint. A second signal ends it at once. The file, every key with what it does:
  menger replay config cartpole_dqn > replay.toml
  menger replay serve replay.toml
  menger train cartpole_dqn --set replay.address=replay.sock
)");
  const auto arguments = std::make_shared<ServeArguments>();  // Shared with the callback.
  command->add_option("config", arguments->config, "The file that says what is served (TOML)")
      ->required();
  command->add_option("--socket", arguments->socket, "Serve at this path instead of the file's");
  command->add_option("--listen", arguments->listen,
                      "Listen for TCP at 127.0.0.1:PORT instead of where the file says");
  command->callback([arguments] { Serve(*arguments); });
}

// ---- config

struct ConfigArguments {
  std::string recipe;
  std::vector<std::string> assignments;
};

std::vector<std::string> ReplayAlgorithmNames() {
  std::vector<std::string> names;
  for (const auto& entry : AllAlgorithms()) {
    if (entry->data_rule() == DataRule::kBatches) names.push_back(entry->name());
  }
  return names;
}

void Config(const ConfigArguments& arguments, const CommandContext& context) {
  std::vector<Assignment> assignments;
  for (const std::string& text : arguments.assignments) {
    assignments.push_back(Assignment::Parse(text));
  }
  const Recipe recipe = FindRecipe(arguments.recipe);
  Experiment experiment(ReadFile(recipe.path), recipe.path, assignments, AllAlgorithms(),
                        context.environments);
  if (experiment.algorithm_entry().data_rule() != DataRule::kBatches) {
    throw InvalidArgument("{} of '{}' does not learn from replay; these do: {}",
                          experiment.algorithm, arguments.recipe,
                          fmt::join(ReplayAlgorithmNames(), ", "));
  }
  const EnvironmentEntry environment = experiment.OpenEnvironment(EnvironmentUse::kTraining);
  Resolve(experiment, environment);
  const auto algorithm = MakeAlgorithm(experiment, environment);
  const ReplayStoreOptions store =
      ReplayStoreFor(experiment.replay,
                     {.environments = static_cast<int>(experiment.collector.environments),
                      .seed = static_cast<std::uint64_t>(experiment.seed)},
                     static_cast<const ReplayAlgorithm&>(*algorithm));
  ReplayConfig config;
  for (const TableOptions& table : store.tables) {
    config.tables.push_back(ServedTableOptions::OfRecipe(table, experiment.seed));
  }
  fmt::print(
      "# Replay of {}: menger replay serve FILE, then\n"
      "# menger train {} --set replay.address={}\n{}",
      recipe.name, arguments.recipe, config.socket, config.ToToml());
}

void AddConfig(CLI::App& replay, CommandContext& context) {
  CLI::App* command =
      replay.add_subcommand("config", "Print what to serve for a recipe, as a file for `serve`");
  const auto arguments = std::make_shared<ConfigArguments>();
  command->add_option("recipe", arguments->recipe, "A recipe's name or file")->required();
  command->add_option("--set", arguments->assignments, "section.key=value, as for `menger train`");
  command->callback([arguments, &context] { Config(*arguments, context); });
}

// ---- info, checkpoint

struct InfoArguments {
  std::string address;
  double watch = 0;
  bool prometheus = false;
};

ServedReplay Connect(const std::string& address) {
  return ServedReplay({.socket = address, .patience = kPatience});
}

void Info(const InfoArguments& arguments) {
  ServedReplay client = Connect(arguments.address);
  ServerInfo info = client.server();
  if (arguments.prometheus) {
    fmt::print("{}", PrometheusText(info));
    return;
  }
  fmt::print("{}", ReadableText(info, nullptr));
  if (arguments.watch <= 0) return;
  const StopSignals signals;
  for (Stopwatch since; signals.received() == 0;) {
    std::this_thread::sleep_for(kLook);
    if (since.seconds() < arguments.watch) continue;
    since.Restart();
    const ServerInfo before = std::exchange(info, client.server());
    fmt::print("\n{}", ReadableText(info, &before));
    std::fflush(stdout);
  }
}

void AddInfo(CLI::App& replay) {
  CLI::App* command = replay.add_subcommand("info", "Look at a replay server");
  const auto arguments = std::make_shared<InfoArguments>();
  command->add_option("address", arguments->address, kAddressHelp)->required();
  command
      ->add_option("--watch", arguments->watch,
                   "Look again each so many seconds, with rates; until Ctrl-C")
      ->expected(0, 1)
      ->default_str("1")
      ->check(CLI::Range(0.05, 86400.0));
  command->add_flag("--prometheus", arguments->prometheus, "As Prometheus reads it (text format)");
  command->callback([arguments] { Info(*arguments); });
}

struct CheckpointArguments {
  std::string address;
  double timeout = 600;
};

void AddCheckpoint(CLI::App& replay) {
  CLI::App* command =
      replay.add_subcommand("checkpoint", "Let a replay server bring all it has to the disk");
  const auto arguments = std::make_shared<CheckpointArguments>();
  command->add_option("address", arguments->address, kAddressHelp)->required();
  command->add_option("--timeout", arguments->timeout, "Seconds to wait for it")
      ->check(CLI::Range(0.0, 86400.0));
  command->callback([arguments] {
    Connect(arguments->address)
        .Checkpoint(Deadline::After(
            std::chrono::nanoseconds(static_cast<std::int64_t>(arguments->timeout * 1e9))));
  });
}

}  // namespace

void AddReplayCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("replay", "Serve replay to other processes, and look at servers");
  command->require_subcommand(1);
  AddServe(*command);
  AddConfig(*command, context);
  AddInfo(*command);
  AddCheckpoint(*command);
}

}  // namespace menger
