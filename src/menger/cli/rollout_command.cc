#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/cli/commands.h"
#include "menger/cli/trace.h"
#include "menger/collectors/random_policy.h"
#include "menger/training/run.h"

namespace menger {
namespace {

constexpr const char* kFooter = R"(
The trace has columns step, action_0.., reward, terminated, truncated, observation_0.. after the
step, at full precision. Rows with empty action cells are resets: row 0, and one after each
episode's end with the same step number, which shows the next episode's first observation (the row
before it shows the final one).

Examples:
  menger rollout CartPole-v1 --seed 7 --steps 500 --out trace.csv
  menger rollout CartPole-v1 --policy runs/cartpole_ppo-1 --out trace.csv    as a run would act
  menger rollout CartPole-v1 --policy actions.csv --seed 7 --out trace.csv   column action_0)";

struct RolloutArguments {
  std::string environment;
  std::string policy = "random";
  std::int64_t seed = 0;
  std::optional<std::int64_t> steps;
  std::string out;
};

constexpr std::int64_t kStepsWhenNotAsked = 1000;

std::string RandomTrace(TraceOptions options, const EnvironmentEntry& environment) {
  RandomPolicy policy(environment.spec.observation, environment.spec.action, options.seed);
  return RecordTrace(options, environment, policy);
}

std::string RecordedTrace(TraceOptions options, const EnvironmentEntry& environment,
                          const RolloutArguments& arguments) {
  RecordedActions policy(arguments.policy, environment.spec.action);
  if (arguments.steps && *arguments.steps > policy.steps()) {
    throw InvalidArgument("--steps is {}, but '{}' has {} actions", *arguments.steps,
                          arguments.policy, policy.steps());
  }
  if (!arguments.steps) options.steps = policy.steps();
  return RecordTrace(options, environment, policy);
}

std::string TrainedTrace(TraceOptions options, const EnvironmentEntry& environment,
                         const RolloutArguments& arguments, const CommandContext& context) {
  const TrainedRun run = LoadRun(arguments.policy, "newest", context.environments);
  if (run.environment.spec.name != environment.spec.name) {
    throw InvalidArgument("'{}' was trained on {}, not on {}", arguments.policy,
                          run.environment.spec.name, environment.spec.name);
  }
  options.clip_actions = run.experiment->transforms.actions == "clip";
  options.history = run.algorithm->policies().history();
  const auto policy = run.algorithm->MakePolicy(PolicyMode::kGreedy, options.seed);
  return RecordTrace(options, environment, *policy);
}

std::string TraceOf(const RolloutArguments& arguments, const CommandContext& context) {
  const EnvironmentEntry environment =
      context.environments.Open(arguments.environment, EnvironmentUse::kEvaluation);
  const TraceOptions options{.seed = static_cast<std::uint64_t>(arguments.seed),
                             .steps = arguments.steps.value_or(kStepsWhenNotAsked)};
  std::error_code error;
  if (arguments.policy == "random") return RandomTrace(options, environment);
  if (std::filesystem::is_directory(arguments.policy, error)) {
    return TrainedTrace(options, environment, arguments, context);
  }
  if (std::filesystem::is_regular_file(arguments.policy, error)) {
    return RecordedTrace(options, environment, arguments);
  }
  throw NotFound("--policy '{}' is neither 'random', nor a run folder, nor a CSV of actions",
                 arguments.policy);
}

}  // namespace

void AddRolloutCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("rollout", "Step one environment and write what it did as a CSV");
  const auto arguments = std::make_shared<RolloutArguments>();  // Shared with the callback.
  command->add_option("environment", arguments->environment, "See `menger list environments`")
      ->type_name("ENVIRONMENT")
      ->required();
  command
      ->add_option("--policy", arguments->policy,
                   "Where actions come from: random, a run folder, or a CSV of actions")
      ->type_name("random|RUN|FILE.csv");
  command->add_option("--seed", arguments->seed, "Of the environment and of random actions")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, kSeedMax));
  command
      ->add_option("--steps", arguments->steps,
                   fmt::format("How many; default: {}, or all of the CSV's", kStepsWhenNotAsked))
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
  command->add_option("--out", arguments->out, "The file to write; - is standard output")
      ->type_name("TRACE.csv")
      ->required();
  command->footer(kFooter);
  command->callback([arguments, &context] {
    const std::string trace = TraceOf(*arguments, context);
    if (arguments->out == "-") {
      fmt::print("{}", trace);
    } else {
      WriteFileAtomically(arguments->out, trace);
    }
  });
}

}  // namespace menger
