#include "menger/training/roles/learner_role.h"

#include <utility>

namespace menger {

LearnerRole::LearnerRole(ReplayAlgorithm& algorithm, UpdateRule& update, ReplayTrainer& trainer,
                         std::function<Pace(std::int64_t updates)> pace, std::int64_t publish_every,
                         std::int64_t steps, std::function<void()> published)
    : algorithm_(algorithm),
      update_(update),
      trainer_(trainer),
      pace_(std::move(pace)),
      publish_every_(publish_every),
      published_at_(steps),
      published_(std::move(published)) {}

Advanced LearnerRole::Advance(const Deadline& deadline) {
  const Pace pace = pace_(updates_);
  if (pace.updates_due == 0) {
    trainer_.Release();
    PublishIfDue(pace);
    return pace.over ? Advanced::Done() : Advanced::WaitingFor("steps to be collected");
  }
  if (!trainer_.Draw(Deadline::After({}))) {
    PublishIfDue(pace);
    trainer_.Draw(deadline);
    return Advanced::WaitingFor("items in replay");
  }
  algorithm_.SetProgress(pace.progress);
  const Metrics metrics = trainer_.Learn(pace.updates_due > 1, update_, pace.progress);
  {
    const std::lock_guard lock(mutex_);
    metrics_.Add(metrics);
    lag_.Add(trainer_.lag());
  }
  ++updates_;  // There is something to report of it.
  if (pace.updates_due == Pace::kAsReplayAllows) PublishIfDue(pace);
  return Advanced::Worked();
}

void LearnerRole::PublishIfDue(const Pace& pace) {
  if (pace.steps - published_at_ < publish_every_) return;
  algorithm_.SetProgress(pace.progress);
  Publish();
  published_at_ = pace.steps;
}

void LearnerRole::AddMoments(const BatchMoments& moments) {
  const std::lock_guard lock(mutex_);
  moments_.Add(moments);
}

void LearnerRole::Publish() {
  BatchMoments moments;
  {
    const std::lock_guard lock(mutex_);
    moments = std::exchange(moments_, {});
  }
  if (moments.count > 0) algorithm_.ObserveMoments(moments);
  algorithm_.Publish();
  published_();
}

Metrics LearnerRole::TakeMetrics() {
  const std::lock_guard lock(mutex_);
  return metrics_.TakeIfAny();
}

VersionLag LearnerRole::TakeLag() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lag_, {});
}

}  // namespace menger
