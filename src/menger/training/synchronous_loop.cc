#include "menger/training/synchronous_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/memory_need.h"
#include "menger/replay/client/replay_client.h"

namespace menger {
namespace {

constexpr int kEvaluationRetries = 2;

// Columns that say how long things took.
ProgressTable::Row TimesOf(double collecting, double learning, const CollectorTimes& threads) {
  return {{"collecting_seconds", collecting},
          {"learning_seconds", learning},
          {"simulation_thread_seconds", threads.simulation},
          {"inference_thread_seconds", threads.inference},
          {"waiting_thread_seconds", threads.waiting}};
}

}  // namespace

SynchronousLoop::SynchronousLoop(const Experiment& experiment, EnvironmentEntry evaluation,
                                 TrainingParts& parts, const RunFolder& folder,
                                 ProgressReporter& progress, std::function<bool()> stop_requested)
    : experiment_(experiment),
      evaluation_(std::move(evaluation)),
      parts_(parts),
      cycle_(*parts.cycle),
      folder_(folder),
      progress_(progress),
      stop_requested_(std::move(stop_requested)),
      heartbeat_(progress, stop_requested_),
      greedy_(GreedyPolicies(*parts.algorithm, static_cast<std::uint64_t>(experiment.seed),
                             PlayingThreads(experiment))),
      record_(experiment, evaluation_.spec, folder, cycle_.metric_names(), TimesOf(0, 0, {})) {}

void SynchronousLoop::Restore(ArchiveReader checkpoint) {
  ArchiveReader consumer = checkpoint.Scope("consumer");
  ArchiveReader collector = checkpoint.Scope("collector");
  LoadLearningParts(experiment_.algorithm, *parts_.algorithm, *parts_.update, checkpoint);
  cycle_.LoadLearning(consumer);
  if (!checkpoint.Read<bool>(kCollectorLost)) cycle_.LoadCollection(collector);

  record_.Load(checkpoint);
}

LoopEnd SynchronousLoop::Run() {
  record_.BeginSitting();
  bool stopped = !EvaluateAndReport();  // A run that stopped in an evaluation goes on with it.
  while (!stopped && counters_.steps < experiment_.steps && !record_.solved()) {
    const std::int64_t before = counters_.steps;
    CollectAndLearn();
    const bool evaluated = EvaluateAndReport();
    if (evaluated && record_.CheckpointIsDue(before)) SaveCheckpoint();
    progress_.Update(record_.Progress());
    stopped = !evaluated || stop_requested_();
  }
  if (stopped) {
    SaveCheckpoint();
    return LoopEnd::kInterrupted;
  }
  if (counters_.reported_at != counters_.steps) WriteRow();
  if (record_.steps_before_sitting() == 0 && !record_.saw_update()) {
    LogWarning("in {} steps no update was made: nothing was learned", counters_.steps);
  }
  SaveCheckpoint();
  progress_.Finish(record_.Progress());
  return record_.solved() ? LoopEnd::kSolved : LoopEnd::kCompleted;
}

bool SynchronousLoop::EvaluateAndReport() {
  const bool completed = counters_.steps >= experiment_.steps;
  const bool evaluate = record_.EvaluationIsDue();
  // Evaluations may be slow, and their environments fail: what was learned is safe before.
  if (evaluate && completed) SaveCheckpoint();
  if (evaluate && !EvaluateNow()) return false;
  if (record_.RowIsDue()) WriteRow();
  return true;
}

std::string SynchronousLoop::UpdateText() const {
  const CollectorOptions& collector = experiment_.collector;
  if (experiment_.algorithm_entry().data_rule() == DataRule::kEpisodes) {
    return fmt::format("an update from the episodes of {} steps", cycle_.steps());
  }
  return fmt::format("an update from collector.environments = {} x collector.horizon = {} steps",
                     collector.environments, collector.horizon);
}

std::int64_t SynchronousLoop::StepsOfAnUpdate() const {
  if (experiment_.algorithm_entry().data_rule() == DataRule::kEpisodes) return 0;  // Unknown.
  const CollectorOptions& collector = experiment_.collector;
  return std::min(collector.environments * collector.horizon, experiment_.steps - counters_.steps);
}

void SynchronousLoop::CollectAndLearn() {
  const Stopwatch watch;
  Collect();
  const double collected = watch.seconds();
  const double progress =
      static_cast<double>(counters_.steps) / static_cast<double>(experiment_.steps);
  try {
    const Heartbeat::Phase phase(heartbeat_, "learning", unknown_);
    const Metrics metrics = WithMemoryFor([this] { return UpdateText(); },
                                          [&] { return cycle_.Learn(*parts_.update, progress); });
    record_.AddMetrics(metrics, cycle_.updated());
    parts_.algorithm->Publish();
  } catch (const GradientNotFinite& error) {
    throw LearningFailed(error, "learning");
  } catch (const ReplayLost& error) {
    throw ReplayFailed(error);
  } catch (...) {
    throw AlgorithmFailed(TranslateCurrentException());
  }

  const auto episodes = cycle_.episodes();
  record_.AddEpisodes(episodes, std::ssize(episodes));
  counters_.steps += cycle_.steps();
  ++counters_.slabs;
  const double seconds = watch.seconds();
  counters_.training_seconds += seconds;
  spent_.collecting += collected;
  spent_.learning += seconds - collected;
}

ProgressTable::Row SynchronousLoop::TakeTimes() {
  const CollectorTimes now = cycle_.times();
  const CollectorTimes before = std::exchange(spent_.threads_before, now);
  return TimesOf(std::exchange(spent_.collecting, 0), std::exchange(spent_.learning, 0),
                 {.simulation = now.simulation - before.simulation,
                  .inference = now.inference - before.inference,
                  .waiting = now.waiting - before.waiting});
}

void SynchronousLoop::Collect() {
  const Heartbeat::Phase phase(heartbeat_, "collecting", collected_, StepsOfAnUpdate());
  try {
    parts_.algorithm->BeforeCollection(*parts_.update);
    cycle_.Collect(experiment_.steps - counters_.steps);
  } catch (...) {
    throw CollectionFailed(TranslateCurrentException());
  }
}

// Between two updates: what was learned is whole. The slab that was to be stored is lost.
Error SynchronousLoop::ReplayFailed(const Error& error) {
  ++counters_.attempt;
  SaveTo(folder_.checkpoint(counters_.steps), /*with_collector=*/false);
  return Error(error.code(),
               WithSentence(fmt::format("after {} steps: {}", counters_.steps, error.what()),
                            fmt::format("What was learned is saved: `menger train --resume {}` "
                                        "goes on once a server is there again",
                                        folder_.path())));
}

Error SynchronousLoop::CollectionFailed(const Error& error) {
  if (error.code() == ErrorCode::kInvalidArgument) return LearningFailed(error, "acting");
  // A thread that hangs in the cycle cannot be joined, and all that it uses must stay: until
  // the process ends nobody destroys it.
  if (error.code() == ErrorCode::kDeadlineExceeded) (void)parts_.cycle.release();
  // Also in place of a checkpoint of the same moment with the environments, which would come to the
  // same error again.
  ++counters_.attempt;
  SaveTo(folder_.checkpoint(counters_.steps), /*with_collector=*/false);
  const char* const saved = counters_.steps > 0 ? "What was learned is saved"
                                                : "Nothing was learned yet, but the run is there";
  return Error(error.code(),
               WithSentence(fmt::format("after {} steps: {}", counters_.steps, error.what()),
                            fmt::format("{}: `menger train --resume {}` goes on from there with "
                                        "fresh environments, under other seeds",
                                        saved, folder_.path())));
}

std::string SynchronousLoop::ResumeText() const {
  const std::vector<std::int64_t> saved = folder_.Checkpoints();
  if (saved.empty()) return "";
  return fmt::format("`menger train --resume {}` goes on from {} steps", folder_.path(),
                     saved.back());
}

// Learning has met something that no learning rate mends: memory or a worker is missing, or the
// algorithm calls something wrongly, or was given what it cannot learn from.
Error SynchronousLoop::AlgorithmFailed(const Error& error) const {
  const std::string text =
      fmt::format("learning after {} steps: {}", counters_.steps, error.what());
  const std::string resume = ResumeText();
  const bool wrong_call = error.code() == ErrorCode::kInvalidArgument ||
                          error.code() == ErrorCode::kFailedPrecondition ||
                          error.code() == ErrorCode::kInternal;
  if (!wrong_call) return Error(error.code(), WithSentence(text, resume));
  return Error(
      error.code(),
      WithSentence(text,
                   fmt::format("With that, algorithm '{}' cannot go on{}{}", experiment_.algorithm,
                               resume.empty() ? "" : "; once it is mended, ", resume)));
}

Error SynchronousLoop::LearningFailed(const Error& error, const char* what) const {
  const std::string text =
      fmt::format("{} after {} steps: {}", what, counters_.steps, error.what());
  const std::string resume = ResumeText();
  const std::string remedy =
      resume.empty()
          ? fmt::format("There is no checkpoint yet (checkpoint.every = {}): train again with",
                        experiment_.checkpoint.every)
          : resume + ", and comes to the same error without";
  return Error(error.code(),
               WithSentence(text, fmt::format("{} other settings, for example a lower --set "
                                              "{}.learning_rate=...",
                                              remedy, experiment_.algorithm)));
}

EvaluationResult SynchronousLoop::EvaluateGreedily() {
  int retries = experiment_.collector.on_environment_error == "restart" ? kEvaluationRetries : 0;
  while (true) {
    try {
      EvaluationPlan plan = EvaluationPlanOf(experiment_, *parts_.algorithm, counters_.evaluations);
      plan.stop_requested = stop_requested_;
      plan.steps = &evaluation_steps_;
      evaluation_steps_ = 0;
      const Heartbeat::Phase phase(heartbeat_, "evaluating", evaluated_);
      return WithMemoryFor([&] { return fmt::format("{} episodes at once", plan.episodes); },
                           [&] { return Evaluate(plan, evaluation_, greedy_); });
    } catch (...) {
      const Error error = TranslateCurrentException();
      if (error.code() == ErrorCode::kInvalidArgument) throw LearningFailed(error, "evaluation");
      const std::string text =
          fmt::format("evaluation after {} steps: {}", counters_.steps, error.what());
      if (retries-- > 0) {
        LogWarning("{}", WithSentence(text, "It is made once more."));
        continue;
      }
      SaveCheckpoint();
      throw Error(error.code(),
                  WithSentence(text, fmt::format("Everything is saved: `menger train --resume {}` "
                                                 "makes it again, or goes on without by --set "
                                                 "evaluation.every=0",
                                                 folder_.path())));
    }
  }
}

bool SynchronousLoop::EvaluateNow() {
  const EvaluationResult result = EvaluateGreedily();
  if (result.episodes() < experiment_.evaluation.episodes) return false;
  if (result.cut > 0) {
    LogWarning("evaluation after {} steps: {}", counters_.steps,
               CutText(result, experiment_.environment, experiment_.evaluation.steps_max));
  }
  if (record_.AddEvaluation(result)) SaveTo(folder_.checkpoint("best"), /*with_collector=*/true);
  return true;
}

void SynchronousLoop::WriteRow() {
  const std::vector<EnvironmentMetric> told = cycle_.TakeMetrics();
  record_.WriteRow(told, TakeTimes());
}

void SynchronousLoop::SaveCheckpoint() {
  const Stopwatch watch;
  SaveTo(folder_.checkpoint(counters_.steps), /*with_collector=*/true);
  folder_.Prune(experiment_.checkpoint.keep, counters_.steps);
  record_.NoteCheckpoint(watch.seconds());
}

void SynchronousLoop::SaveTo(const std::string& path, bool with_collector) {
  WithMemoryFor([&] { return fmt::format("saving checkpoint '{}'", path); },
                [&] { SaveWhole(path, with_collector); });
}

void SynchronousLoop::SaveWhole(const std::string& path, bool with_collector) {
  ArchiveWriter archive(path);
  record_.Save(archive);
  archive.Write(kCollectorLost, !with_collector);
  SaveLearningParts(*parts_.algorithm, *parts_.update, archive);
  ArchiveWriter consumer = archive.Scope("consumer");
  ArchiveWriter collector = archive.Scope("collector");
  cycle_.SaveLearning(consumer);
  if (with_collector) cycle_.SaveCollection(collector);
  archive.Commit();
}

}  // namespace menger
