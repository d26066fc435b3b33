#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "menger/algorithms/algorithm.h"
#include "menger/base/error.h"
#include "menger/cli/commands.h"
#include "menger/cli/recipes.h"

namespace menger {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;  // Name and description.

Rows Environments(const EnvironmentCatalog& catalog) {
  Rows rows;
  for (const EnvironmentEntry& entry : catalog.entries()) {
    rows.emplace_back(entry.spec.name, entry.spec.description);
  }
  for (const auto& family : catalog.Families()) {
    const std::vector<std::string> examples = family->examples();
    for (const std::string& example : examples) rows.emplace_back(example, family->description());
  }
  return rows;
}

Rows Algorithms() {
  Rows rows;
  for (const auto& entry : AllAlgorithms()) rows.emplace_back(entry->name(), entry->description());
  return rows;
}

Rows Recipes() {
  Rows rows;
  for (const Recipe& recipe : AllRecipes()) rows.emplace_back(recipe.name, recipe.description);
  return rows;
}

void PrintNames(const Rows& rows) {
  for (const auto& [name, description] : rows) fmt::print("{}\n", name);
}

void PrintTable(const std::string& title, const Rows& rows) {
  std::size_t width = 0;
  for (const auto& [name, description] : rows) width = std::max(width, name.size());
  fmt::print("{}\n", title);
  for (const auto& [name, description] : rows) {
    fmt::print("  {:<{}}  {}\n", name, width, description);
  }
}

struct ListArguments {
  std::string kind = "all";
  bool names = false;
};

void ListCommand(const ListArguments& arguments, const CommandContext& context) {
  const std::vector<std::pair<std::string, Rows>> tables = {
      {"environments", Environments(context.environments)},
      {"algorithms", Algorithms()},
      {"recipes", Recipes()}};
  for (const auto& [title, rows] : tables) {
    if (arguments.kind != "all" && arguments.kind != title) continue;
    if (arguments.names) {
      PrintNames(rows);
    } else {
      PrintTable(title, rows);
    }
  }
}

}  // namespace

void AddListCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("list", "List the environments, algorithms and recipes that there are");
  const auto arguments = std::make_shared<ListArguments>();  // Shared with the callback.
  command->add_option("kind", arguments->kind, "environments, algorithms or recipes; default: all")
      ->check(CLI::IsMember({"all", "environments", "algorithms", "recipes"}));
  command->add_flag("--names", arguments->names, "Names alone, one a line");
  command->callback([arguments, &context] { ListCommand(*arguments, context); });
}

}  // namespace menger
