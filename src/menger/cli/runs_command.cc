#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "menger/cli/commands.h"
#include "menger/training/run_table.h"

namespace menger {
namespace {

struct RunsArguments {
  std::string folder = "runs";
  bool json = false;
  bool names = false;
};

constexpr std::size_t kColumns = 8;
using Cells = std::array<std::string, kColumns>;
constexpr std::array<bool, kColumns> kNumbers = {false, false, false, false,
                                                 true,  true,  true,  false};

std::string ToText(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", *value) : "-";
}

// "50000 of 100000" while there is something left to do.
std::string StepsOf(const RunRow& row) {
  if (row.steps >= row.steps_planned || row.state == "solved") return std::to_string(row.steps);
  return fmt::format("{} of {}", row.steps, row.steps_planned);
}

Cells CellsOf(const RunRow& row) {
  return {row.path,
          row.environment,
          row.algorithm,
          row.state,
          StepsOf(row),
          ToText(row.best_return),
          ToText(row.last_return),
          fmt::format("{}", fmt::join(row.changed, " "))};
}

void PrintTable(const std::vector<RunRow>& rows) {
  std::vector<Cells> table = {{"run", "environment", "algorithm", "state", "steps", "best return",
                               "last return", "changed"}};
  for (const RunRow& row : rows) table.push_back(CellsOf(row));
  std::array<std::size_t, kColumns> widths{};
  for (const Cells& cells : table) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  for (const Cells& cells : table) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) {
      line += kNumbers[i] ? fmt::format("{:>{}}", cells[i], widths[i])
                          : fmt::format("{:<{}}", cells[i], widths[i]);
      if (i + 1 < kColumns) line += "  ";
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void PrintJson(const std::vector<RunRow>& rows) {
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  for (const RunRow& row : rows) {
    table.push_back({{"run", row.path},
                     {"environment", row.environment},
                     {"algorithm", row.algorithm},
                     {"state", row.state},
                     {"steps", row.steps},
                     {"steps_planned", row.steps_planned},
                     {"best_return", number(row.best_return)},
                     {"last_return", number(row.last_return)},
                     {"changed", row.changed}});
  }
  fmt::print("{}\n", table.dump(2));
}

void RunsCommand(const RunsArguments& arguments) {
  const std::vector<RunRow> rows = RunsIn(arguments.folder);
  if (arguments.names) {
    for (const RunRow& row : rows) fmt::print("{}\n", row.path);
  } else if (arguments.json) {
    PrintJson(rows);
  } else if (rows.empty()) {
    fmt::print("there are no runs in '{}'\n", arguments.folder);
  } else {
    PrintTable(rows);
  }
}

}  // namespace

void AddRunsCommand(CLI::App& app, CommandContext& /*context*/) {
  CLI::App* command = app.add_subcommand("runs", "List runs: how far each is and how well it does");
  const auto arguments = std::make_shared<RunsArguments>();  // Shared with the callback.
  command->add_option("folder", arguments->folder, "Where to look, and below; default: runs")
      ->type_name("DIR");
  command->add_flag("--json", arguments->json, "For programs");
  command->add_flag("--names", arguments->names, "Paths alone, one a line");
  command->footer(
      "\nstate: running (by a process of this machine), completed, solved, interrupted (by "
      "Ctrl-C),\n"
      "or unfinished: it did not get to say how it ended. best return: of the evaluations; last\n"
      "return: of recent training episodes. changed: what --set, --seed and the like made other\n"
      "than the recipe says.");
  command->callback([arguments] { RunsCommand(*arguments); });
}

}  // namespace menger
