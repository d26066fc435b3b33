#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"
#include "menger/cli/commands.h"
#include "menger/cli/recipes.h"
#include "menger/training/run.h"
#include "menger/training/stop_signals.h"

namespace menger {
namespace {

constexpr const char* kFooter = R"(
Examples:
  menger train cartpole_ppo
  menger train my_recipe.toml --set steps=50000 --set ppo.learning_rate=1e-3 --seed 7
  menger train cartpole_ppo --seeds 5            five seeds, then their mean and spread
  menger train --resume runs/cartpole_ppo-1      go on where it stopped
  menger train --resume runs/cartpole_ppo-1 --set steps=200000   and train longer

--seed and --device win over --set, and --set over the recipe. Ctrl-C finishes the slab, or leaves
the evaluation for later, saves, and says how to resume; a second one stops at once. `menger
describe experiment` lists the top-level options, `menger describe collector` those of a section:
collector, network, optimiser, transforms, evaluation, checkpoint, progress, ppo, a2c, dqn,
replay, es, runtime.)";

struct TrainArguments {
  std::string recipe;
  std::vector<std::string> assignments;
  std::string resume;
  std::string init_from;
  std::string out;
  std::optional<std::string> device;
  std::optional<std::string> seed;
  std::int64_t seeds = 0;
};

std::vector<Assignment> AssignmentsOf(const TrainArguments& arguments) {
  std::vector<Assignment> assignments;
  for (const std::string& text : arguments.assignments) {
    assignments.push_back(Assignment::Parse(text));
  }
  if (arguments.seed) assignments.push_back({"", "seed", *arguments.seed, "--seed"});
  if (arguments.device) assignments.push_back({"", "device", *arguments.device, "--device"});
  return assignments;
}

void CheckTogether(const TrainArguments& arguments) {
  if (arguments.recipe.empty() && arguments.resume.empty()) {
    throw InvalidArgument("train needs a RECIPE or --resume RUN; `menger list recipes` shows them");
  }
  if (arguments.resume.empty()) return;
  for (const auto& [given, name] : {std::pair{!arguments.out.empty(), "--out"},
                                    std::pair{!arguments.init_from.empty(), "--init-from"},
                                    std::pair{arguments.seeds > 0, "--seeds"}}) {
    if (given) throw InvalidArgument("--resume goes on with one run, so {} makes no sense", name);
  }
}

// A variable that a script left unset must not mean the default.
std::string RefuseEmpty(const std::string& text) {
  return text.empty() ? "the name of the folder is empty; leave the option out for its default"
                      : "";
}

void PrintOutcome(const RunOutcome& outcome, int signal, const std::string& program) {
  const LoopCounters& counters = outcome.counters;
  const double rate = static_cast<double>(counters.steps) / counters.training_seconds;
  if (outcome.end == LoopEnd::kInterrupted) {
    fmt::print(
        "interrupted by {} after {} steps; checkpoint saved. Resume with:\n"
        "  {} train --resume {}\n",
        StopSignals::NameOf(signal), counters.steps, program, outcome.folder);
    return;
  }
  fmt::print("{} after {} steps in {:.2f} s of training ({:.0f} steps/s)\n", NameOf(outcome.end),
             counters.steps, counters.training_seconds, rate);
  const double scale =
      std::max(std::abs(counters.evaluation_minimum), std::abs(counters.evaluation_maximum));
  fmt::print(
      "final evaluation: mean {}, standard deviation {}, minimum {}, maximum {} over {} "
      "episode{}\n",
      NumberText(counters.evaluation_mean, scale), NumberText(counters.evaluation_deviation, scale),
      NumberText(counters.evaluation_minimum, scale),
      NumberText(counters.evaluation_maximum, scale), counters.evaluation_episodes,
      counters.evaluation_episodes == 1 ? "" : "s");
  fmt::print("best evaluation: mean {} at {} steps\n", NumberText(counters.best_mean, scale),
             counters.best_at);
  fmt::print("run folder: {}\n", outcome.folder);
}

class Trainer {
 public:
  Trainer(const TrainArguments& arguments, CommandContext& context)
      : arguments_(arguments),
        command_(context),
        assignments_(AssignmentsOf(arguments)),
        progress_(ProgressReporter::ForStandardError()),
        run_({.progress = progress_,
              .stop_requested = [this] { return signals_.received() != 0; }}) {}

  void Train() {
    CheckTogether(arguments_);
    if (!arguments_.resume.empty()) return Resume();
    const Recipe recipe = FindRecipe(arguments_.recipe);
    if (arguments_.seeds > 0) return TrainSeeds(recipe);
    const auto experiment = Read(recipe, {});
    NameTuned(recipe, *experiment);
    Finished(StartRun(
        *experiment, [&] { return MakeFolder(recipe); }, arguments_.init_from, run_));
  }

 private:
  std::unique_ptr<Experiment> Read(const Recipe& recipe, std::optional<std::int64_t> seed) const {
    std::vector<Assignment> assignments = assignments_;
    if (seed) assignments.push_back({"", "seed", std::to_string(*seed), "--seeds"});
    return std::make_unique<Experiment>(ReadFile(recipe.path), recipe.path, assignments,
                                        AllAlgorithms(), command_.environments);
  }

  // Who has written a recipe of his own may not know of ours.
  static void NameTuned(const Recipe& recipe, const Experiment& experiment) {
    const std::vector<std::string> tuned = RecipesFor(experiment.environment, experiment.algorithm);
    if (tuned.empty() || std::ranges::find(tuned, recipe.name) != tuned.end()) return;
    LogInfo("tuned recipes for {} are there, too: {}", experiment.environment,
            fmt::join(tuned, ", "));
  }

  RunFolder MakeFolder(const Recipe& recipe) const { return RunFolder::Create(FolderPath(recipe)); }

  std::string FolderPath(const Recipe& recipe) const {
    return arguments_.out.empty() ? MakeNumberedFolder("runs", recipe.name) : arguments_.out;
  }

  void Resume() {
    const RunFolder folder = RunFolder::Open(arguments_.resume);
    const auto experiment = ExperimentOf(folder, assignments_, command_.environments);
    if (!arguments_.recipe.empty()) CheckSameTask(*experiment);
    Finished(ResumeRun(*experiment, folder, run_));
  }

  // A recipe beside --resume is a reminder of what the run is; it must at least be true.
  void CheckSameTask(const Experiment& resumed) const {
    const auto named = Read(FindRecipe(arguments_.recipe), {});
    if (named->environment == resumed.environment && named->algorithm == resumed.algorithm) return;
    throw InvalidArgument(
        "'{}' is a run of {} on {}, but recipe '{}' is {} on {}; leave the recipe "
        "out: a run resumes with its own experiment.toml",
        arguments_.resume, resumed.algorithm, resumed.environment, arguments_.recipe,
        named->algorithm, named->environment);
  }

  void TrainSeeds(const Recipe& recipe) {
    const auto common = Read(recipe, {});
    const std::int64_t first = common->seed;
    NameTuned(recipe, *common);
    std::string parent;
    std::vector<double> means;
    nlohmann::ordered_json table = nlohmann::ordered_json::array();
    for (std::int64_t seed = first; seed < first + arguments_.seeds; ++seed) {
      const auto experiment = Read(recipe, seed);
      const auto make_folder = [&] {
        if (parent.empty()) parent = FolderPath(recipe);
        return RunFolder::Create(fmt::format("{}/seed-{}", parent, seed));
      };
      const RunOutcome outcome = StartRun(*experiment, make_folder, arguments_.init_from, run_);
      fmt::print("seed {}: ", seed);
      Finished(outcome);
      if (outcome.end == LoopEnd::kInterrupted) return;
      means.push_back(outcome.counters.evaluation_mean);
      table.push_back({{"seed", seed},
                       {"steps", outcome.counters.steps},
                       {"training_seconds", outcome.counters.training_seconds},
                       {"return_mean", outcome.counters.evaluation_mean}});
    }
    const Aggregate all = AggregateOf(means);
    fmt::print(
        "{} seeds: mean {:.1f}, standard deviation {:.1f}, minimum {:.1f}, maximum {:.1f} of "
        "the final evaluations\n",
        means.size(), all.mean, all.standard_deviation, all.minimum, all.maximum);
    WriteFileAtomically(parent + "/seeds.json", table.dump(2) + "\n");
  }

  void Finished(const RunOutcome& outcome) {
    PrintOutcome(outcome, signals_.received(), command_.program);
    if (outcome.end == LoopEnd::kInterrupted) command_.exit_code = 128 + signals_.received();
  }

  const TrainArguments& arguments_;
  CommandContext& command_;
  const std::vector<Assignment> assignments_;
  StopSignals signals_;
  ProgressReporter progress_;
  const RunContext run_;
};

}  // namespace

void AddTrainCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("train", "Train a policy from a recipe");
  const auto arguments = std::make_shared<TrainArguments>();  // Shared with the callback.
  command->add_option("recipe", arguments->recipe, "A recipe's name (see `menger list`) or a file")
      ->type_name("RECIPE|FILE");
  command
      ->add_option("--set", arguments->assignments,
                   "Change an option: section.key=value, or key=value for the top level")
      ->type_name("KEY=VALUE")
      ->default_str("")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--resume", arguments->resume, "Go on with a run from its newest checkpoint")
      ->type_name("RUN")
      ->check(RefuseEmpty, "");
  command->add_option("--init-from", arguments->init_from, "Start with the parameters of a run")
      ->type_name("RUN")
      ->check(RefuseEmpty, "");
  command->add_option("--device", arguments->device, "Where to learn: cpu or cuda")
      ->type_name("DEVICE");
  command->add_option("--seed", arguments->seed, "The run's seed")->type_name("N");
  command
      ->add_option("--seeds", arguments->seeds,
                   "Train so many seeds, from the run's seed upward, one after the other")
      ->type_name("N")
      ->default_str("")
      ->check(CLI::Range(1, 1000));
  command->add_option("--out", arguments->out, "The run folder; default: runs/<recipe>-<number>")
      ->type_name("DIR")
      ->check(RefuseEmpty, "");
  command->footer(kFooter);
  command->callback([arguments, &context] { Trainer(*arguments, context).Train(); });
}

}  // namespace menger
