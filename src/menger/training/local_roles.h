#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "menger/training/learning/replay_trainer.h"
#include "menger/training/pipeline_parts.h"
#include "menger/training/pipeline_roles.h"
#include "menger/training/run_replay.h"

namespace menger {

// Roles of this process, whoever advances them. Borrows what it is given.
class LocalRoles : public PipelineRoles {
 public:
  void Begin(const PipelineStart& start) override;
  const ParameterSource& parameters() const override { return algorithm_.publication(); }

 protected:
  LocalRoles(const Experiment& experiment, const EnvironmentEntry& environment,
             ReplayAlgorithm& algorithm, UpdateRule& update);

  // What is new but for how each role fares.
  PipelineNews News();
  // The version that is published.
  std::shared_ptr<const ParameterBlob> SaveNow(ArchiveWriter& archive, bool with_replay);

  // What those call who wait for inference to act; by default they just wait.
  virtual std::function<void()> WhileAsking() { return {}; }

  const Experiment& experiment() const { return experiment_; }
  LearnerRole& learner() { return *learner_; }
  InferenceRole* inference() { return inference_.get(); }  // Null where it is not apart.
  std::vector<std::unique_ptr<CollectorRole>>& collectors() { return collectors_; }

 private:
  const Experiment& experiment_;
  const EnvironmentEntry& environment_;
  ReplayAlgorithm& algorithm_;
  UpdateRule& update_;
  RunReplay replay_;
  ReplayTrainer trainer_;
  const std::unique_ptr<RunMemory> memory_;
  std::vector<std::atomic<Slab*>> slabs_;  // By collector, where inference is apart.
  std::unique_ptr<InferenceRole> inference_;
  std::vector<std::unique_ptr<CollectorRole>> collectors_;
  std::unique_ptr<LearnerRole> learner_;
  std::int64_t attempt_ = 0;
};

}  // namespace menger
