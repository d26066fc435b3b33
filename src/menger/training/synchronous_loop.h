#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "menger/base/clock.h"
#include "menger/training/heartbeat.h"
#include "menger/training/progress.h"
#include "menger/training/progress_table.h"
#include "menger/training/run_folder.h"
#include "menger/training/run_record.h"
#include "menger/training/training_loop.h"
#include "menger/training/training_parts.h"

namespace menger {

// Collect, learn, publish; again and again, in one thread's order, whatever the cycle collects,
// until the steps are done, two evaluations in a row reach the return that was asked for, or
// somebody wants it to stop.
//
// Between two slabs, and only there, it evaluates, reports and saves, so that a checkpoint holds
// the whole state: a run that was interrupted and resumed goes on bit for bit as one that was not.
// Stopped during an evaluation it leaves it, and makes the whole of it when it is resumed.
// The last slab is cut where the steps are reached: with a step of all environments, so a run may
// take one less than there are environments more.
// Borrows everything it is given. One thread.
//
// An error ends the loop. What it says has the step, and how to go on:
// - of an environment, or one that hangs: what was learned is saved, without the environments,
// which
//   are in the middle of a slab. Resumed, they start anew under the next `attempt`'s seeds.
// - of an evaluation's environments: everything is saved. Where the recipe says restart, the
//   evaluation is tried again twice before. Resumed, the run begins with it.
// - of a replay server that does not come back: as of an environment.
// - of learning, or an action that an environment refuses: what was learned is at
//   fault, or half an update, so nothing is saved. Resumed, the run goes on from the checkpoint
//   before, and comes to the same error unless what it names is mended.
class SynchronousLoop final : public TrainingLoop {
 public:
  // `evaluation` is the environment as evaluations see it; `stop_requested` is asked once a slab,
  // those of an evaluation included, and now and then in another thread; once true, it stays so.
  // Throws Internal where metrics cannot be columns of progress.csv: two of one name, one of the
  // loop's own, a comma.
  SynchronousLoop(const Experiment& experiment, EnvironmentEntry evaluation, TrainingParts& parts,
                  const RunFolder& folder, ProgressReporter& progress,
                  std::function<bool()> stop_requested);

  void WriteSettings() override { record_.WriteSettings(); }
  void Restore(ArchiveReader checkpoint) override;
  LoopEnd Run() override;

  const LoopCounters& counters() const override { return counters_; }
  double episode_return_mean() const override { return record_.episode_return_mean(); }

  // Where SynchronousLoop says that a checkpoint has no environments' state.
  static constexpr const char* kCollectorLost = "loop/collector_lost";

 private:
  bool EvaluateAndReport();  // What is due by now; false if it was stopped: then it is due still.
  std::string UpdateText() const;  // For errors.
  void CollectAndLearn();
  void Collect();
  EvaluationResult EvaluateGreedily();
  bool EvaluateNow();  // False if it was stopped: then nothing has changed.
  Error CollectionFailed(const Error& error);
  Error ReplayFailed(const Error& error);
  Error LearningFailed(const Error& error, const char* what) const;
  Error AlgorithmFailed(const Error& error) const;
  std::string ResumeText() const;  // Where the run can go on; empty: nowhere yet.
  void WriteRow();
  ProgressTable::Row TakeTimes();
  void SaveCheckpoint();
  void SaveTo(const std::string& path, bool with_collector);
  void SaveWhole(const std::string& path, bool with_collector);
  std::int64_t StepsOfAnUpdate() const;  // 0: nobody knows before.

  const Experiment& experiment_;
  const EnvironmentEntry evaluation_;
  TrainingParts& parts_;
  LearningCycle& cycle_;  // Of parts_; stays where it is also when it is left to a thread.
  const RunFolder& folder_;
  ProgressReporter& progress_;
  const std::function<bool()> stop_requested_;

  // For whoever waits; what the phases ask must be there as long as they may.
  const std::function<std::int64_t()> collected_ = [this] { return cycle_.steps_under_way(); };
  std::atomic<std::int64_t> evaluation_steps_{0};
  const std::function<std::int64_t()> evaluated_ = [this] { return evaluation_steps_.load(); };
  const std::function<std::int64_t()> unknown_;
  Heartbeat heartbeat_;

  std::vector<std::unique_ptr<Policy>> greedy_;  // One a thread that evaluates.
  RunRecord record_;
  LoopCounters& counters_ = record_.counters();

  // Seconds since the last row of progress.csv, in this sitting.
  struct {
    double collecting = 0;
    double learning = 0;
    CollectorTimes threads_before;  // Of the collector's threads, when the last row was written.
  } spent_;
};

}  // namespace menger
