#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/base/archive.h"
#include "menger/parameters/parameter_source.h"
#include "menger/replay/table.h"
#include "menger/training/learning/replay_trainer.h"
#include "menger/training/roles/collector_role.h"
#include "menger/training/roles/role_status.h"

namespace menger {

// Where a pipeline begins.
struct PipelineStart {
  std::int64_t steps = 0;                     // Collected before.
  std::int64_t attempt = 0;                   // See CollectorSeed.
  const ArchiveReader* checkpoint = nullptr;  // With what replay held; null: a new run.
};

// How the roles of a pipeline fare.
struct PipelineNews {
  std::int64_t steps = 0;    // Replay was given, in all.
  std::int64_t updates = 0;  // Since they began.
  std::int64_t attempt = 0;  // The highest that a collector draws under.
  // Since somebody looked last:
  EndedEpisodes episodes;
  Metrics metrics;  // Empty where there was no update.
  VersionLag lag;
  TableInfo table;
  RoleStatus learner;  // Which has made all updates once it has ended,
  std::vector<RoleStatus> collectors;
  std::vector<RoleStatus> others;  // Replay, where it is a role.
  bool failed = false;             // One cannot go on: Stop says which and why.
};

// A collector's or another's failure, after which what was learned can be saved.
class RoleFailed : public Error {
 public:
  RoleFailed(const Error& error, bool learner)
      : Error(error.code(), error.what()), learner_(learner) {}

  bool learner() const { return learner_; }  // What it left may be half an update.

 private:
  bool learner_;
};

// The roles of a pipeline, wherever they go on. One thread.
class PipelineRoles {
 public:
  virtual ~PipelineRoles() = default;

  // Makes them; they rest until somebody looks.
  virtual void Begin(const PipelineStart& start) = 0;

  // Versions of those who learn, for evaluations. After Begin.
  virtual const ParameterSource& parameters() const = 0;

  // Sees to them for so long at least.
  virtual PipelineNews Look(std::chrono::nanoseconds time) = 0;

  // Lets them go on, for who does something else for long: to be called again and again, and costs
  // nothing.
  virtual void GoOn() {}

  // Publishes what was learned and writes that version to the archive of a checkpoint, if asked to
  // with what replay holds. Null, and nothing written, where the learner has failed.
  virtual std::shared_ptr<const ParameterBlob> Save(ArchiveWriter& archive, bool with_replay) = 0;

  // They rest for good; what they have done can be saved and looked at. Throws RoleFailed.
  virtual void Stop() = 0;
};

}  // namespace menger
