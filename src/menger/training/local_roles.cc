#include "menger/training/local_roles.h"

namespace menger {

LocalRoles::LocalRoles(const Experiment& experiment, const EnvironmentEntry& environment,
                       ReplayAlgorithm& algorithm, UpdateRule& update)
    : experiment_(experiment),
      environment_(environment),
      algorithm_(algorithm),
      update_(update),
      replay_(PipelineStore(experiment, algorithm)),
      trainer_(experiment.replay, PipelineContext(experiment), replay_.client(), replay_.table(),
               algorithm),
      memory_(std::make_unique<RunMemory>()),
      slabs_(static_cast<std::size_t>(experiment.topology.collectors.value)) {}

void LocalRoles::Begin(const PipelineStart& start) {
  if (start.checkpoint != nullptr) {
    ArchiveReader consumer = start.checkpoint->Scope("consumer");
    replay_.LoadContent(consumer);
  }
  memory_->counts.steps = start.steps;
  attempt_ = start.attempt;
  for (const CollectorShare& share : SharesOf(experiment_)) {
    std::atomic<Slab*>& shown = slabs_[collectors_.size()];
    CollectorContext context{.parameters = algorithm_.publication(),
                             .replay = replay_.client(),
                             .table = replay_.table(),
                             .memory = *memory_};
    if (experiment_.topology.infers_apart()) {
      context.show = [&shown](Slab& slab, std::uint32_t /*number*/) { shown = &slab; };
      context.while_asking = WhileAsking();
    }
    collectors_.push_back(
        MakeCollectorRole(experiment_, environment_, algorithm_, context, share, start.attempt));
  }
  if (experiment_.topology.infers_apart()) {
    inference_ =
        MakeInferenceRole(experiment_, algorithm_, algorithm_.publication(), memory_->inference,
                          [this](int collector, std::uint32_t /*number*/) {
                            return slabs_[static_cast<std::size_t>(collector)].load();
                          });
  }
  learner_ = MakeLearnerRole(experiment_, algorithm_, update_, trainer_, replay_.client(),
                             replay_.table(), memory_->counts, [] {});
}

PipelineNews LocalRoles::News() {
  PipelineNews news{.steps = memory_->counts.steps,
                    .updates = learner_->done(),
                    .attempt = attempt_,
                    .metrics = learner_->TakeMetrics(),
                    .lag = learner_->TakeLag(),
                    .table = replay_.client().info(replay_.table())};
  for (const auto& collector : collectors_) {
    news.episodes.Add(collector->TakeEpisodes());
    learner_->AddMoments(collector->TakeMoments());
  }
  return news;
}

std::shared_ptr<const ParameterBlob> LocalRoles::SaveNow(ArchiveWriter& archive, bool with_replay) {
  SaveLearningParts(algorithm_, update_, archive);
  ArchiveWriter consumer = archive.Scope("consumer");
  if (with_replay) replay_.SaveContent(consumer);
  return algorithm_.publication().Latest();
}

}  // namespace menger
