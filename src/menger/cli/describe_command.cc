#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/cli/commands.h"
#include "menger/cli/observation_use.h"
#include "menger/cli/recipes.h"
#include "menger/training/experiment.h"

namespace menger {
namespace {

// A table of texts with columns as wide as their widest cell; the last column is free.
void PrintTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
    }
    fmt::print("  {}\n", line);
  }
}

void PrintOptions(const std::vector<OptionEntry>& entries) {
  std::vector<std::vector<std::string>> rows = {
      {"option", "value", "type", "allowed", "unit", "what it does"}};
  for (const OptionEntry& entry : entries) {
    rows.push_back(
        {entry.key, ToText(entry.value), entry.type, entry.allowed, entry.unit, entry.consequence});
  }
  PrintTable(rows);
}

void PrintHowToSet(const OptionEntry& example) {
  fmt::print("in a recipe below its section's heading, or for one run: --set {}={}\n", example.key,
             ToText(example.value));
}

// "-1 to 1", or where elements differ "[0..3] -1 to 1, [4] 0 to inf".
std::string BoundsText(const std::vector<double>& low, const std::vector<double>& high) {
  constexpr std::size_t kRunsMax = 24;
  const std::size_t elements = std::max(low.size(), high.size());
  if (low.empty() || high.empty()) return "";
  const auto text = [&](std::size_t i) {
    return fmt::format("{:.6g} to {:.6g}", low[low.size() == 1 ? 0 : i],
                       high[high.size() == 1 ? 0 : i]);
  };
  std::vector<std::string> runs;
  for (std::size_t first = 0, last = 0; first < elements; first = last + 1) {
    for (last = first; last + 1 < elements && text(last + 1) == text(first);) ++last;
    if (first == 0 && last + 1 == elements) return text(0);
    if (runs.size() == kRunsMax) {
      runs.push_back(fmt::format("[{}..{}] others", first, elements - 1));
      break;
    }
    const std::string place =
        first == last ? fmt::format("[{}]", first) : fmt::format("[{}..{}]", first, last);
    runs.push_back(place + " " + text(first));
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::vector<std::string> LeafRow(const std::string& what, const LeafSpec& leaf) {
  std::string values;
  if (leaf.space == Space::kBox) values = BoundsText(leaf.low, leaf.high);
  if (!leaf.counts.empty()) values = fmt::format("0 to n-1, n = {}", fmt::join(leaf.counts, ", "));
  return {what, leaf.name, std::string(NameOf(leaf.dtype)), ToString(leaf.shape), values};
}

void PrintEnvironment(const EnvironmentSpec& spec) {
  fmt::print("{}: {}\n", spec.name, spec.description);
  std::vector<std::vector<std::string>> rows;
  for (const LeafSpec& leaf : spec.observation.leaves()) {
    rows.push_back(LeafRow("observation", leaf));
  }
  for (const LeafSpec& leaf : spec.action.leaves()) rows.push_back(LeafRow("action", leaf));
  PrintTable(rows);
  if (spec.max_episode_steps > 0) {
    fmt::print("  an episode is truncated after {} steps\n", spec.max_episode_steps);
  }
  if (!std::isnan(spec.reward_threshold)) {
    fmt::print("  solved at a return of {}\n", spec.reward_threshold);
  }
}

bool DescribeEnvironment(const std::string& name, const EnvironmentCatalog& environments) {
  for (const EnvironmentEntry& entry : environments.entries()) {
    if (entry.spec.name != name) continue;
    PrintEnvironment(entry.spec);
    return true;
  }
  return false;
}

// The section of a family, or one of its environments.
bool DescribeFamily(const std::string& name, const EnvironmentCatalog& environments) {
  for (const auto& family : environments.Families()) {
    if (family->name() == name) {
      Options options(name);
      family->Declare(options);
      fmt::print("section [{}] of a recipe whose environment is one of: {}\n", name,
                 family->description());
      if (options.Entries().empty()) return true;
      PrintOptions(options.Entries());
      PrintHowToSet(options.Entries().front());
      return true;
    }
    if (!family->Serves(name)) continue;
    const EnvironmentSpec spec =
        environments.Open(name, EnvironmentUse::kTraining, family.get()).spec;
    PrintEnvironment(spec);
    PrintUse(spec);
    fmt::print("  its options: `menger describe {}`\n", family->name());
    return true;
  }
  return false;
}

bool DescribeAlgorithm(const std::string& name) {
  for (const auto& entry : AllAlgorithms()) {
    if (entry->name() != name) continue;
    Options options(name);
    entry->Declare(options);
    fmt::print("{}: {}\n", name, entry->description());
    PrintOptions(options.Entries());
    PrintHowToSet(options.Entries().front());
    return true;
  }
  return false;
}

constexpr const char* kTopLevel = "experiment";

std::string SectionOf(const std::vector<OptionEntry>& table) {
  const std::string& key = table.front().key;
  const std::size_t dot = key.find('.');
  return dot == std::string::npos ? kTopLevel : key.substr(0, dot);
}

constexpr const char* kRecipeForm = R"(
A recipe is a file of TOML. What it leaves out has the value above:

  environment = "CartPole-v1"
  algorithm = "ppo"
  steps = 50_000

  [collector]
  horizon = 64

  [ppo]
  learning_rate = 1e-3

`menger train FILE` trains it, and --set changes one option for one run: --set steps=100000,
--set collector.horizon=32.
)";

// The sections that every recipe may have.
std::vector<std::string> SectionNames() {
  std::vector<std::string> names;
  for (const auto& table : CommonOptionTables()) {
    const std::string section = SectionOf(table);
    if (section != kTopLevel) names.push_back(section);
  }
  return names;
}

void DescribeExperiment(const std::vector<OptionEntry>& top_level) {
  fmt::print("the top level of a recipe: what is learned, how, and for how long\n");
  PrintOptions(top_level);
  fmt::print("{}\n", kRecipeForm);
  std::vector<std::string> algorithms;
  for (const auto& entry : AllAlgorithms()) algorithms.push_back(entry->name());
  fmt::print("sections: {}, and the algorithm's: {}; `menger describe collector` explains one\n",
             fmt::join(SectionNames(), ", "), fmt::join(algorithms, ", "));
}

bool DescribeSection(const std::string& name) {
  const auto tables = CommonOptionTables();
  for (const auto& table : tables) {
    const std::string section = SectionOf(table);
    if (section != name) continue;
    if (section == kTopLevel) {
      DescribeExperiment(table);
    } else {
      fmt::print("section [{}] of a recipe\n", section);
      PrintOptions(table);
      PrintHowToSet(table.front());
    }
    return true;
  }
  return false;
}

bool DescribeRecipe(const std::string& name, const EnvironmentCatalog& environments) {
  const auto recipes = AllRecipes();
  if (std::none_of(recipes.begin(), recipes.end(),
                   [&](const Recipe& recipe) { return recipe.name == name; })) {
    return false;
  }
  const Recipe recipe = FindRecipe(name);
  const Experiment experiment(ReadFile(recipe.path), recipe.path, {}, AllAlgorithms(),
                              environments);
  fmt::print("{}: {} ({})\n", recipe.name, recipe.description, recipe.path);
  for (const Options& section : experiment.sections()) PrintOptions(section.Entries());
  return true;
}

std::vector<std::string> KnownNames(const EnvironmentCatalog& environments) {
  std::vector<std::string> names = {kTopLevel};
  for (const auto& entry : environments.entries()) names.push_back(entry.spec.name);
  for (const auto& family : environments.Families()) names.push_back(family->name());
  for (const auto& entry : AllAlgorithms()) names.push_back(entry->name());
  for (const std::string& section : SectionNames()) names.push_back(section);
  for (const Recipe& recipe : AllRecipes()) names.push_back(recipe.name);
  return names;
}

void Describe(const std::string& name, const EnvironmentCatalog& environments) {
  if (DescribeEnvironment(name, environments) || DescribeAlgorithm(name) || DescribeSection(name) ||
      DescribeRecipe(name, environments) || DescribeFamily(name, environments)) {
    return;
  }
  const auto names = KnownNames(environments);
  throw NotFound("there is nothing called '{}'{}; `menger describe` knows {}", name,
                 DidYouMean(name, names), fmt::join(names, ", "));
}

}  // namespace

void AddDescribeCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "describe", "Explain an environment, an algorithm, a recipe, or a section of options");
  const auto name = std::make_shared<std::string>();  // Shared with the callback.
  command->add_option("name", *name, "CartPole-v1, ppo, cartpole_ppo, experiment, collector, ...")
      ->type_name("NAME")
      ->required();
  command->callback([name, &context] { Describe(*name, context.environments); });
}

}  // namespace menger
