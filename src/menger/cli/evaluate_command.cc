#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/cli/commands.h"
#include "menger/training/evaluation.h"
#include "menger/training/heartbeat.h"
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
  std::vector<std::string> assignments;
  bool stochastic = false;
};

constexpr int kThreadsMax = 1024;
constexpr std::int64_t kRecordedEpisodes = 1;  // When not asked for more.

// How often a greedy policy of the algorithm acts at random; none where it has no such option.
std::optional<double> EpsilonOf(const Experiment& experiment) {
  for (const Options& section : experiment.sections()) {
    if (section.section() != experiment.algorithm || !section.Contains("evaluation_epsilon"))
      continue;
    return std::get<double>(section.Get("evaluation_epsilon"));
  }
  return std::nullopt;
}

std::string ActionsText(const Experiment& experiment, bool stochastic) {
  if (stochastic) return "sampled actions";
  const std::optional<double> epsilon = EpsilonOf(experiment);
  if (epsilon.value_or(0) == 0) return "greedy actions";
  return fmt::format("greedy actions but for a share of {:g} ({}.evaluation_epsilon)", *epsilon,
                     experiment.algorithm);
}

std::vector<std::unique_ptr<Policy>> PoliciesFor(const EvaluateArguments& arguments,
                                                 const TrainedRun& run, std::uint64_t seed) {
  if (!arguments.stochastic) return GreedyPolicies(*run.algorithm, seed, arguments.threads);
  if (EpsilonOf(*run.experiment)) {
    throw InvalidArgument(
        "--stochastic: {} has no actions to sample from; --set {}.evaluation_epsilon=0.05 acts at "
        "random in a share of the steps",
        run.experiment->algorithm, run.experiment->algorithm);
  }
  std::vector<std::unique_ptr<Policy>> policies;
  for (int i = 0; i < arguments.threads; ++i) {
    policies.push_back(run.algorithm->MakePolicy(PolicyMode::kSample, seed));
  }
  return policies;
}

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
  for (const std::string& text : arguments.assignments) {
    assignments.push_back(Assignment::Parse(text));
  }
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
  const auto policies = PoliciesFor(arguments, run, plan.seed);
  ProgressReporter progress = ProgressReporter::ForStandardError();
  std::atomic<std::int64_t> steps = 0;
  const std::function<std::int64_t()> played = [&steps] { return steps.load(); };
  plan.steps = &steps;
  Heartbeat heartbeat(progress);
  heartbeat.Begin("evaluating", played);
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
  heartbeat.End();
  fmt::print("{}\n", run.checkpoint);
  fmt::print("{}, {}: {}\n", run.experiment->environment,
             ActionsText(*run.experiment, arguments.stochastic), run.environment.spec.description);
  if (result.episodes() < plan.episodes) {
    context.exit_code = 128 + signals.received();
    fmt::print("interrupted by {}: {} of {} episodes had ended, the short ones first\n",
               StopSignals::NameOf(signals.received()), result.episodes(), plan.episodes);
    if (result.episodes() == 0) return;
  }
  fmt::print("return: {}\n", ToString(result));
  fmt::print("episode length: mean {:.1f}\n", result.mean_length());
  if (result.cut > 0) {
    fmt::print("{}\n", CutText(result, run.experiment->environment, plan.steps_max));
  }
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
  command
      ->add_option("--set", arguments->assignments,
                   "Change an option of the run: evaluation.steps_max, host.python, ...")
      ->type_name("KEY=VALUE")
      ->default_str("")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--stochastic", arguments->stochastic,
                    "Draw actions as while training instead of taking the likeliest");
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
