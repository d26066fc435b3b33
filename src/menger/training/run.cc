#include "menger/training/run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "menger/algorithms/action_scaling.h"
#include "menger/base/build_identity.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/training/heartbeat.h"
#include "menger/training/pipeline_loop.h"
#include "menger/training/pipeline_parts.h"
#include "menger/training/process_roles.h"
#include "menger/training/replay_learner.h"
#include "menger/training/resolve.h"
#include "menger/training/thread_roles.h"
#include "menger/training/turn_roles.h"

namespace menger {
namespace {

using Json = nlohmann::ordered_json;

void WriteExperiment(const Experiment& experiment, const RunFolder& folder) {
  WriteFileAtomically(folder.file("experiment.toml"),
                      "# The resolved configuration of this run: `menger train experiment.toml` "
                      "gives the same run.\n"
                      "# What no line names the origin of is as `menger describe` has it.\n" +
                          experiment.ToToml(/*with_origins=*/true));
}

void WriteSummary(const Experiment& experiment, const RunFolder& folder,
                  const RunOutcome& outcome) {
  const LoopCounters& counters = outcome.counters;
  const double rate = static_cast<double>(counters.steps) / counters.training_seconds;
  Json summary = {{"status", NameOf(outcome.end)},
                  {"environment", experiment.environment},
                  {"algorithm", experiment.algorithm},
                  {"seed", experiment.seed},
                  {"attempt", counters.attempt},
                  {"steps", counters.steps},
                  {"seconds", counters.seconds},
                  {"training_seconds", counters.training_seconds},
                  {"steps_per_second", rate},
                  {"episodes", counters.episodes},
                  {"episode_return_mean", outcome.episode_return_mean}};
  if (counters.evaluated_at >= 0) {
    summary["evaluation"] = {{"steps", counters.evaluated_at},
                             {"episodes", counters.evaluation_episodes},
                             {"return_mean", counters.evaluation_mean},
                             {"return_standard_deviation", counters.evaluation_deviation},
                             {"return_minimum", counters.evaluation_minimum},
                             {"return_maximum", counters.evaluation_maximum}};
    summary["best"] = {{"steps", counters.best_at}, {"return_mean", counters.best_mean}};
  }
  summary["build"] = ToString(ThisBuild());
  WriteFileAtomically(folder.file("summary.json"), summary.dump(2) + "\n");
}

double NumberOf(const Json& object, const char* key) {
  return object.at(key).is_null() ? std::numeric_limits<double>::quiet_NaN()
                                  : object.at(key).get<double>();
}

LoopEnd LoopEndOf(const std::string& name) {
  for (const LoopEnd end : {LoopEnd::kCompleted, LoopEnd::kSolved, LoopEnd::kInterrupted}) {
    if (name == NameOf(end)) return end;
  }
  throw DataLoss("status '{}' is none of completed, solved and interrupted", name);
}

// As WriteSummary has it.
RunOutcome OutcomeOf(const Json& summary) {
  RunOutcome outcome{.end = LoopEndOf(summary.at("status")),
                     .episode_return_mean = NumberOf(summary, "episode_return_mean")};
  LoopCounters& counters = outcome.counters;
  counters.attempt = summary.at("attempt");
  counters.steps = summary.at("steps");
  counters.seconds = NumberOf(summary, "seconds");
  counters.training_seconds = NumberOf(summary, "training_seconds");
  counters.episodes = summary.at("episodes");
  if (!summary.contains("evaluation")) return outcome;
  const Json& evaluation = summary.at("evaluation");
  counters.evaluated_at = evaluation.at("steps");
  counters.evaluation_episodes = evaluation.at("episodes");
  counters.evaluation_mean = NumberOf(evaluation, "return_mean");
  counters.evaluation_deviation = NumberOf(evaluation, "return_standard_deviation");
  counters.evaluation_minimum = NumberOf(evaluation, "return_minimum");
  counters.evaluation_maximum = NumberOf(evaluation, "return_maximum");
  counters.best_at = summary.at("best").at("steps");
  counters.best_mean = NumberOf(summary.at("best"), "return_mean");
  return outcome;
}

// Measures, where something is left open: with a slow environment that takes a while.
void ResolveAloud(Experiment& experiment, const EnvironmentEntry& environment,
                  const RunContext& context) {
  const std::function<std::int64_t()> unknown;
  Heartbeat heartbeat(context.progress, context.stop_requested);
  const Heartbeat::Phase phase(heartbeat, "measuring how to collect", unknown);
  Resolve(experiment, environment);
}

// Those that learn from batches act between the bounds anyway.
void WarnOfBounds(const Experiment& experiment, const EnvironmentSpec& environment) {
  if (experiment.transforms.scale_actions) return;
  if (experiment.algorithm_entry().data_rule() == DataRule::kBatches) return;
  const std::string text = UnfitBoundsText(environment);
  if (!text.empty()) LogWarning("{}", text);
}

RunOutcome Finish(const Experiment& experiment, const RunFolder& folder, TrainingLoop& loop) {
  const LoopEnd end = loop.Run();
  RunOutcome outcome{.folder = folder.path(),
                     .end = end,
                     .counters = loop.counters(),
                     .episode_return_mean = loop.episode_return_mean()};
  WriteSummary(experiment, folder, outcome);
  return outcome;
}

ArchiveReader OpenCheckpoint(const RunFolder& folder, const std::string& checkpoint) {
  if (checkpoint == "newest") return folder.NewestWholeCheckpoint();
  if (!folder.ContainsCheckpoint(checkpoint)) {
    throw NotFound("'{}' has no checkpoint '{}'; there are: newest{}, {}", folder.path(),
                   checkpoint, folder.ContainsCheckpoint("best") ? ", best" : "",
                   fmt::join(folder.Checkpoints(), ", "));
  }
  ArchiveReader archive(folder.checkpoint(checkpoint));
  archive.Verify();
  return archive;
}

// What a run is cannot change half-way: its checkpoint would go on as something else, and its
// resolved configuration would name what the first half was not.
void CheckSameRun(const std::string& run, const Experiment& was, const Experiment& now) {
  const auto check = [&](std::string_view option, const auto& before, const auto& after) {
    if (before == after) return;
    throw InvalidArgument(
        "{} = {} cannot replace {} of '{}': a run resumes with its own; `menger train RECIPE "
        "--init-from {}` starts another run from its parameters",
        option, after, before, run, run);
  };
  check("environment", was.environment, now.environment);
  check("seed", was.seed, now.seed);
  check("transforms.scale_actions", was.transforms.scale_actions, now.transforms.scale_actions);
  check("network.activation", was.network.activation, now.network.activation);
  check("optimiser.kind", was.optimiser.kind, now.optimiser.kind);
  if (was.topology.is_pipeline() == now.topology.is_pipeline()) return;
  throw InvalidArgument(
      "topology.kind = {} cannot replace {} of '{}': a pipeline resumes as threads, processes or "
      "turns, a synchronous run as one; `menger train RECIPE --init-from {}` starts another run "
      "from its parameters",
      now.topology.kind, was.topology.kind, run, run);
}

// Only a run that goes on needs what replay held, which may be gigabytes.
void VerifyReplay(const ArchiveReader& archive) {
  const std::string folder = archive.Scope("consumer").FolderPath(ReplayLearner::kContent);
  if (std::filesystem::exists(folder)) ReplayCheckpoint::Verify(folder);
}

// A loop with what it borrows.
struct MadeRun {
  std::unique_ptr<EnvironmentEntry> environment;  // Of training.
  std::unique_ptr<TrainingParts> parts;           // Of a synchronous loop,
  std::unique_ptr<LearningParts> learning;        // or of a pipeline,
  std::unique_ptr<PipelineRoles> roles;           // with its roles.
  std::unique_ptr<TrainingLoop> loop;

  Algorithm& algorithm() const { return parts ? *parts->algorithm : *learning->algorithm; }
};

std::unique_ptr<PipelineRoles> MakeRoles(const Experiment& experiment,
                                         const EnvironmentEntry& environment,
                                         const LearningParts& parts) {
  auto& algorithm = static_cast<ReplayAlgorithm&>(*parts.algorithm);
  if (experiment.topology.kind == "processes") {
    return std::make_unique<ProcessRoles>(experiment, algorithm, *parts.update);
  }
  if (experiment.topology.kind == "turns") {
    return std::make_unique<TurnRoles>(experiment, environment, algorithm, *parts.update);
  }
  return std::make_unique<ThreadRoles>(experiment, environment, algorithm, *parts.update);
}

// `folder` is made once the parts are there: so that a refused run leaves nothing behind.
MadeRun MakeRun(const Experiment& experiment, EnvironmentEntry environment, std::int64_t attempt,
                const std::function<const RunFolder&(Algorithm&)>& folder,
                const RunContext& context) {
  MadeRun run{.environment = std::make_unique<EnvironmentEntry>(std::move(environment))};
  const EnvironmentEntry evaluation = experiment.OpenEnvironment(EnvironmentUse::kEvaluation);
  if (experiment.topology.is_pipeline()) {
    run.learning = std::make_unique<LearningParts>(MakeLearningParts(experiment, *run.environment));
    run.roles = MakeRoles(experiment, *run.environment, *run.learning);
    run.loop = std::make_unique<PipelineLoop>(experiment, evaluation, *run.learning, *run.roles,
                                              folder(run.algorithm()), context.progress,
                                              context.stop_requested);
  } else {
    run.parts = std::make_unique<TrainingParts>(
        MakeParts(experiment, *run.environment, attempt, context.stop_requested));
    run.loop = std::make_unique<SynchronousLoop>(experiment, evaluation, *run.parts,
                                                 folder(run.algorithm()), context.progress,
                                                 context.stop_requested);
  }
  return run;
}

}  // namespace

RunOutcome StartRun(Experiment& experiment, const std::function<RunFolder()>& make_folder,
                    const std::string& init_from, const RunContext& context) {
  EnvironmentEntry environment = experiment.OpenEnvironment(EnvironmentUse::kTraining);
  WarnOfBounds(experiment, environment.spec);
  ResolveAloud(experiment, environment, context);
  std::optional<RunFolder> folder;
  FileDescriptor lock;
  const auto begin = [&](Algorithm& algorithm) -> const RunFolder& {
    if (!init_from.empty()) {
      const ArchiveReader checkpoint = RunFolder::Open(init_from).NewestWholeCheckpoint();
      ArchiveReader scope = checkpoint.Scope("algorithm");
      algorithm.LoadParameters(scope);
    }
    folder = make_folder();
    lock = folder->Lock();
    WriteExperiment(experiment, *folder);
    context.progress.Say(fmt::format("training {} on {} in '{}'", experiment.algorithm,
                                     experiment.environment, folder->path()));
    WriteFileAtomically(folder->file("build.txt"), ToString(ThisBuild()) + "\n");
    return *folder;
  };
  const MadeRun run = MakeRun(experiment, std::move(environment), /*attempt=*/0, begin, context);
  run.loop->WriteSettings();
  return Finish(experiment, *folder, *run.loop);
}

RunOutcome ResumeRun(Experiment& experiment, const RunFolder& folder, const RunContext& context) {
  EnvironmentEntry environment = experiment.OpenEnvironment(EnvironmentUse::kTraining);
  const ArchiveReader checkpoint = folder.NewestWholeCheckpoint(VerifyReplay);
  const FileDescriptor lock = folder.Lock();
  ResolveAloud(experiment, environment, context);
  if (checkpoint.Read<bool>(SynchronousLoop::kCollectorLost) &&
      !experiment.topology.is_pipeline()) {
    LogWarning("'{}' was saved after an error of collection: environments start anew, other seeds",
               checkpoint.path());
  }
  const MadeRun run = MakeRun(
      experiment, std::move(environment), checkpoint.Read<LoopCounters>("loop/counters").attempt,
      [&](Algorithm&) -> const RunFolder& { return folder; }, context);
  run.loop->Restore(checkpoint);
  const std::int64_t done = run.loop->counters().steps;
  context.progress.Say(fmt::format(
      "resuming '{}' at {} of {} steps{}", folder.path(), done, experiment.steps,
      done < experiment.steps ? "" : ": nothing is left to do; --set steps=N trains longer"));
  WriteExperiment(experiment, folder);
  return Finish(experiment, folder, *run.loop);
}

RunOutcome ReadOutcome(const std::string& path) {
  const std::string file = path + "/summary.json";
  const std::string text = ReadFile(file);
  try {
    RunOutcome outcome = OutcomeOf(Json::parse(text));
    outcome.folder = path;
    return outcome;
  } catch (const std::exception& error) {
    throw DataLoss("'{}' is not what a run writes at its end: {}", file, error.what());
  }
}

std::unique_ptr<Experiment> ExperimentOf(const RunFolder& folder,
                                         std::span<const Assignment> assignments,
                                         const EnvironmentCatalog& environments) {
  const std::string path = folder.file("experiment.toml");
  const std::string text = ReadFile(path);
  auto experiment =
      std::make_unique<Experiment>(text, path, assignments, AllAlgorithms(), environments);
  CheckSameRun(folder.path(), Experiment(text, path, {}, AllAlgorithms(), environments),
               *experiment);
  return experiment;
}

TrainedRun LoadRun(const std::string& path, const std::string& checkpoint,
                   const EnvironmentCatalog& environments,
                   std::span<const Assignment> assignments) {
  const RunFolder folder = RunFolder::Open(path);
  TrainedRun run;
  run.experiment = ExperimentOf(folder, assignments, environments);
  run.environment = run.experiment->OpenEnvironment(EnvironmentUse::kEvaluation);
  const ArchiveReader archive = OpenCheckpoint(folder, checkpoint);
  run.algorithm = MakeAlgorithm(*run.experiment, run.environment);
  ArchiveReader scope = archive.Scope("algorithm");
  run.algorithm->LoadParameters(scope);
  run.checkpoint = archive.path();
  return run;
}

Aggregate AggregateOf(std::span<const double> values) {
  if (values.empty()) throw InvalidArgument("no values to aggregate; at least one is needed");
  Aggregate aggregate{.minimum = values[0], .maximum = values[0]};
  const auto count = static_cast<double>(values.size());
  for (const double value : values) {
    aggregate.mean += value / count;
    aggregate.minimum = std::min(aggregate.minimum, value);
    aggregate.maximum = std::max(aggregate.maximum, value);
  }
  double squares = 0;
  for (const double value : values) {
    squares += (value - aggregate.mean) * (value - aggregate.mean);
  }
  aggregate.standard_deviation = std::sqrt(squares / count);
  return aggregate;
}

}  // namespace menger
