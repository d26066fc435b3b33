#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/parameters/pinned_parameters.h"
#include "menger/training/evaluation.h"
#include "menger/training/pipeline_parts.h"
#include "menger/training/pipeline_roles.h"
#include "menger/training/progress.h"
#include "menger/training/role_table.h"
#include "menger/training/run_folder.h"
#include "menger/training/run_record.h"
#include "menger/training/training_loop.h"

namespace menger {

// Collects and learns at the same time: roles go on by themselves, wherever they are, while this
// one looks on, writes rows, evaluates and saves.
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
  PipelineLoop(const Experiment& experiment, EnvironmentEntry evaluation, LearningParts& parts,
               PipelineRoles& roles, const RunFolder& folder, ProgressReporter& progress,
               std::function<bool()> stop_requested);

  void WriteSettings() override { record_.WriteSettings(); }
  void Restore(ArchiveReader checkpoint) override;
  LoopEnd Run() override;
  const LoopCounters& counters() const override { return record_.counters(); }
  double episode_return_mean() const override { return record_.episode_return_mean(); }

 private:
  bool Train();  // Until all is over, or has failed; false if it was stopped.
  bool Watch();
  void Look(std::chrono::nanoseconds time);
  ProgressState Progress();
  void WarnOfStaleness();
  void NameStall(const RoleStatus& status);
  void WriteRow();
  bool Evaluate();  // False if it was stopped.
  EvaluationResult Play();
  EvaluationResult PlayOrSave();  // Where it throws, all is saved.
  void SaveCheckpoint();
  // Null, and nothing is there, where the learner has failed.
  std::shared_ptr<const ParameterBlob> SaveTo(const std::string& path, bool with_replay);
  Error Failed(const RoleFailed& error);

  const Experiment& experiment_;
  const EnvironmentEntry evaluation_;
  LearningParts& parts_;
  ReplayAlgorithm& algorithm_;
  PipelineRoles& roles_;
  const RunFolder& folder_;
  ProgressReporter& progress_;
  const std::function<bool()> stop_requested_;
  std::optional<PinnedParameters> pinned_;       // From the beginning on.
  std::vector<std::unique_ptr<Policy>> greedy_;  // One a thread that evaluates.
  RunRecord record_;
  RoleTable roles_table_;
  BusyText busy_;
  const PipelinePace pace_;

  std::optional<ArchiveReader> restored_;  // Where it was resumed, until it begins.
  PipelineNews news_;                      // As looked at last.
  VersionLag lag_;                         // Since the last row.
  double training_seconds_before_ = 0;     // Of earlier sittings.
  Stopwatch sitting_;
  std::vector<EnvironmentMetric> told_;  // By environments since the last row.
  std::set<std::string> stalled_;        // Roles that were named for doing nothing.
  bool warned_of_staleness_ = false;

  std::int64_t saved_at_ = 0;  // Steps of the last checkpoint.
  // When the last row was written.
  struct {
    std::int64_t updates = 0;
    std::int64_t restarts = 0;
    std::array<double, 4> seconds{};  // As columns have them.
  } reported_;
};

}  // namespace menger
