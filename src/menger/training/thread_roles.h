#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "menger/training/local_roles.h"
#include "menger/training/roles/role_thread.h"

namespace menger {

// Roles of this process, each advanced by a thread of its own. Borrows what it is given.
class ThreadRoles final : public LocalRoles {
 public:
  ThreadRoles(const Experiment& experiment, const EnvironmentEntry& environment,
              ReplayAlgorithm& algorithm, UpdateRule& update)
      : LocalRoles(experiment, environment, algorithm, update) {}

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

  bool stopped_ = false;
  std::optional<Threads> threads_;  // None before somebody looks.
};

}  // namespace menger
