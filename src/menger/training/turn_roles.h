#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "menger/base/random.h"
#include "menger/training/local_roles.h"

namespace menger {

// Roles of this process that take turns in the thread of who looks, in an order that the run's seed
// draws: one seed, one result, whatever the machine does meanwhile. For tests, and to look into
// what a pipeline does. Borrows what it is given.
//
// A look is a number of turns, not a time; checkpoints, which time decides, publish nothing.
class TurnRoles final : public LocalRoles {
 public:
  TurnRoles(const Experiment& experiment, const EnvironmentEntry& environment,
            ReplayAlgorithm& algorithm, UpdateRule& update);

  void Begin(const PipelineStart& start) override;
  PipelineNews Look(std::chrono::nanoseconds time) override;
  std::shared_ptr<const ParameterBlob> Save(ArchiveWriter& archive, bool with_replay) override;
  void Stop() override;

 private:
  struct Turn {
    Role* role;
    RoleMeter meter;
    bool ended = false;
  };

  std::function<void()> WhileAsking() override;
  void Take(Turn& turn);
  RoleStatus StatusOf(const Turn& turn) const;

  Random random_;
  std::vector<Turn> turns_;  // The learner, then the collectors.
  std::optional<RoleFailed> failed_;
};

}  // namespace menger
