#include "menger/training/thread_roles.h"

#include <algorithm>
#include <thread>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::chrono::minutes kBetween{10};  // For an update that is under way to end.

}  // namespace

ThreadRoles::ThreadRoles(const Experiment& experiment, const EnvironmentEntry& environment,
                         ReplayAlgorithm& algorithm, UpdateRule& update)
    : experiment_(experiment),
      environment_(environment),
      algorithm_(algorithm),
      update_(update),
      replay_(PipelineStore(experiment, algorithm)),
      trainer_(experiment.replay, PipelineContext(experiment), replay_.client(), replay_.table(),
               algorithm),
      slabs_(static_cast<std::size_t>(experiment.topology.collectors.value)) {}

void ThreadRoles::Begin(const PipelineStart& start) {
  if (start.checkpoint != nullptr) {
    ArchiveReader consumer = start.checkpoint->Scope("consumer");
    replay_.LoadContent(consumer);
  }
  counts_.steps = start.steps;
  attempt_ = start.attempt;
  for (const CollectorShare& share : SharesOf(experiment_)) {
    std::atomic<Slab*>& shown = slabs_[collectors_.size()];
    collectors_.push_back(MakeCollectorRole(
        experiment_, environment_, algorithm_,
        {.parameters = algorithm_.publication(),
         .replay = replay_.client(),
         .table = replay_.table(),
         .memory = *memory_,
         .show = [&shown](Slab& slab, std::uint32_t /*number*/) { shown = &slab; }},
        share, start.attempt));
  }
  if (experiment_.topology.infers_apart()) {
    inference_ =
        MakeInferenceRole(experiment_, algorithm_, algorithm_.publication(), memory_->inference,
                          [this](int collector, std::uint32_t /*number*/) {
                            return slabs_[static_cast<std::size_t>(collector)].load();
                          });
  }
  learner_ = MakeLearnerRole(experiment_, algorithm_, update_, trainer_, replay_.client(),
                             replay_.table(), counts_, [] {});
}

PipelineNews ThreadRoles::Look(std::chrono::nanoseconds time) {
  if (!threads_) threads_.emplace(*learner_, collectors_, inference_.get());
  std::this_thread::sleep_for(time);
  PipelineNews news{.steps = counts_.steps,
                    .updates = learner_->done(),
                    .lag = learner_->TakeLag(),
                    .table = replay_.client().info(replay_.table()),
                    .learner = threads_->learner.status()};
  for (std::size_t i = 0; i < collectors_.size(); ++i) {
    news.episodes.Add(collectors_[i]->TakeEpisodes());
    news.collectors.push_back(threads_->collectors[i]->status());
  }
  // Those of one more may be among them, never fewer.
  if (news.updates > updates_seen_) news.metrics = learner_->TakeMetrics();
  updates_seen_ = news.updates;
  news.attempt = attempt_;
  if (threads_->inference) news.others.push_back(threads_->inference->status());
  // A learner that ended has failed, too, where it was not done; Stop tells.
  const auto ended = [](const RoleStatus& role) { return role.ended; };
  news.failed = std::ranges::any_of(news.others, ended) ||
                (news.steps < experiment_.steps && std::ranges::any_of(news.collectors, ended));
  return news;
}

std::shared_ptr<const ParameterBlob> ThreadRoles::Save(ArchiveWriter& archive, bool with_replay) {
  std::shared_ptr<const ParameterBlob> saved;
  const auto save = [&] {
    learner_->Publish();
    SaveLearningParts(algorithm_, update_, archive);
    ArchiveWriter consumer = archive.Scope("consumer");
    if (with_replay) replay_.SaveContent(consumer);
    saved = algorithm_.publication().Latest();
  };
  if (threads_) {
    threads_->learner.Between(save, Deadline::After(kBetween));
  } else {
    save();
  }
  return saved;
}

void ThreadRoles::Stop() {
  if (!threads_ || std::exchange(stopped_, true)) return;
  threads_->learner.Stop();
  for (const auto& collector : threads_->collectors) collector->Stop();
  try {
    threads_->learner.Join();
  } catch (const Error& error) {
    throw RoleFailed(error, /*learner=*/true);
  }
  std::optional<RoleFailed> failed = JoinCollectors();
  if (threads_->inference) {
    threads_->inference->Stop();
    try {
      threads_->inference->Join();
    } catch (const Error& error) {  // Which is why those who ask it have failed, too.
      failed.emplace(error, /*learner=*/false);
    }
  }
  if (failed) throw RoleFailed(*failed);
}

std::optional<RoleFailed> ThreadRoles::JoinCollectors() {
  std::optional<RoleFailed> failed;
  for (std::size_t i = 0; i < collectors_.size(); ++i) {
    try {
      threads_->collectors[i]->Join();
    } catch (const Error& error) {
      // A worker that hangs cannot be joined: until the process ends nobody destroys it.
      if (error.code() == ErrorCode::kDeadlineExceeded) (void)collectors_[i].release();
      if (!failed) failed.emplace(error, /*learner=*/false);
    }
  }
  return failed;
}

}  // namespace menger
