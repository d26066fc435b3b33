#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/algorithm.h"
#include "menger/base/error.h"
#include "menger/cli/commands.h"
#include "menger/training/experiment.h"

namespace menger {
namespace {

constexpr std::int64_t kUsualSteps = 100'000;

struct CheckArguments {
  std::string environment;
  std::vector<std::string> assignments;
};

// The network of a recipe of two lines.
std::string DefaultNetwork(const EnvironmentSpec& spec) {
  for (const auto& algorithm : AllAlgorithms()) {
    if (algorithm->name() != "ppo") continue;
    for (const OptionDefault& value : algorithm->Defaults(spec, kUsualSteps)) {
      if (value.section == "network" && value.name == "kind") return ToText(value.value);
    }
  }
  return NetworkOptions().kind;
}

// What a leaf of an observation becomes on its way to a network.
std::string UseOf(const LeafSpec& leaf, const std::string& network) {
  if (leaf.name == kActionMask) return "says which actions are allowed";
  if (leaf.space == Space::kMask) return fmt::format("{} flags, read as numbers", leaf.elements());
  if (!leaf.counts.empty()) {
    return fmt::format("{} code{}, read as {} numbers of which one each is 1", leaf.counts.size(),
                       leaf.counts.size() == 1 ? "" : "s",
                       std::accumulate(leaf.counts.begin(), leaf.counts.end(), std::int64_t{0}));
  }
  if (leaf.dtype == DataType::kUint8 && leaf.shape.size() == 3) {
    return fmt::format(
        "an image [channels, height, width], read as {}",
        network.ends_with("cnn") ? "stacked frames by convolutions" : "numbers of 0 to 1");
  }
  return fmt::format("{} number{}", leaf.elements(), leaf.elements() == 1 ? "" : "s");
}

std::string UseOfAction(const LeafSpec& leaf) {
  if (leaf.space == Space::kDiscrete) return fmt::format("one of {} choices", leaf.counts[0]);
  if (leaf.space == Space::kMultiDiscrete) return fmt::format("{} choices", leaf.counts.size());
  return fmt::format("{} continuous number{}", leaf.elements(), leaf.elements() == 1 ? "" : "s");
}

void PrintUse(const EnvironmentSpec& spec) {
  const std::string network = DefaultNetwork(spec);
  fmt::print("what menger makes of it:\n");
  for (const LeafSpec& leaf : spec.observation.leaves()) {
    fmt::print("  {} {} of {}: {}\n", leaf.name, ToString(leaf.shape), NameOf(leaf.dtype),
               UseOf(leaf, network));
  }
  fmt::print("  {}: {}\n", spec.action[0].name, UseOfAction(spec.action[0]));
  fmt::print("  network of a recipe of two lines: {}\n", network);
  if (spec.max_episode_steps > 0) {
    fmt::print("  an episode is truncated after {} steps\n", spec.max_episode_steps);
  }
}

void CheckCommand(const CheckArguments& arguments, CommandContext& context) {
  const auto family = context.environments.FamilyOf(arguments.environment);
  if (family == nullptr) {
    const EnvironmentEntry& entry = context.environments.Find(arguments.environment);
    throw FailedPrecondition("{} is the program's own: there is nothing of yours to check",
                             entry.spec.name);
  }
  Options options(family->name());
  family->Declare(options);
  for (const std::string& text : arguments.assignments) {
    const Assignment assignment = Assignment::Parse(text);
    if (assignment.section != family->name()) {
      throw InvalidArgument("--set {}: options of section [{}] decide what is checked", text,
                            family->name());
    }
    options.SetFromText(assignment.name, assignment.text);
  }
  const EnvironmentReport report = family->Check(arguments.environment);
  for (const std::string& fault : report.faults) fmt::print("wrong: {}\n", fault);
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  if (!report.faults.empty()) {
    context.exit_code = 1;
    return;
  }
  const EnvironmentSpec spec =
      context.environments.Open(arguments.environment, EnvironmentUse::kEvaluation, family.get())
          .spec;
  const std::string bounds = UnfitBoundsText(spec);
  if (!bounds.empty()) fmt::print("note: {}\n", bounds);
  PrintUse(spec);
  fmt::print("speed: {:.0f} steps/s of one alone\n", report.steps_per_second);
  fmt::print("{} can be trained on{}\n", arguments.environment,
             report.notes.empty() && bounds.empty() ? "" : "; the notes above may matter");
}

}  // namespace

void AddCheckCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "check", "Play a Python environment for a few seconds and say what is wrong with it");
  const auto arguments = std::make_shared<CheckArguments>();  // Shared with the callback.
  command->add_option("environment", arguments->environment, "As a recipe has it")
      ->type_name("MODULE:NAME|ID")
      ->required();
  command
      ->add_option("--set", arguments->assignments,
                   "Change an option of the environment, for example host.arguments")
      ->type_name("host.KEY=VALUE")
      ->default_str("")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->footer(
      "\nExamples:\n"
      "  menger check my_module:MyEnvironment\n"
      "  menger check my_module:MyEnvironment --set host.arguments='{\"size\": 5}'\n\n"
      "Exits with 1 where something is wrong; what is only a note does no harm by itself.");
  command->callback([arguments, &context] { CheckCommand(*arguments, context); });
}

}  // namespace menger
