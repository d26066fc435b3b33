#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "menger/algorithms/action_scaling.h"
#include "menger/base/error.h"
#include "menger/cli/commands.h"
#include "menger/cli/observation_use.h"
#include "menger/training/experiment.h"

namespace menger {
namespace {

struct CheckArguments {
  std::string environment;
  std::vector<std::string> assignments;
};

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
  if (spec.max_episode_steps > 0) {
    fmt::print("  an episode is truncated after {} steps\n", spec.max_episode_steps);
  }
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
