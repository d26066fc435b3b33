#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/clock.h"
#include "menger/environments/environment.h"
#include "menger/training/evaluation.h"
#include "menger/training/event_file.h"
#include "menger/training/experiment.h"
#include "menger/training/learning/loop_state.h"
#include "menger/training/learning/metric_watch.h"
#include "menger/training/progress.h"
#include "menger/training/progress_table.h"
#include "menger/training/run_folder.h"

namespace menger {

// What a run says of itself while it goes on, whatever its loop: its counters, rows of progress.csv
// and of the event file, what of them is due. One thread.
class RunRecord {
 public:
  // `metrics`: names of what learning reports; `times`: of the loop's own columns. Throws Internal
  // where they cannot be columns of progress.csv: two of one name, one of the record's own, a
  // comma. Borrows the experiment.
  RunRecord(const Experiment& experiment, const EnvironmentSpec& environment,
            const RunFolder& folder, const std::vector<std::string>& metrics,
            const ProgressTable::Row& times);

  // Puts what the run is into the event file: for a new run.
  void WriteSettings();

  LoopCounters& counters() { return counters_; }
  const LoopCounters& counters() const { return counters_; }
  double episode_return_mean() const { return recent_.return_mean(); }

  void BeginSitting() { sitting_.Restart(); }
  void AddEpisodes(std::span<const EpisodeResult> episodes, std::int64_t count);
  // What learning reported. `updated`: as MetricWatch::Look.
  void AddMetrics(const Metrics& metrics, bool updated);
  bool AddEvaluation(const EvaluationResult& result);  // True: it is the best so far.
  bool saw_update() const { return watch_.saw_update(); }
  std::int64_t steps_before_sitting() const { return steps_before_sitting_; }

  // Whether a multiple of `every` steps was passed since `last`, in steps; -1 for never.
  bool IsDue(std::int64_t every, std::int64_t last) const;
  bool RowIsDue() const { return IsDue(RowEvery(), counters_.reported_at); }
  bool EvaluationIsDue() const;
  // By the steps of the last one, or by the time since then.
  bool CheckpointIsDue(std::int64_t last) const;
  void NoteCheckpoint(double seconds);  // One was written, which took so long.
  bool solved() const { return counters_.reached_in_a_row >= 2; }

  // `told`: by environments, of episodes since the last row.
  void WriteRow(const std::vector<EnvironmentMetric>& told, const ProgressTable::Row& times);
  ProgressState Progress() const;

  // The scope is the whole checkpoint's: what is saved begins with "loop/", beside the experiment
  // and the build. Loading drops the rows that were written after it.
  void Save(ArchiveWriter& archive);
  void Load(const ArchiveReader& archive);

 private:
  ProgressTable::Row RowOf(double evaluation, const ProgressTable::Row& learned,
                           const ProgressTable::Row& told, const ProgressTable::Row& times) const;
  ProgressTable::Row ToldRow(const std::vector<EnvironmentMetric>& told) const;
  std::int64_t RowEvery() const;
  double Seconds() const { return seconds_before_ + sitting_.seconds(); }

  const Experiment& experiment_;
  const std::vector<std::string> told_names_;
  ProgressTable table_;
  EventFile events_;

  LoopCounters counters_;
  RecentEpisodes recent_;
  MetricMeans metrics_;
  MetricWatch watch_;

  Stopwatch sitting_;          // Since this process began to train.
  double seconds_before_ = 0;  // Of earlier sittings.
  std::int64_t steps_before_sitting_ = 0;
  double training_seconds_before_ = 0;

  Stopwatch since_checkpoint_;  // Or since this was made.
  double checkpoint_took_ = 0;  // Seconds.
};

}  // namespace menger
