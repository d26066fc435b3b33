#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "menger/training/learning/replay_trainer.h"
#include "menger/training/pipeline_parts.h"
#include "menger/training/pipeline_roles.h"
#include "menger/training/roles/role_thread.h"
#include "menger/training/run_replay.h"

namespace menger {

// Roles as threads of this process. Borrows what it is given.
class ThreadRoles final : public PipelineRoles {
 public:
  ThreadRoles(const Experiment& experiment, const EnvironmentEntry& environment,
              ReplayAlgorithm& algorithm, UpdateRule& update);

  void Begin(const PipelineStart& start) override;
  const ParameterSource& parameters() const override { return algorithm_.publication(); }
  PipelineNews Look(std::chrono::nanoseconds time) override;
  std::shared_ptr<const ParameterBlob> Save(ArchiveWriter& archive, bool with_replay) override;
  void Stop() override;

 private:
  struct Threads {
    Threads(LearnerRole& learns, const std::vector<std::unique_ptr<CollectorRole>>& collect,
            InferenceRole* infers)
        : learner(learns) {
      if (infers != nullptr) inference.emplace(*infers);
      for (const auto& role : collect) collectors.push_back(std::make_unique<RoleThread>(*role));
    }
    RoleThread learner;
    std::optional<RoleThread> inference;  // After those who ask have gone.
    std::vector<std::unique_ptr<RoleThread>> collectors;
  };

  std::optional<RoleFailed> JoinCollectors();  // What the first one has thrown.

  const Experiment& experiment_;
  const EnvironmentEntry& environment_;
  ReplayAlgorithm& algorithm_;
  UpdateRule& update_;
  RunReplay replay_;
  ReplayTrainer trainer_;
  const std::unique_ptr<RunMemory> memory_ = std::make_unique<RunMemory>();
  RunCounts& counts_ = memory_->counts;
  std::vector<std::atomic<Slab*>> slabs_;     // By collector, where inference is apart.
  std::unique_ptr<InferenceRole> inference_;  // Null where it is not.
  std::vector<std::unique_ptr<CollectorRole>> collectors_;
  std::unique_ptr<LearnerRole> learner_;
  std::int64_t attempt_ = 0;
  std::int64_t updates_seen_ = 0;
  bool stopped_ = false;
  std::optional<Threads> threads_;  // Last: they use all of the above. None before somebody looks.
};

}  // namespace menger
