#include "menger/training/pipeline_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/memory_need.h"
#include "menger/training/learning/replay_table.h"
#include "menger/training/synchronous_loop.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr double kStallSeconds = 10;
constexpr std::chrono::minutes kBetween{10};  // For an update that is under way to end.
constexpr const char* kCandidate = "candidate";

ProgressTable::Row TimesOf(double updates, double items, double intensity,
                           std::span<const double, 4> seconds) {
  return {{"updates", updates},
          {"replay_items", items},
          {"training_intensity", intensity},
          {"learning_seconds", seconds[0]},
          {"learner_waiting_seconds", seconds[1]},
          {"collecting_seconds", seconds[2]},
          {"collector_waiting_seconds", seconds[3]}};
}

double WaitingSeconds(const RoleStatus& status) {
  double seconds = 0;
  for (const auto& [what, waited] : status.waiting_seconds) seconds += waited;
  return seconds;
}

}  // namespace

PipelineLoop::PipelineLoop(const Experiment& experiment, const EnvironmentEntry& training,
                           EnvironmentEntry evaluation, PipelineParts& parts,
                           const RunFolder& folder, ProgressReporter& progress,
                           std::function<bool()> stop_requested)
    : experiment_(experiment),
      training_(training),
      evaluation_(std::move(evaluation)),
      parts_(parts),
      folder_(folder),
      progress_(progress),
      stop_requested_(std::move(stop_requested)),
      pinned_(parts.algorithm->publication()),
      record_(experiment, evaluation_.spec, folder, parts.algorithm->metric_names(),
              TimesOf(0, 0, 0, std::array<double, 4>{})),
      pace_(PaceFor(experiment, *parts.algorithm)) {
  for (int i = 0; i < PlayingThreads(experiment); ++i) {
    greedy_.push_back(parts.algorithm->policies().Make(
        pinned_, PolicyMode::kGreedy, static_cast<std::uint64_t>(experiment.seed)));
  }
}

void PipelineLoop::Restore(ArchiveReader checkpoint) {
  ArchiveReader consumer = checkpoint.Scope("consumer");
  LoadLearningParts(experiment_.algorithm, *parts_.algorithm, *parts_.update, checkpoint);
  parts_.replay->LoadContent(consumer);
  record_.Load(checkpoint);
  LoopCounters& counters = record_.counters();
  ++counters.attempt;  // Environments begin anew.
  steps_before_ = counters.steps;
  training_seconds_before_ = counters.training_seconds;
}

// ---- In the learner's thread

Pace PipelineLoop::PaceOf() const {
  const std::int64_t steps = steps_before_ + collector_->done();
  Pace pace{.steps = steps,
            .progress =
                std::min(1.0, static_cast<double>(steps) / static_cast<double>(experiment_.steps)),
            .updates_due = Pace::kAsReplayAllows,
            .over = steps >= experiment_.steps};
  if (!pace.over) return pace;
  const TableInfo table = parts_.replay->client().info(parts_.replay->table());
  if (table.items < pace_.items_min) {  // Nobody may draw, and nothing more comes.
    pace.updates_due = 0;
    return pace;
  }
  const double owed =
      pace_.samples_per_insert * static_cast<double>(table.inserts - pace_.items_min) -
      static_cast<double>(table.samples);
  const auto batch = static_cast<double>(experiment_.replay.batch_size);
  // A batch that was drawn ahead is counted as drawn.
  pace.updates_due = std::max<std::int64_t>(parts_.trainer->has_batch() ? 1 : 0,
                                            static_cast<std::int64_t>(owed / batch));
  return pace;
}

// ---- In the loop's

LoopEnd PipelineLoop::Run() {
  record_.BeginSitting();
  const LoopCounters& counters = record_.counters();
  bool stopped = false;
  if (counters.steps < experiment_.steps && !record_.solved()) stopped = !Train();
  if (stopped) {
    SaveCheckpoint();
    return LoopEnd::kInterrupted;
  }
  if (counters.evaluated_at != counters.steps && !record_.solved()) {
    SaveCheckpoint();  // Evaluations may be slow, and their environments fail.
    if (!Evaluate(nullptr)) return LoopEnd::kInterrupted;
  }
  if (counters.reported_at != counters.steps) WriteRow(nullptr);
  if (record_.steps_before_sitting() == 0 && !record_.saw_update()) {
    LogWarning("in {} steps no update was made: nothing was learned", counters.steps);
  }
  SaveCheckpoint();
  progress_.Finish(record_.Progress());
  return record_.solved() ? LoopEnd::kSolved : LoopEnd::kCompleted;
}

bool PipelineLoop::Train() {
  collector_ = MakeCollectorRole(experiment_, training_, parts_, record_.counters().attempt,
                                 experiment_.steps - steps_before_);
  learner_ = std::make_unique<LearnerRole>(
      *parts_.algorithm, *parts_.update, *parts_.trainer, [this](std::int64_t) { return PaceOf(); },
      experiment_.collector.environments * experiment_.collector.horizon, steps_before_);
  Metrics none;  // So that rows before the first update have its columns, too.
  for (const std::string& name : parts_.algorithm->metric_names()) none.emplace_back(name, NAN);
  record_.AddMetrics(none, /*updated=*/false);
  updates_seen_ = 0;
  reported_ = {};
  sitting_.Restart();
  Threads threads(*learner_, *collector_);
  const bool over = Watch(threads);
  threads.learner.Stop();
  threads.collector.Stop();
  try {
    threads.learner.Join();
  } catch (const Error& error) {
    throw Failed(error, /*of_learner=*/true);
  }
  try {
    threads.collector.Join();
  } catch (const Error& error) {
    // A worker that hangs cannot be joined: until the process ends nobody destroys it.
    if (error.code() == ErrorCode::kDeadlineExceeded) (void)collector_.release();
    throw Failed(error, /*of_learner=*/false);
  }
  LookAtRoles(threads);
  return over;
}

bool PipelineLoop::Watch(Threads& threads) {
  while (true) {
    std::this_thread::sleep_for(kLook);
    LookAtRoles(threads);
    if (stop_requested_()) return false;
    const bool failed =
        threads.collector.ended() && collector_->done() + steps_before_ < experiment_.steps;
    if (threads.learner.ended() || failed) return true;
    if (record_.RowIsDue()) WriteRow(&threads);
    if (record_.IsDue(experiment_.evaluation.every, record_.counters().evaluated_at) &&
        record_.counters().steps < experiment_.steps) {
      if (!Evaluate(&threads)) return false;
      if (record_.solved()) return true;
    }
    if (record_.CheckpointIsDue(saved_at_))
      threads.learner.Between([this] { SaveCheckpoint(); }, Deadline::After(kBetween));
    progress_.Update(record_.Progress());
  }
}

void PipelineLoop::LookAtRoles(const Threads& threads) {
  LoopCounters& counters = record_.counters();
  counters.steps = steps_before_ + collector_->done();
  counters.training_seconds = training_seconds_before_ + sitting_.seconds();
  const EndedEpisodes ended = collector_->TakeEpisodes();
  record_.AddEpisodes(ended.last, ended.count);
  AddUp(told_, ended.metrics);
  const std::int64_t updates = learner_->done();
  if (updates > updates_seen_) record_.AddMetrics(learner_->TakeMetrics(), /*updated=*/true);
  updates_seen_ = updates;
  RequireRoomToBegin(experiment_.replay, parts_.algorithm->item_steps(),
                     parts_.replay->client().info(parts_.replay->table()));
  NameStall(threads.learner.status());
  NameStall(threads.collector.status());
}

void PipelineLoop::NameStall(const RoleStatus& status) {
  if (status.ended || status.idle_seconds < kStallSeconds) {
    stalled_.erase(status.name);
    return;
  }
  if (!stalled_.insert(status.name).second) return;
  progress_.Say(fmt::format(
      "the {} has done nothing for {:.0f} s; {}", status.name, status.idle_seconds,
      status.waits_for.empty() ? std::string("it has not come to the end of what it does")
                               : fmt::format("it waits for {}", status.waits_for)));
}

void PipelineLoop::WriteRow(Threads* threads) {
  std::array<double, 4> seconds = reported_.seconds;
  if (threads != nullptr) {
    const RoleStatus learner = threads->learner.status();
    const RoleStatus collector = threads->collector.status();
    seconds = {learner.working_seconds, WaitingSeconds(learner), collector.working_seconds,
               WaitingSeconds(collector)};
  }
  std::array<double, 4> since = seconds;
  for (std::size_t i = 0; i < since.size(); ++i) since[i] -= reported_.seconds[i];
  const TableInfo table = parts_.replay->client().info(parts_.replay->table());
  // Of what was owed, how much was drawn.
  const double owed = pace_.samples_per_insert * static_cast<double>(std::max<std::int64_t>(
                                                     1, table.inserts - pace_.items_min));
  const double intensity =
      experiment_.replay.training_intensity * static_cast<double>(table.samples) / owed;
  record_.WriteRow(std::exchange(told_, {}),
                   TimesOf(static_cast<double>(updates_seen_ - reported_.updates),
                           static_cast<double>(table.items), intensity, since));
  reported_ = {.updates = updates_seen_, .seconds = seconds};
}

EvaluationResult PipelineLoop::Play() {
  EvaluationPlan plan =
      EvaluationPlanOf(experiment_, *parts_.algorithm, record_.counters().evaluations);
  plan.stop_requested = stop_requested_;
  return WithMemoryFor([&] { return fmt::format("{} episodes at once", plan.episodes); },
                       [&] { return menger::Evaluate(plan, evaluation_, greedy_); });
}

EvaluationResult PipelineLoop::PlayOrSave(Threads* threads) {
  try {
    return Play();
  } catch (const Error& error) {
    // A learner that has failed meanwhile is what there is to tell.
    if (threads != nullptr &&
        !threads->learner.Between([this] { SaveCheckpoint(); }, Deadline::After(kBetween))) {
      return {};
    }
    throw Error(
        error.code(),
        WithSentence(
            fmt::format("evaluation after {} steps: {}", record_.counters().steps, error.what()),
            fmt::format("Everything is saved: `menger train --resume {}` makes it again, "
                        "or goes on without by --set evaluation.every=0",
                        folder_.path())));
  }
}

// What is evaluated is set aside before, for it may be the best that there will be.
bool PipelineLoop::Evaluate(Threads* threads) {
  const std::string candidate = folder_.checkpoint(kCandidate);
  const auto set_aside = [&] {
    pinned_.PinLatest();
    SaveTo(candidate, /*with_replay=*/false);
  };
  if (threads == nullptr) {
    set_aside();
  } else if (!threads->learner.Between(set_aside, Deadline::After(kBetween))) {
    return true;  // The learner has failed, which is told where it is joined.
  }
  const EvaluationResult result = PlayOrSave(threads);
  const bool stopped = result.episodes() < experiment_.evaluation.episodes;
  if (!stopped && result.cut > 0) {
    LogWarning("evaluation after {} steps: {}", record_.counters().steps,
               CutText(result, experiment_.environment, experiment_.evaluation.steps_max));
  }
  if (!stopped && record_.AddEvaluation(result)) {
    const std::string best = folder_.checkpoint("best");
    std::filesystem::remove_all(best);
    std::filesystem::rename(candidate, best);
  }
  std::filesystem::remove_all(candidate);
  return !stopped;
}

void PipelineLoop::SaveCheckpoint() {
  const Stopwatch watch;
  const std::int64_t steps = record_.counters().steps;
  SaveTo(folder_.checkpoint(steps), /*with_replay=*/true);
  folder_.Prune(experiment_.checkpoint.keep, steps);
  saved_at_ = steps;
  record_.NoteCheckpoint(watch.seconds());
}

void PipelineLoop::SaveTo(const std::string& path, bool with_replay) {
  WithMemoryFor([&] { return fmt::format("saving checkpoint '{}'", path); },
                [&] {
                  ArchiveWriter archive(path);
                  record_.Save(archive);
                  archive.Write(SynchronousLoop::kCollectorLost, true);
                  SaveLearningParts(*parts_.algorithm, *parts_.update, archive);
                  ArchiveWriter consumer = archive.Scope("consumer");
                  if (with_replay) parts_.replay->SaveContent(consumer);
                  archive.Commit();
                });
}

// What a learner that has failed left behind may be half an update.
Error PipelineLoop::Failed(const Error& error, bool of_learner) {
  const std::string text =
      fmt::format("after {} steps: {}", record_.counters().steps, error.what());
  if (!of_learner) SaveCheckpoint();
  if (folder_.Checkpoints().empty()) return Error(error.code(), text);
  return Error(error.code(),
               WithSentence(text, fmt::format("`menger train --resume {}` goes on from {} steps",
                                              folder_.path(), folder_.Checkpoints().back())));
}

}  // namespace menger
