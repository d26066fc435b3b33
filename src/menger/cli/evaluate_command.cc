#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/cli/commands.h"
#include "menger/training/evaluation.h"
#include "menger/training/run.h"
#include "menger/training/stop_signals.h"
#include "menger/training/training_parts.h"
#include "menger/training/video_file.h"

namespace menger {
namespace {

struct EvaluateArguments {
  std::string run;
  std::string checkpoint = "newest";
  std::optional<std::int64_t> episodes;
  std::optional<std::int64_t> seed;
  int threads = AvailableCpus();
  std::optional<std::string> device;
  std::string record;
  double frames_per_second = 30;
};

constexpr int kThreadsMax = 1024;
constexpr std::int64_t kRecordedEpisodes = 1;  // When not asked for more.

bool SameShapes(const Spec& one, const Spec& other) {
  return std::equal(one.leaves().begin(), one.leaves().end(), other.leaves().begin(),
                    other.leaves().end(), [](const LeafSpec& a, const LeafSpec& b) {
                      return a.dtype == b.dtype && a.shape == b.shape && a.counts == b.counts;
                    });
}

// The environment as it can be looked at: of its own family, or Gymnasium's of the same name.
EnvironmentEntry OpenToRecord(const TrainedRun& run, const EnvironmentCatalog& environments) {
  const std::string& name = run.experiment->environment;
  EnvironmentEntry own = run.experiment->OpenEnvironment(EnvironmentUse::kRecording);
  if (own.renders) return own;
  EnvironmentEntry other = environments.Open("host:" + name, EnvironmentUse::kRecording);
  if (!SameShapes(own.spec.observation, other.spec.observation) ||
      !SameShapes(own.spec.action, other.spec.action)) {
    throw FailedPrecondition(
        "{} cannot be shown as a picture here, and Gymnasium's {} has other observations or "
        "actions",
        name, name);
  }
  return other;
}

void EvaluateCommand(const EvaluateArguments& arguments, CommandContext& context) {
  const StopSignals signals;
  std::vector<Assignment> assignments;
  if (arguments.device) assignments.push_back({"", "device", *arguments.device, "--device"});
  const TrainedRun run =
      LoadRun(arguments.run, arguments.checkpoint, context.environments, assignments);
  EvaluationPlan plan = EvaluationPlanOf(*run.experiment, *run.algorithm, /*index=*/0);
  plan.episodes = static_cast<int>(
      arguments.episodes.value_or(arguments.record.empty() ? 100 : kRecordedEpisodes));
  // By default as far again from the evaluations during training as those are from training.
  plan.seed = arguments.seed
                  ? static_cast<std::uint64_t>(*arguments.seed)
                  : plan.seed + static_cast<std::uint64_t>(run.experiment->evaluation.seed_offset);
  plan.stop_requested = [&] { return signals.received() != 0; };
  const auto policies = GreedyPolicies(*run.algorithm, plan.seed, arguments.threads);
  EvaluationResult result;
  if (arguments.record.empty()) {
    result = Evaluate(plan, run.environment, policies);
  } else {
    const EnvironmentEntry environment = OpenToRecord(run, context.environments);
    const auto video = CreateVideoFile(arguments.record, arguments.frames_per_second);
    result = Evaluate(plan, environment, policies,
                      [&](EnvironmentGroup& group) { video->Add(group.Render(/*index=*/0)); });
    video->Finish();
  }
  fmt::print("{}\n", run.checkpoint);
  fmt::print("{}, greedy actions (epsilon 0): {}\n", run.experiment->environment,
             run.environment.spec.description);
  if (result.episodes() < plan.episodes) {
    context.exit_code = 128 + signals.received();
    fmt::print("interrupted by {}: {} of {} episodes had ended, the short ones first\n",
               StopSignals::NameOf(signals.received()), result.episodes(), plan.episodes);
    if (result.episodes() == 0) return;
  }
  fmt::print("return: {}\n", ToString(result));
  fmt::print("episode length: mean {:.1f}\n", result.mean_length());
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "evaluate", "Play greedy episodes with a trained policy and print their returns");
  const auto arguments = std::make_shared<EvaluateArguments>();  // Shared with the callback.
  command->add_option("run", arguments->run, "A run folder")->type_name("RUN")->required();
  command
      ->add_option("--episodes", arguments->episodes,
                   "How many, each in a fresh environment; default: 100, or 1 to record")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--seed", arguments->seed,
                   "Episode i is seeded with N + i; default: seeds that training never uses")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, kSeedMax));
  command
      ->add_option("--threads", arguments->threads,
                   "Share the episodes, with the same result; default: one for each CPU")
      ->type_name("N")
      ->check(CLI::Range(1, kThreadsMax));
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "newest, best (by the evaluations during training), or a number of steps")
      ->type_name("WHICH");
  command->add_option("--device", arguments->device, "Where to act; default: where it was trained")
      ->type_name("DEVICE");
  command
      ->add_option("--record", arguments->record,
                   "Write what the policy does as a film; environments of Gymnasium that are "
                   "simulated natively are played in the original")
      ->type_name("FILE.gif|.mp4");
  command->add_option("--fps", arguments->frames_per_second, "Of the film: steps a second")
      ->type_name("N")
      ->check(CLI::Range(1, 120));
  command->footer(
      "\nExamples:\n"
      "  menger evaluate runs/cartpole_ppo-1 --episodes 1000 --checkpoint best\n"
      "  menger evaluate runs/lunarlander_ppo-1 --record landing.gif\n\n"
      "Ctrl-C prints what the episodes achieved that have ended; a second one stops at once.");
  command->callback([arguments, &context] { EvaluateCommand(*arguments, context); });
}

}  // namespace menger
