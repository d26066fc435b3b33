#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/parameters/pinned_parameters.h"
#include "menger/training/evaluation.h"
#include "menger/training/pipeline_parts.h"
#include "menger/training/progress.h"
#include "menger/training/roles/collector_role.h"
#include "menger/training/roles/learner_role.h"
#include "menger/training/roles/role_thread.h"
#include "menger/training/run_folder.h"
#include "menger/training/run_record.h"
#include "menger/training/training_loop.h"

namespace menger {

// Collects and learns at the same time: each role in a thread of its own, while this one looks on,
// writes rows, evaluates and saves.
//
// The roles never wait for this thread but while a checkpoint is written, which the learner does.
// An evaluation plays with the version that is the newest when it begins. The steps of rows,
// checkpoints and evaluations are those that replay had been given by then, so the same seed gives
// other bits each time. A checkpoint has the learner, the content of replay and the counters;
// resumed, environments begin fresh episodes under another attempt's seeds.
//
// Borrows everything it is given. One thread. Errors as SynchronousLoop's: what a role throws ends
// the run; where it was not the learner's, what was learned is saved.
class PipelineLoop final : public TrainingLoop {
 public:
  PipelineLoop(const Experiment& experiment, const EnvironmentEntry& training,
               EnvironmentEntry evaluation, PipelineParts& parts, const RunFolder& folder,
               ProgressReporter& progress, std::function<bool()> stop_requested);

  void WriteSettings() override { record_.WriteSettings(); }
  void Restore(ArchiveReader checkpoint) override;
  LoopEnd Run() override;
  const LoopCounters& counters() const override { return record_.counters(); }
  double episode_return_mean() const override { return record_.episode_return_mean(); }

 private:
  struct Threads {
    Threads(LearnerRole& learns, CollectorRole& collects) : learner(learns), collector(collects) {}
    RoleThread learner;
    RoleThread collector;
  };

  Pace PaceOf() const;           // What the learner is told, in its thread.
  bool Train();                  // False if it was stopped.
  bool Watch(Threads& threads);  // Until all is over, or has failed; false if it was stopped.
  void LookAtRoles(const Threads& threads);
  void NameStall(const RoleStatus& status);
  // While roles go on, or where there are none (null).
  void WriteRow(Threads* threads);
  bool Evaluate(Threads* threads);  // False if it was stopped.
  EvaluationResult Play();
  EvaluationResult PlayOrSave(Threads* threads);  // Where it throws, all is saved.
  // While the learner rests.
  void SaveCheckpoint();
  void SaveTo(const std::string& path, bool with_replay);
  Error Failed(const Error& error, bool of_learner);

  const Experiment& experiment_;
  const EnvironmentEntry training_;
  const EnvironmentEntry evaluation_;
  PipelineParts& parts_;
  const RunFolder& folder_;
  ProgressReporter& progress_;
  const std::function<bool()> stop_requested_;
  PinnedParameters pinned_;
  std::vector<std::unique_ptr<Policy>> greedy_;  // One a thread that evaluates.
  RunRecord record_;
  const PipelinePace pace_;

  std::unique_ptr<CollectorRole> collector_;
  std::unique_ptr<LearnerRole> learner_;
  std::int64_t steps_before_ = 0;  // These two: of earlier sittings.
  double training_seconds_before_ = 0;
  Stopwatch sitting_;
  std::int64_t updates_seen_ = 0;
  std::vector<EnvironmentMetric> told_;  // By environments since the last row.
  std::set<std::string> stalled_;        // Roles that were named for doing nothing.

  std::int64_t saved_at_ = 0;  // Steps of the last checkpoint.
  // When the last row was written.
  struct {
    std::int64_t updates = 0;
    std::array<double, 4> seconds{};  // As columns have them.
  } reported_;
};

}  // namespace menger
