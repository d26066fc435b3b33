#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "menger/base/files.h"
#include "menger/base/sharing/descriptor_server.h"
#include "menger/parameters/shared_parameters.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/server/replay_server.h"
#include "menger/tensor/memory.h"
#include "menger/training/experiment.h"
#include "menger/training/pipeline_parts.h"
#include "menger/training/roles/role_status.h"

// Roles as actors of the runtime, each in a process of its own. They are made from texts and paths
// alone; rows and parameters pass between them through shared memory, which the actors' calls only
// steer: whoever supervises them calls Advance again and again, for a slice of time each.

namespace menger {

// What a role in another process is made from.
struct RoleSpec {
  std::string experiment;    // Resolved, as TOML.
  std::string folder;        // Where roles meet: see RolePlaces.
  std::string checkpoint;    // An archive of what was learned, or the folder of what replay held.
  std::int64_t attempt = 0;  // A collector's, as CollectorSeed's,
  int collector = 0;         // and which it is.
  std::int64_t incarnation = 0;  // A learner's: 0 keeps that of its checkpoint.

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(experiment, folder, checkpoint, attempt, collector, incarnation);
  }
};

// Sockets in the folder where roles meet.
std::string SlabSocketIn(const std::string& folder, int collector, std::uint32_t number);
std::string ReplaySocketIn(const std::string& folder);
std::string MemorySocketIn(const std::string& folder);  // Hands out SharedRun's descriptors.

// What a role tells after a slice.
struct RoleReport {
  RoleStatus status;
  bool done = false;
  bool saved = false;  // It was told to.
  // Since the last one, of those who have them:
  EndedEpisodes episodes;
  Metrics metrics;
  VersionLag lag;
  TableInfo table;
  BatchMoments moments;

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(status, done, saved, episodes, metrics, lag, table, moments);
  }
};

// The recipe of a spec, with an environment of its own.
struct RoleRecipe {
  explicit RoleRecipe(const RoleSpec& spec);

  EnvironmentCatalog catalog;
  Experiment experiment;
  EnvironmentEntry environment;
};

// Serves the table that the others meet in.
class ReplayActor {
 public:
  explicit ReplayActor(const RoleSpec& spec);

  RoleReport Advance(std::chrono::nanoseconds slice);
  // Writes what the table holds to a folder. What `before` has already, if it is there, is not
  // written again.
  RoleReport Save(const std::string& path, const std::string& before);

 private:
  RoleReport Report() const;

  std::unique_ptr<ReplayStore> store_;
  std::unique_ptr<ReplayServer> server_;
};

// Learns, and publishes to the shared memory.
class LearnerActor {
 public:
  explicit LearnerActor(const RoleSpec& spec);

  // `observed`: by collectors. Saves before it says that it is done, so that nothing is lost if its
  // process dies after that.
  RoleReport Advance(std::chrono::nanoseconds slice, const BatchMoments& observed);
  // Publishes, and writes what was learned into the archive that it began with; `observed` as
  // above.
  RoleReport Save(const BatchMoments& observed);

 private:
  void PublishToAll();

  const RoleRecipe recipe_;
  const std::string learned_;  // The archive.
  LearningParts parts_;
  ReplayAlgorithm& algorithm_;
  std::vector<FileDescriptor> shared_;
  SharedPublication publication_;
  const std::unique_ptr<SharedMemory> memory_;
  ServedReplay replay_;
  const int table_;
  ReplayTrainer trainer_;
  std::unique_ptr<LearnerRole> role_;
  RoleMeter meter_;
};

// Steps environments by the versions in shared memory.
class CollectorActor {
 public:
  explicit CollectorActor(const RoleSpec& spec);

  RoleReport Advance(std::chrono::nanoseconds slice);

 private:
  RemotePolicy::ShowSlab ShowSlabs(const RoleSpec& spec);  // Empty where it acts itself.

  const RoleRecipe recipe_;
  const std::unique_ptr<Algorithm> algorithm_;  // Says what policies and items are; learns nothing.
  std::vector<FileDescriptor> shared_;
  const SharedParameters parameters_;
  const std::unique_ptr<SharedMemory> memory_;
  ServedReplay replay_;
  std::unique_ptr<DescriptorServer> slab_;  // Hands out its slab, where inference is apart.
  std::unique_ptr<CollectorRole> role_;
  RoleMeter meter_;
};

// Acts for the collectors, on slabs that it maps.
class InferenceActor {
 public:
  explicit InferenceActor(const RoleSpec& spec);

  RoleReport Advance(std::chrono::nanoseconds slice);

 private:
  struct Mapped {
    std::uint32_t number = 0;  // 0: none.
    std::optional<Slab> slab;
  };

  Slab* Find(int collector, std::uint32_t number);

  const RoleRecipe recipe_;
  const std::string folder_;
  const std::unique_ptr<Algorithm> algorithm_;  // Says what policies are; learns nothing.
  const std::vector<CollectorShare> shares_;
  std::vector<FileDescriptor> shared_;
  const SharedParameters parameters_;
  const std::unique_ptr<SharedMemory> memory_;
  std::vector<Mapped> slabs_;  // By collector.
  std::unique_ptr<InferenceRole> role_;
  RoleMeter meter_;
};

}  // namespace menger
