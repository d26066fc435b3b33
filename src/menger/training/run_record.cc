#include "menger/training/run_record.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "menger/base/build_identity.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::int64_t kRowsWhenNotAsked = 200;  // [progress] every = 0: rows of a whole run.
// Saving by time, a run spends no more than one part in so many on it.
constexpr double kCheckpointShare = 50;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RunRecord::RunRecord(const Experiment& experiment, const EnvironmentSpec& environment,
                     const RunFolder& folder, const std::vector<std::string>& metrics,
                     const ProgressTable::Row& times)
    : experiment_(experiment),
      told_names_(environment.metrics),
      table_(folder.file("progress.csv")),
      events_(folder.file("events.out.tfevents.0")),
      watch_(experiment.algorithm, metrics) {
  ProgressTable::Row learned;
  for (const std::string& name : watch_.names()) learned.emplace_back(name, 0.0);
  try {
    ProgressTable::CheckColumns(RowOf(0, learned, ToldRow({}), times));
  } catch (const Error& error) {
    throw WithContext(error, fmt::format("metrics of algorithm '{}' on {}", experiment.algorithm,
                                         experiment.environment));
  }
}

void RunRecord::WriteSettings() {
  std::vector<std::pair<std::string, OptionValue>> settings;
  for (const Options& section : experiment_.sections()) {
    for (const OptionEntry& entry : section.Entries())
      settings.emplace_back(entry.key, entry.value);
  }
  events_.AppendSettings(SecondsSince1970(), experiment_.ToToml(/*with_origins=*/true), settings);
}

void RunRecord::AddEpisodes(std::span<const EpisodeResult> episodes, std::int64_t count) {
  recent_.Add(episodes);
  counters_.episodes += count;
}

void RunRecord::AddMetrics(const Metrics& metrics, bool updated) {
  watch_.Look(metrics, updated, counters_.steps);
  metrics_.Add(metrics);
}

bool RunRecord::AddEvaluation(const EvaluationResult& result) {
  ++counters_.evaluations;
  counters_.evaluated_at = counters_.steps;
  counters_.evaluation_episodes = result.episodes();
  counters_.evaluation_mean = result.mean();
  counters_.evaluation_deviation = result.standard_deviation();
  counters_.evaluation_minimum = result.minimum();
  counters_.evaluation_maximum = result.maximum();
  const bool reached = result.mean() >= experiment_.evaluation.stop_at_return;
  counters_.reached_in_a_row = reached ? counters_.reached_in_a_row + 1 : 0;
  if (result.mean() <= counters_.best_mean) return false;
  counters_.best_mean = result.mean();
  counters_.best_at = counters_.steps;
  return true;
}

bool RunRecord::IsDue(std::int64_t every, std::int64_t last) const {
  return every > 0 && counters_.steps / every > std::max<std::int64_t>(0, last) / every;
}

bool RunRecord::EvaluationIsDue() const {
  const bool completed = counters_.steps >= experiment_.steps;
  return IsDue(experiment_.evaluation.every, counters_.evaluated_at) ||
         (completed && counters_.evaluated_at != counters_.steps);
}

bool RunRecord::CheckpointIsDue(std::int64_t last) const {
  if (experiment_.checkpoint.every > 0) return IsDue(experiment_.checkpoint.every, last);
  return since_checkpoint_.seconds() >
         std::max(experiment_.checkpoint.seconds, kCheckpointShare * checkpoint_took_);
}

void RunRecord::NoteCheckpoint(double seconds) {
  since_checkpoint_.Restart();
  checkpoint_took_ = seconds;
}

std::int64_t RunRecord::RowEvery() const {
  if (experiment_.progress.every > 0) return experiment_.progress.every;
  return std::max<std::int64_t>(1, experiment_.steps / kRowsWhenNotAsked);
}

// One column a name; NaN where no episode has told it since the last row.
ProgressTable::Row RunRecord::ToldRow(const std::vector<EnvironmentMetric>& told) const {
  ProgressTable::Row row;
  for (const std::string& name : told_names_) {
    double mean = kUnknown;
    for (const EnvironmentMetric& metric : told) {
      if (metric.name == name && metric.count > 0) {
        mean = metric.sum / static_cast<double>(metric.count);
      }
    }
    row.emplace_back("environment/" + name, mean);
  }
  return row;
}

ProgressTable::Row RunRecord::RowOf(double evaluation, const ProgressTable::Row& learned,
                                    const ProgressTable::Row& told,
                                    const ProgressTable::Row& times) const {
  ProgressTable::Row row = {{"steps", static_cast<double>(counters_.steps)},
                            {"seconds", Seconds()},
                            {"episode_return_mean", recent_.return_mean()},
                            {"episode_length_mean", recent_.length_mean()},
                            {"episodes", static_cast<double>(counters_.episodes)},
                            {"evaluation_return_mean", evaluation},
                            {"training_seconds", counters_.training_seconds}};
  for (const auto* const part : {&learned, &told, &times}) {
    row.insert(row.end(), part->begin(), part->end());
  }
  return row;
}

void RunRecord::WriteRow(const std::vector<EnvironmentMetric>& metrics,
                         const ProgressTable::Row& times) {
  const bool evaluated = counters_.evaluated_at > counters_.reported_at;
  const double evaluation = evaluated ? counters_.evaluation_mean : kUnknown;
  const ProgressTable::Row learned = metrics_.TakeMeans();
  counters_.reported_at = counters_.steps;
  const ProgressTable::Row told = ToldRow(metrics);
  table_.Append(RowOf(evaluation, learned, told, times));

  ProgressTable::Row scalars = {{"episode/return_mean", recent_.return_mean()},
                                {"episode/length_mean", recent_.length_mean()},
                                {"evaluation/return_mean", evaluation},
                                {"time/steps_per_second", Progress().steps_per_second}};
  for (const auto& [name, value] : learned) scalars.emplace_back("learning/" + name, value);
  scalars.insert(scalars.end(), told.begin(), told.end());
  for (const auto& [name, value] : times) scalars.emplace_back("time/" + name, value);
  events_.Append(counters_.steps, SecondsSince1970(), scalars);
}

ProgressState RunRecord::Progress() const {
  const double seconds = counters_.training_seconds - training_seconds_before_;
  const auto steps = static_cast<double>(counters_.steps - steps_before_sitting_);
  const double rate = seconds > 0 ? steps / seconds : kUnknown;
  const std::int64_t left = std::max<std::int64_t>(0, experiment_.steps - counters_.steps);
  return {.steps = counters_.steps,
          .steps_total = experiment_.steps,
          .seconds_left = static_cast<double>(left) / rate,
          .steps_per_second = rate,
          .return_mean = recent_.return_mean(),
          .evaluation_mean = counters_.evaluation_mean};
}

void RunRecord::Save(ArchiveWriter& archive) {
  table_.Sync();
  events_.Sync();
  counters_.seconds = Seconds();
  counters_.progress_bytes = table_.size();
  counters_.event_bytes = events_.size();
  archive.Write("experiment", experiment_.ToToml());
  archive.Write("build", ToString(ThisBuild()));
  archive.Write("loop/counters", counters_);
  recent_.Save(archive.Scope("loop/recent"));
  metrics_.Save(archive.Scope("loop/metrics"));
}

void RunRecord::Load(const ArchiveReader& archive) {
  archive.Read("loop/counters", counters_);
  recent_.Load(archive.Scope("loop/recent"));
  metrics_.Load(archive.Scope("loop/metrics"));
  table_.TruncateTo(counters_.progress_bytes);
  events_.TruncateTo(counters_.event_bytes);
  seconds_before_ = counters_.seconds;
  steps_before_sitting_ = counters_.steps;
  training_seconds_before_ = counters_.training_seconds;
}

}  // namespace menger
