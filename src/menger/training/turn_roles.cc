#include "menger/training/turn_roles.h"

#include <algorithm>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kTurns = 100;  // Of a look.

}  // namespace

TurnRoles::TurnRoles(const Experiment& experiment, const EnvironmentEntry& environment,
                     ReplayAlgorithm& algorithm, UpdateRule& update)
    : LocalRoles(experiment, environment, algorithm, update),
      random_(Random::FromSeed(static_cast<std::uint64_t>(experiment.seed))) {}

void TurnRoles::Begin(const PipelineStart& start) {
  LocalRoles::Begin(start);
  random_ = Random::FromSeed(CollectorSeed(experiment().seed, start.attempt));
  turns_.push_back({.role = &learner(), .meter = RoleMeter(learner().name())});
  for (const auto& role : collectors()) {
    turns_.push_back({.role = role.get(), .meter = RoleMeter(role->name())});
  }
}

std::function<void()> TurnRoles::WhileAsking() {
  return [this] { inference()->Advance(Deadline::After({})); };
}

PipelineNews TurnRoles::Look(std::chrono::nanoseconds /*time*/) {
  for (int i = 0; i < kTurns && !failed_; ++i) {
    Turn& turn = turns_[static_cast<std::size_t>(random_.Integers(0, std::ssize(turns_)))];
    if (!turn.ended) Take(turn);
  }
  PipelineNews news = News();
  news.learner = StatusOf(turns_.front());
  for (std::size_t i = 1; i < turns_.size(); ++i) news.collectors.push_back(StatusOf(turns_[i]));
  news.failed = failed_.has_value();
  return news;
}

void TurnRoles::Take(Turn& turn) {
  const Stopwatch watch;
  try {
    const Advanced advanced = turn.role->Advance(Deadline::After({}));
    turn.meter.Count(advanced, watch.seconds());
    turn.ended = advanced.state == Advanced::State::kDone;
  } catch (const Error& error) {
    turn.ended = true;
    failed_.emplace(WithContext(error, turn.role->name()), turn.role == &learner());
  }
}

RoleStatus TurnRoles::StatusOf(const Turn& turn) const {
  RoleStatus status = turn.meter.StatusOf(*turn.role);
  status.ended = turn.ended;
  return status;
}

std::shared_ptr<const ParameterBlob> TurnRoles::Save(ArchiveWriter& archive, bool with_replay) {
  if (failed_ && failed_->learner()) return nullptr;
  if (!with_replay) learner().Publish();  // For an evaluation, which steps decide.
  return SaveNow(archive, with_replay);
}

void TurnRoles::Stop() {
  if (failed_) throw RoleFailed(*failed_);
}

}  // namespace menger
