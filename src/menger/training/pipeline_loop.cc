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
#include "menger/training/replay_learner.h"
#include "menger/training/synchronous_loop.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr double kStallSeconds = 10;
constexpr const char* kCandidate = "candidate";

// The loop's own columns.
struct PipelineRow {
  double updates = 0;
  double items = 0;
  double intensity = 0;
  VersionLag lag;
  std::array<double, 4> seconds{};
  double restarts = 0;

  ProgressTable::Row Columns() const {
    return {{"updates", updates},
            {"replay_items", items},
            {"training_intensity", intensity},
            {"versions_behind", lag.mean()},
            {"versions_behind_most", lag.items == 0 ? NAN : static_cast<double>(lag.most)},
            {"learning_seconds", seconds[0]},
            {"learner_waiting_seconds", seconds[1]},
            {"collecting_seconds", seconds[2]},
            {"collector_waiting_seconds", seconds[3]},
            {"restarts", restarts}};
  }
};

}  // namespace

PipelineLoop::PipelineLoop(const Experiment& experiment, EnvironmentEntry evaluation,
                           LearningParts& parts, PipelineRoles& roles, const RunFolder& folder,
                           ProgressReporter& progress, std::function<bool()> stop_requested)
    : experiment_(experiment),
      evaluation_(std::move(evaluation)),
      parts_(parts),
      algorithm_(static_cast<ReplayAlgorithm&>(*parts.algorithm)),
      roles_(roles),
      folder_(folder),
      progress_(progress),
      stop_requested_(std::move(stop_requested)),
      record_(experiment, evaluation_.spec, folder, algorithm_.metric_names(),
              PipelineRow().Columns()),
      roles_table_(folder.file("roles.csv")),
      pace_(PaceFor(experiment, algorithm_)) {}

void PipelineLoop::Restore(ArchiveReader checkpoint) {
  LoadLearningParts(experiment_.algorithm, algorithm_, *parts_.update, checkpoint);
  record_.Load(checkpoint);
  roles_table_.DropAfter(record_.counters().steps, record_.counters().training_seconds);
  ++record_.counters().attempt;  // Environments begin anew.
  training_seconds_before_ = record_.counters().training_seconds;
  // The best is saved without, and may be all that a run has that was killed early.
  if (std::filesystem::exists(checkpoint.Scope("consumer").FolderPath(ReplayLearner::kContent))) {
    restored_ = std::move(checkpoint);
  } else {
    LogWarning("'{}' was saved without what replay held: it is filled anew", checkpoint.path());
  }
}

LoopEnd PipelineLoop::Run() {
  record_.BeginSitting();
  const LoopCounters& counters = record_.counters();
  roles_.Begin({.steps = counters.steps,
                .attempt = counters.attempt,
                .checkpoint = restored_ ? &*restored_ : nullptr});
  pinned_.emplace(roles_.parameters());
  for (int i = 0; i < PlayingThreads(experiment_); ++i) {
    greedy_.push_back(algorithm_.policies().Make(*pinned_, PolicyMode::kGreedy,
                                                 static_cast<std::uint64_t>(experiment_.seed)));
  }
  bool stopped = false;
  if (counters.steps < experiment_.steps && !record_.solved()) stopped = !Train();
  if (stopped) {
    SaveCheckpoint();
    return LoopEnd::kInterrupted;
  }
  if (counters.evaluated_at != counters.steps && !record_.solved()) {
    SaveCheckpoint();  // Evaluations may be slow, and their environments fail.
    if (!Evaluate()) return LoopEnd::kInterrupted;
  }
  if (counters.reported_at != counters.steps) WriteRow();
  if (record_.steps_before_sitting() == 0 && !record_.saw_update()) {
    LogWarning("in {} steps no update was made: nothing was learned", counters.steps);
  }
  SaveCheckpoint();
  progress_.Finish(record_.Progress());
  return record_.solved() ? LoopEnd::kSolved : LoopEnd::kCompleted;
}

bool PipelineLoop::Train() {
  Metrics none;  // So that rows before the first update have its columns, too.
  for (const std::string& name : algorithm_.metric_names()) none.emplace_back(name, NAN);
  record_.AddMetrics(none, /*updated=*/false);
  sitting_.Restart();
  const bool over = Watch();
  try {
    roles_.Stop();
  } catch (const RoleFailed& error) {
    throw Failed(error);
  }
  Look({});
  return over;
}

bool PipelineLoop::Watch() {
  while (true) {
    Look(kLook);
    if (stop_requested_()) return false;
    if (news_.learner.ended || news_.failed) return true;
    const LoopCounters& counters = record_.counters();
    if (counters.steps >= experiment_.steps) {
      // The last evaluation and the last row come once the learner has ended.
    } else if (record_.IsDue(experiment_.evaluation.every, counters.evaluated_at)) {
      if (!Evaluate()) return false;
      WriteRow();  // Which has the evaluation.
      if (record_.solved()) return true;
    } else if (record_.RowIsDue()) {
      WriteRow();
    }
    if (record_.CheckpointIsDue(saved_at_)) SaveCheckpoint();
    progress_.Update(Progress());
  }
}

ProgressState PipelineLoop::Progress() {
  ProgressState state = record_.Progress();
  state.roles = busy_.Of(sitting_.seconds(), news_);
  return state;
}

void PipelineLoop::Look(std::chrono::nanoseconds time) {
  news_ = roles_.Look(time);
  LoopCounters& counters = record_.counters();
  counters.steps = news_.steps;
  counters.attempt = news_.attempt;
  counters.training_seconds = training_seconds_before_ + sitting_.seconds();
  record_.AddEpisodes(news_.episodes.last, news_.episodes.count);
  AddUp(told_, news_.episodes.metrics);
  lag_.Add(news_.lag);
  if (!news_.metrics.empty()) record_.AddMetrics(news_.metrics, /*updated=*/true);
  RequireRoomToBegin(experiment_.replay, algorithm_.item_steps(), news_.table);
  WarnOfStaleness();
  NameStall(news_.learner);
  for (const RoleStatus& status : news_.collectors) NameStall(status);
  for (const RoleStatus& status : news_.others) NameStall(status);
}

// What is dropped leaves the table, which nobody may draw from below its least size.
void PipelineLoop::WarnOfStaleness() {
  if (warned_of_staleness_ || experiment_.topology.staleness_max == 0) return;
  if (news_.table.inserts < pace_.items_min || news_.table.items >= pace_.items_min) return;
  warned_of_staleness_ = true;
  LogWarning(
      "topology.staleness_max = {} has dropped so much that replay keeps {} items, fewer than "
      "replay.min_size: learning waits for more, and training_intensity is not held; raise the "
      "one or lower the other",
      experiment_.topology.staleness_max, news_.table.items);
}

void PipelineLoop::NameStall(const RoleStatus& status) {
  if (status.ended || status.idle_seconds < kStallSeconds) {
    stalled_.erase(status.name);
    return;
  }
  if (!stalled_.insert(status.name).second) return;
  progress_.Say(fmt::format(
      "the {}{} has done nothing for {:.0f} s; {}", status.name,
      status.process == 0 ? std::string() : fmt::format(" process ({})", status.process),
      status.idle_seconds,
      status.waits_for.empty() ? std::string("it has not come to the end of what it does")
                               : fmt::format("it waits for {}", status.waits_for)));
}

void PipelineLoop::WriteRow() {
  const RoleStatus& learner = news_.learner;
  std::array<double, 4> seconds = {learner.working_seconds, learner.waited()};
  for (const RoleStatus& role : news_.collectors) {
    seconds[2] += role.working_seconds;
    seconds[3] += role.waited();
  }
  std::array<double, 4> since = seconds;
  for (std::size_t i = 0; i < since.size(); ++i) since[i] -= reported_.seconds[i];
  const TableInfo& table = news_.table;
  // Of what was owed, how much was drawn.
  const double owed = pace_.samples_per_insert * static_cast<double>(std::max<std::int64_t>(
                                                     1, table.inserts - pace_.items_min));
  const double intensity =
      experiment_.replay.training_intensity * static_cast<double>(table.samples) / owed;
  std::int64_t restarts = learner.restarts;
  for (const auto* roles : {&news_.collectors, &news_.others}) {
    for (const RoleStatus& status : *roles) restarts += status.restarts;
  }
  const PipelineRow row{.updates = static_cast<double>(news_.updates - reported_.updates),
                        .items = static_cast<double>(table.items),
                        .intensity = intensity,
                        .lag = std::exchange(lag_, {}),
                        .seconds = since,
                        .restarts = static_cast<double>(restarts - reported_.restarts)};
  record_.WriteRow(std::exchange(told_, {}), row.Columns());
  roles_table_.Write(news_.steps, record_.counters().training_seconds, news_);
  reported_ = {.updates = news_.updates, .restarts = restarts, .seconds = seconds};
}

EvaluationResult PipelineLoop::Play() {
  EvaluationPlan plan = EvaluationPlanOf(experiment_, algorithm_, record_.counters().evaluations);
  plan.stop_requested = [this] {
    roles_.GoOn();
    return stop_requested_();
  };
  return WithMemoryFor([&] { return fmt::format("{} episodes at once", plan.episodes); },
                       [&] { return menger::Evaluate(plan, evaluation_, greedy_); });
}

EvaluationResult PipelineLoop::PlayOrSave() {
  try {
    return Play();
  } catch (const Error& error) {
    SaveCheckpoint();
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
bool PipelineLoop::Evaluate() {
  const std::string candidate = folder_.checkpoint(kCandidate);
  const std::shared_ptr<const ParameterBlob> version = SaveTo(candidate, /*with_replay=*/false);
  if (version == nullptr) return true;  // Which is told where roles are stopped.
  pinned_->Pin(version);
  const EvaluationResult result = PlayOrSave();
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
  if (SaveTo(folder_.checkpoint(steps), /*with_replay=*/true) == nullptr) return;
  folder_.Prune(experiment_.checkpoint.keep, steps);
  saved_at_ = steps;
  record_.NoteCheckpoint(watch.seconds());
}

std::shared_ptr<const ParameterBlob> PipelineLoop::SaveTo(const std::string& path,
                                                          bool with_replay) {
  return WithMemoryFor([&] { return fmt::format("saving checkpoint '{}'", path); },
                       [&] {
                         ArchiveWriter archive(path);
                         record_.Save(archive);
                         archive.Write(SynchronousLoop::kCollectorLost, true);
                         auto version = roles_.Save(archive, with_replay);
                         if (version != nullptr) archive.Commit();
                         return version;
                       });
}

// What a learner that has failed left behind may be half an update.
Error PipelineLoop::Failed(const RoleFailed& error) {
  const std::string text =
      fmt::format("after {} steps: {}", record_.counters().steps, error.what());
  if (!error.learner()) SaveCheckpoint();
  if (folder_.Checkpoints().empty()) return Error(error.code(), text);
  return Error(error.code(),
               WithSentence(text, fmt::format("`menger train --resume {}` goes on from {} steps",
                                              folder_.path(), folder_.Checkpoints().back())));
}

}  // namespace menger
