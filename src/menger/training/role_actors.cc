#include "menger/training/role_actors.h"

#include <unistd.h>

#include <filesystem>
#include <thread>
#include <utility>

#include "menger/base/archive.h"
#include "menger/base/error.h"
#include "menger/base/sharing/descriptor_server.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/replay_content.h"
#include "menger/training/program_environments.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kSlabTime{500};  // For a collector that lives.
constexpr std::chrono::seconds kMeetingTime{60};     // For others to begin, or to come back.

ServedReplayOptions ReplayIn(const std::string& folder) {
  return {.socket = ReplaySocketIn(folder), .patience = kMeetingTime};
}

std::unique_ptr<SharedMemory> MemoryIn(const std::vector<FileDescriptor>& shared) {
  return MapSharedMemory(shared.at(1).get(), sizeof(RunMemory));
}

RunMemory& RunOf(SharedMemory& memory) { return *reinterpret_cast<RunMemory*>(memory.data()); }

RoleReport ReportOf(const Role& role, const RoleMeter& meter) {
  RoleReport report{.status = meter.StatusOf(role)};
  report.status.process = getpid();
  return report;
}

// Until the slice is over, or nothing is left to do.
RoleReport AdvanceFor(std::chrono::nanoseconds slice, Role& role, RoleMeter& meter) {
  const Deadline end = Deadline::After(slice);
  bool done = false;
  do {
    const Stopwatch watch;
    const Advanced advanced = role.Advance(end);
    meter.Count(advanced, watch.seconds());
    done = advanced.state == Advanced::State::kDone;
  } while (!done && !end.expired());
  RoleReport report = ReportOf(role, meter);
  report.done = report.status.ended = done;
  return report;
}

}  // namespace

std::string ReplaySocketIn(const std::string& folder) { return folder + "/replay"; }
std::string SlabSocketIn(const std::string& folder, int collector, std::uint32_t number) {
  return fmt::format("{}/slab-{}-{}", folder, collector, number);
}
std::string MemorySocketIn(const std::string& folder) { return folder + "/memory"; }

RoleRecipe::RoleRecipe(const RoleSpec& spec)
    : catalog(ProgramEnvironments()),
      experiment(spec.experiment, "the run's recipe", {}, AllAlgorithms(), catalog),
      environment(experiment.OpenEnvironment(EnvironmentUse::kTraining)) {}

// ---- Replay

ReplayActor::ReplayActor(const RoleSpec& spec) {
  const RoleRecipe recipe(spec);
  const std::unique_ptr<Algorithm> algorithm = MakeAlgorithm(recipe.experiment, recipe.environment);
  ReplayStoreOptions options =
      PipelineStore(recipe.experiment, static_cast<ReplayAlgorithm&>(*algorithm));
  options.shared = true;
  store_ = std::make_unique<ReplayStore>(options);
  if (std::filesystem::exists(spec.checkpoint)) ReplayCheckpoint::Load(spec.checkpoint, *store_);
  server_ = std::make_unique<ReplayServer>(
      *store_, /*keeper=*/nullptr, ReplayServerOptions{.socket = ReplaySocketIn(spec.folder)});
}

RoleReport ReplayActor::Report() const {
  RoleReport report{.status = {.name = "replay", .process = getpid()},
                    .table = store_->table(0).info()};
  report.status.done = report.table.inserts;
  return report;
}

// The server's threads work; this one tells how they fare.
RoleReport ReplayActor::Advance(std::chrono::nanoseconds slice) {
  std::this_thread::sleep_for(slice);
  return Report();
}

RoleReport ReplayActor::Save(const std::string& path, const std::string& before) {
  std::filesystem::remove_all(path);  // What one that died has left.
  ReplayCheckpoint(*store_).Write(path, before);
  RoleReport report = Report();
  report.saved = true;
  return report;
}

// ---- The learner

LearnerActor::LearnerActor(const RoleSpec& spec)
    : recipe_(spec),
      learned_(spec.checkpoint),
      parts_(MakeLearningParts(recipe_.experiment, recipe_.environment)),
      algorithm_(static_cast<ReplayAlgorithm&>(*parts_.algorithm)),
      shared_(FetchDescriptors(MemorySocketIn(spec.folder), Deadline::After(kMeetingTime))),
      publication_(shared_.at(0).get()),
      memory_(MemoryIn(shared_)),
      replay_(ReplayIn(spec.folder)),
      table_(replay_.Find("replay")),
      trainer_(recipe_.experiment.replay, PipelineContext(recipe_.experiment), replay_, table_,
               algorithm_),
      meter_("learner") {
  ArchiveReader learned(learned_);
  LoadLearningParts(recipe_.experiment.algorithm, algorithm_, *parts_.update, learned);
  if (spec.incarnation > 0) {  // Others have seen versions that came after the checkpoint.
    Publication& own = algorithm_.publication();
    const std::shared_ptr<const ParameterBlob> latest = own.Latest();
    ParameterVersion version = latest->version();
    version.incarnation = static_cast<std::uint16_t>(spec.incarnation);
    own.Restore(version, latest->values());
  }
  PublishToAll();
  role_ = MakeLearnerRole(recipe_.experiment, algorithm_, *parts_.update, trainer_, replay_, table_,
                          RunOf(*memory_).counts, [this] { PublishToAll(); });
}

void LearnerActor::PublishToAll() { publication_.Publish(*algorithm_.publication().Latest()); }

RoleReport LearnerActor::Advance(std::chrono::nanoseconds slice, const BatchMoments& observed) {
  role_->AddMoments(observed);
  RoleReport report = AdvanceFor(slice, *role_, meter_);
  report.metrics = role_->TakeMetrics();
  report.lag = role_->TakeLag();
  if (report.done) Save({});
  return report;
}

RoleReport LearnerActor::Save(const BatchMoments& observed) {
  role_->AddMoments(observed);
  role_->Publish();
  ArchiveWriter archive(learned_);
  SaveLearningParts(algorithm_, *parts_.update, archive);
  archive.Commit();
  RoleReport report = ReportOf(*role_, meter_);
  report.saved = true;
  return report;
}

// ---- A collector

CollectorActor::CollectorActor(const RoleSpec& spec)
    : recipe_(spec),
      algorithm_(MakeAlgorithm(recipe_.experiment, recipe_.environment)),
      shared_(FetchDescriptors(MemorySocketIn(spec.folder), Deadline::After(kMeetingTime))),
      parameters_(shared_.at(0).get()),
      memory_(MemoryIn(shared_)),
      replay_(ReplayIn(spec.folder)),
      role_(MakeCollectorRole(
          recipe_.experiment, recipe_.environment, static_cast<ReplayAlgorithm&>(*algorithm_),
          {.parameters = parameters_,
           .replay = replay_,
           .table = replay_.Find("replay"),
           .memory = RunOf(*memory_),
           .show = ShowSlabs(spec)},
          SharesOf(recipe_.experiment).at(static_cast<std::size_t>(spec.collector)), spec.attempt)),
      meter_(role_->name()) {}

RemotePolicy::ShowSlab CollectorActor::ShowSlabs(const RoleSpec& spec) {
  if (!recipe_.experiment.topology.infers_apart()) return {};
  return
      [this, folder = spec.folder, collector = spec.collector](Slab& slab, std::uint32_t number) {
        slab_ = std::make_unique<DescriptorServer>(SlabSocketIn(folder, collector, number),
                                                   std::vector<int>{slab.descriptor()});
      };
}

RoleReport CollectorActor::Advance(std::chrono::nanoseconds slice) {
  RoleReport report = AdvanceFor(slice, *role_, meter_);
  report.episodes = role_->TakeEpisodes();
  report.moments = role_->TakeMoments();
  return report;
}

// ---- Inference

InferenceActor::InferenceActor(const RoleSpec& spec)
    : recipe_(spec),
      folder_(spec.folder),
      algorithm_(MakeAlgorithm(recipe_.experiment, recipe_.environment)),
      shares_(SharesOf(recipe_.experiment)),
      shared_(FetchDescriptors(MemorySocketIn(spec.folder), Deadline::After(kMeetingTime))),
      parameters_(shared_.at(0).get()),
      memory_(MemoryIn(shared_)),
      slabs_(shares_.size()),
      role_(MakeInferenceRole(
          recipe_.experiment, static_cast<ReplayAlgorithm&>(*algorithm_), parameters_,
          RunOf(*memory_).inference,
          [this](int collector, std::uint32_t number) { return Find(collector, number); })),
      meter_("inference") {}

Slab* InferenceActor::Find(int collector, std::uint32_t number) {
  const auto index = static_cast<std::size_t>(collector);
  Mapped& mapped = slabs_[index];
  if (mapped.number == number) return &*mapped.slab;
  try {
    const std::vector<FileDescriptor> found =
        FetchDescriptors(SlabSocketIn(folder_, collector, number), Deadline::After(kSlabTime));
    const CollectorPlan plan =
        PlanOf(recipe_.experiment, recipe_.environment, static_cast<ReplayAlgorithm&>(*algorithm_),
               shares_[index], /*attempt=*/0);
    const SlabSpec spec = SlabSpecOf(plan, recipe_.environment.spec, algorithm_->policies().spec());
    mapped.slab.emplace(spec, MapSharedMemory(found.at(0).get(), Slab::BytesNeeded(spec)));
    mapped.number = number;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    return nullptr;  // Its collector has died.
  }
  return &*mapped.slab;
}

RoleReport InferenceActor::Advance(std::chrono::nanoseconds slice) {
  return AdvanceFor(slice, *role_, meter_);
}

}  // namespace menger
