#include <fmt/format.h>

#include <memory>

#include "menger/cli/commands.h"
#include "menger/training/run.h"

namespace menger {
namespace {

struct EvaluateArguments {
  std::string run;
  std::string checkpoint = "newest";
  std::int64_t episodes = 100;
  std::optional<std::int64_t> seed;
};

void EvaluateCommand(const EvaluateArguments& arguments, const CommandContext& context) {
  const TrainedRun run = LoadRun(arguments.run, arguments.checkpoint, context.environments);
  EvaluationPlan plan = EvaluationPlanOf(*run.experiment, *run.algorithm, /*index=*/0);
  plan.episodes = static_cast<int>(arguments.episodes);
  // By default as far again from the evaluations during training as those are from training.
  plan.seed = arguments.seed
                  ? static_cast<std::uint64_t>(*arguments.seed)
                  : plan.seed + static_cast<std::uint64_t>(run.experiment->evaluation.seed_offset);
  const auto policy = run.algorithm->MakePolicy(PolicyMode::kGreedy, plan.seed);
  const EvaluationResult result = Evaluate(plan, run.environment, *policy);
  fmt::print("{}\n", run.checkpoint);
  fmt::print("return: {}\n", ToString(result));
  fmt::print("episode length: mean {:.1f}\n", result.mean_length());
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "evaluate", "Play greedy episodes with a trained policy and print their returns");
  const auto arguments = std::make_shared<EvaluateArguments>();  // Shared with the callback.
  command->add_option("run", arguments->run, "A run folder")->type_name("RUN")->required();
  command->add_option("--episodes", arguments->episodes, "How many, each in a fresh environment")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--seed", arguments->seed,
                   "Episode i is seeded with N + i; default: seeds that training never uses")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, kSeedMax));
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "newest, best (by the evaluations during training), or a number of steps")
      ->type_name("WHICH");
  command->footer(
      "\nExample:\n  menger evaluate runs/cartpole_ppo-1 --episodes 1000 --checkpoint best");
  command->callback([arguments, &context] { EvaluateCommand(*arguments, context); });
}

}  // namespace menger
