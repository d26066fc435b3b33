#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "menger/base/child_launch.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"
#include "menger/base/thread.h"
#include "menger/cli/commands.h"
#include "menger/cli/recipes.h"
#include "menger/training/run.h"
#include "menger/training/seed_plan.h"
#include "menger/training/seed_runs.h"
#include "menger/training/stop_signals.h"

namespace menger {
namespace {

constexpr const char* kRuns = "runs";  // The folder of runs that nobody named one for.

constexpr const char* kFooter = R"(
Examples:
  menger train cartpole_ppo
  menger train my_recipe.toml --set steps=50000 --set ppo.learning_rate=1e-3 --seed 7
  menger train cartpole_ppo --seeds 5            five seeds side by side, their mean and spread
  menger train --resume runs/cartpole_ppo-1      go on where it stopped; with --seeds, all of them
  menger train --resume runs/cartpole_ppo-1 --set steps=200000   and train longer

--seed and --device win over --set, and --set over the recipe. Ctrl-C finishes the slab, or leaves
the evaluation for later, saves, and says how to resume; where that takes a while it says for
what it waits, and a second one stops at once, as of the last checkpoint. `menger
describe experiment` lists the top-level options, `menger describe collector` those of a section:
collector, network, optimiser, transforms, evaluation, checkpoint, progress, ppo, a2c, dqn,
r2d2, sac, td3, replay, topology, es, runtime.)";

struct TrainArguments {
  std::string recipe;
  std::vector<std::string> assignments;
  std::string resume;
  std::string init_from;
  std::string out;
  std::optional<std::string> device;
  std::optional<std::string> seed;
  std::int64_t seeds = 0;
  std::int64_t side_by_side = 0;  // 0: as many as there are CPUs.
  std::string written_as;         // Where the recipe was before it was copied; "" is where it is.
  bool quiet = false;
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
  const bool resumes_seeds = !arguments.resume.empty() && SeedPlan::IsIn(arguments.resume);
  if (arguments.side_by_side > 0 && arguments.seeds == 0 && !resumes_seeds) {
    throw InvalidArgument("--side-by-side is about several seeds: say how many with --seeds");
  }
  if (arguments.resume.empty()) return;
  if (resumes_seeds && arguments.seed) {
    throw InvalidArgument(
        "--seed {} is not for '{}', which holds runs of several seeds: resume one of them, for "
        "example {}",
        *arguments.seed, arguments.resume, SeedFolder(arguments.resume, 2));
  }
  for (const auto& [given, name] : {std::pair{!arguments.out.empty(), "--out"},
                                    std::pair{!arguments.init_from.empty(), "--init-from"},
                                    std::pair{arguments.seeds > 0, "--seeds"}}) {
    if (given) {
      throw InvalidArgument("--resume goes on with what there is, so {} makes no sense", name);
    }
  }
}

const char* LogLevelNow() {
  for (const char* name : {"debug", "info", "warning", "error"}) {
    if (IsLogged(LogLevelFromName(name))) return name;
  }
  return "off";
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
        progress_(arguments.quiet ? ProgressReporter::Silent()
                                  : ProgressReporter::ForStandardError()),
        run_({.progress = progress_,
              .stop_requested = [this] { return signals_.received() != 0; }}) {}

  void Train() {
    CheckTogether(arguments_);
    if (!arguments_.resume.empty()) return Resume();
    const Recipe recipe = FindRecipe(arguments_.recipe);
    if (arguments_.seeds > 0) return TrainSeeds(recipe);
    const auto experiment = Read(recipe);
    NameTuned(recipe, *experiment);
    CheckPlace();
    Finished(StartRun(
        *experiment, [&] { return MakeFolder(recipe); }, arguments_.init_from, run_));
  }

 private:
  std::unique_ptr<Experiment> Read(const Recipe& recipe) const {
    const std::string& path = arguments_.written_as.empty() ? recipe.path : arguments_.written_as;
    return std::make_unique<Experiment>(ReadFile(recipe.path), path, assignments_, AllAlgorithms(),
                                        command_.environments);
  }

  // Who has written a recipe of his own may not know of ours.
  void NameTuned(const Recipe& recipe, const Experiment& experiment) const {
    if (arguments_.quiet) return;
    const std::vector<std::string> tuned = RecipesFor(experiment.environment, experiment.algorithm);
    if (tuned.empty() || std::ranges::find(tuned, recipe.name) != tuned.end()) return;
    LogInfo("tuned recipes for {} are there, too: {}", experiment.environment,
            fmt::join(tuned, ", "));
  }

  // Before a user waits for what comes first.
  void CheckPlace() const {
    if (arguments_.out.empty()) return CheckCanKeepRuns(kRuns);
    RunFolder::CheckPlace(arguments_.out);
  }

  RunFolder MakeFolder(const Recipe& recipe) const { return RunFolder::Create(FolderPath(recipe)); }

  std::string FolderPath(const Recipe& recipe) const {
    return arguments_.out.empty() ? MakeNumberedFolder(kRuns, recipe.name) : arguments_.out;
  }

  void Resume() {
    if (SeedPlan::IsIn(arguments_.resume)) return ResumeSeeds();
    const RunFolder folder = RunFolder::Open(arguments_.resume);
    const auto experiment = ExperimentOf(folder, assignments_, command_.environments);
    if (!arguments_.recipe.empty()) CheckSameTask(*experiment);
    Finished(ResumeRun(*experiment, folder, run_));
  }

  // A recipe beside --resume is a reminder of what the run is; it must at least be true.
  void CheckSameTask(const Experiment& resumed) const {
    const auto named = Read(FindRecipe(arguments_.recipe));
    if (named->environment == resumed.environment && named->algorithm == resumed.algorithm) return;
    throw InvalidArgument(
        "'{}' is a run of {} on {}, but recipe '{}' is {} on {}; leave the recipe "
        "out: a run resumes with its own experiment.toml",
        arguments_.resume, resumed.algorithm, resumed.environment, arguments_.recipe,
        named->algorithm, named->environment);
  }

  void TrainSeeds(const Recipe& recipe) {
    const auto common = Read(recipe);
    NameTuned(recipe, *common);
    SeedPlan plan{.seeds = std::vector<std::int64_t>(static_cast<std::size_t>(arguments_.seeds)),
                  .written_as = std::filesystem::absolute(recipe.path).string(),
                  .assignments = arguments_.assignments,
                  .device = arguments_.device,
                  .init_from = arguments_.init_from.empty()
                                   ? ""
                                   : std::filesystem::absolute(arguments_.init_from).string()};
    std::iota(plan.seeds.begin(), plan.seeds.end(), common->seed);
    CheckPlace();
    const std::string folder = FolderPath(recipe);
    for (const std::int64_t seed : plan.seeds) RunFolder::CheckPlace(SeedFolder(folder, seed));
    plan.Write(folder);
    // Those that begin late read what the first have read, whatever is written to it meanwhile.
    WriteFileAtomically(SeedRecipe(folder), ReadFile(recipe.path));
    TrainPlanned(plan, folder, *common);
  }

  void ResumeSeeds() {
    std::string folder = arguments_.resume;
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    SeedPlan plan = SeedPlan::Read(folder);
    // What is set now is set for those that begin now, too.
    plan.assignments.insert(plan.assignments.end(), arguments_.assignments.begin(),
                            arguments_.assignments.end());
    if (arguments_.device) plan.device = arguments_.device;
    std::unique_ptr<Experiment> common;
    for (const std::int64_t seed : plan.seeds) {
      if (!IsBegun(folder, seed)) continue;
      const RunFolder run = RunFolder::Open(SeedFolder(folder, seed));
      if (run.Checkpoints().empty() && !run.ContainsCheckpoint("best")) {
        throw FailedPrecondition(
            "'{}' has no checkpoint: it ended before the first one; remove it, and resume again: "
            "then seed {} begins anew",
            run.path(), seed);
      }
      if (common == nullptr) common = ExperimentOf(run, assignments_, command_.environments);
    }
    if (common == nullptr) common = Read({.path = SeedRecipe(folder)});
    if (!arguments_.recipe.empty()) CheckSameTask(*common);
    plan.Write(folder);
    TrainPlanned(plan, folder, *common);
  }

  static bool IsBegun(const std::string& folder, std::int64_t seed) {
    return std::filesystem::exists(SeedFolder(folder, seed) + "/experiment.toml");
  }

  void TrainPlanned(const SeedPlan& plan, const std::string& folder, const Experiment& common) {
    const SeedRuns runs{
        .program = [&](std::int64_t seed) { return TrainingOf(plan, folder, seed); },
        .folder = folder,
        .seeds = plan.seeds,
        .steps = common.steps,
        .side_by_side = SideBySide(common, plan.seeds.size())};
    std::map<std::int64_t, RunOutcome> outcomes;
    const auto ended = [&](std::int64_t seed, const RunOutcome& outcome) {
      fmt::print("seed {}: ", seed);
      Finished(outcome);
      std::fflush(stdout);
      outcomes[seed] = outcome;
    };
    const std::vector<SeedFailure> failures = TrainSideBySide(runs, ended, run_);
    const bool begun =
        std::ranges::any_of(plan.seeds, [&](std::int64_t seed) { return IsBegun(folder, seed); });
    if (!begun) RemoveUnusedPlan(folder);
    if (!failures.empty()) ThrowFailures(failures, folder);
    if (outcomes.size() == plan.seeds.size() && command_.exit_code == 0) {
      return SumUp(outcomes, folder);
    }
    command_.exit_code = 128 + signals_.received();
    if (!begun) return;
    fmt::print("all seeds go on side by side with:\n  {} train --resume {}\n", command_.program,
               folder);
  }

  // The command that begins one seed, or goes on with it.
  ChildProgram TrainingOf(const SeedPlan& plan, const std::string& folder,
                          std::int64_t seed) const {
    ChildProgram program{
        .arguments = {command_.program, "--log", LogLevelNow(), "train", "--quiet"},
        .file = "/proc/self/exe"};
    const auto add = [&](const std::string& name, const std::string& value) {
      program.arguments.insert(program.arguments.end(), {name, value});
    };
    const std::string run = SeedFolder(folder, seed);
    if (IsBegun(folder, seed)) {
      add("--resume", run);
      for (const std::string& assignment : arguments_.assignments) add("--set", assignment);
      if (arguments_.device) add("--device", *arguments_.device);
      return program;
    }
    program.arguments.push_back(SeedRecipe(folder));
    add("--written-as", plan.written_as);
    for (const std::string& assignment : plan.assignments) add("--set", assignment);
    if (plan.device) add("--device", *plan.device);
    if (!plan.init_from.empty()) add("--init-from", plan.init_from);
    add("--seed", std::to_string(seed));
    add("--out", run);
    return program;
  }

  int SideBySide(const Experiment& experiment, std::size_t seeds) const {
    // Several on one GPU may not fit into its memory.
    const int fitting = experiment.device == "cpu" ? AvailableCpus() : 1;
    const auto most = arguments_.side_by_side > 0 ? arguments_.side_by_side : fitting;
    return static_cast<int>(std::min(most, static_cast<std::int64_t>(seeds)));
  }

  [[noreturn]] static void ThrowFailures(const std::vector<SeedFailure>& failures,
                                         const std::string& folder) {
    std::vector<std::string> texts;
    for (const SeedFailure& failure : failures) {
      texts.push_back(fmt::format("seed {} {}", failure.seed, failure.cause));
      if (failure.refused) throw InvalidArgument("{}; see above", texts.back());
    }
    throw FailedPrecondition(
        "not trained to the end: {}; see above. `menger train --resume {}` goes on with all that "
        "have a checkpoint",
        fmt::join(texts, ", "), folder);
  }

  static void SumUp(const std::map<std::int64_t, RunOutcome>& outcomes, const std::string& folder) {
    std::vector<double> means;
    nlohmann::ordered_json table = nlohmann::ordered_json::array();
    for (const auto& [seed, outcome] : outcomes) {
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
    WriteFileAtomically(folder + "/seeds.json", table.dump(2) + "\n");
  }

  void Finished(const RunOutcome& outcome) {
    if (!arguments_.quiet) PrintOutcome(outcome, signals_.received(), command_.program);
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
  command
      ->add_option("--resume", arguments->resume,
                   "Go on with a run from its newest checkpoint, or with all seeds of --seeds")
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
                   "Train so many seeds, from the run's seed upward, side by side")
      ->type_name("N")
      ->default_str("")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--side-by-side", arguments->side_by_side,
                   "So many of the seeds at a time; default: as many as there are CPUs, on a GPU 1")
      ->type_name("N")
      ->default_str("")
      ->check(CLI::Range(1, 1000));
  command->add_option("--out", arguments->out, "The run folder; default: runs/<recipe>-<number>")
      ->type_name("DIR")
      ->check(RefuseEmpty, "");
  command->add_flag(
      "--quiet", arguments->quiet,
      "Show no progress and print no outcome; progress.csv and summary.json have them");
  command->add_option("--written-as", arguments->written_as)->group("");  // For our own use.
  command->footer(kFooter);
  command->callback([arguments, &context] { Trainer(*arguments, context).Train(); });
}

}  // namespace menger
