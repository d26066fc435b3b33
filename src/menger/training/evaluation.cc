#include "menger/training/evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "menger/base/error.h"
#include "menger/tensor/slab.h"

namespace menger {
namespace {

constexpr int kRows = 32;  // Of the slab that is filled again and again.

// One pass: `count` episodes, the first of them number `first` of the evaluation.
class EpisodeBatch {
 public:
  EpisodeBatch(const EvaluationPlan& plan, const EnvironmentEntry& environment, Policy& policy,
               int first, int count, const EpisodeWatcher& watch)
      : plan_(plan),
        policy_(policy),
        watch_(watch),
        slab_(MakeSlab({.observation = environment.spec.observation,
                        .state = policy.spec().state,
                        .action = environment.spec.action,
                        .policy = policy.spec().columns,
                        .horizon = kRows,
                        .history = plan.history,
                        .columns = ColumnLayout::Single(count)},
                       environment)),
        group_(environment.make_group({.columns = slab_.columns().block(/*group=*/0, /*worker=*/0),
                                       .seed = plan.seed + static_cast<std::uint64_t>(first),
                                       // An environment that has played its episode stands still.
                                       .reset_mode = ResetMode::kBetweenSlabs,
                                       .clip_actions = plan.clip_actions})),
        running_(count),
        ended_(count, 0),
        returns_(count, 0.0),
        lengths_(count, 0) {}

  void Play(EvaluationResult& result) {
    group_->Reset(slab_, /*row=*/0);
    if (watch_) watch_(*group_);
    while (true) {
      for (int row = 0; row < kRows && running_ > 0; ++row) {
        policy_.Act(slab_, row, {.first = 0, .count = slab_.positions()});
        group_->Step(slab_, row);
        if (watch_) watch_(*group_);
        Account(row);
      }
      if (running_ == 0) break;
      if (slab_.first_step() > plan_.steps_max) {
        throw DeadlineExceeded(
            "an evaluation episode has not ended after {} steps: give the "
            "environment a time limit",
            plan_.steps_max);
      }
      slab_.Carry(slab_);
    }
    result.returns.insert(result.returns.end(), returns_.begin(), returns_.end());
    result.lengths.insert(result.lengths.end(), lengths_.begin(), lengths_.end());
  }

 private:
  void Account(int row) {
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      if (ended_[i] != 0) continue;
      const int position = slab_.columns().PositionOf(static_cast<int>(i));
      returns_[i] += slab_.reward(row)[position];
      ++lengths_[i];
      if (slab_.episode_end(row)[position] == 0) continue;
      ended_[i] = 1;
      --running_;
    }
  }

  const EvaluationPlan& plan_;
  Policy& policy_;
  const EpisodeWatcher& watch_;
  Slab slab_;
  std::unique_ptr<EnvironmentGroup> group_;
  int running_;
  std::vector<char> ended_;
  std::vector<double> returns_;
  std::vector<std::int64_t> lengths_;
};

}  // namespace

double EvaluationResult::mean() const {
  return std::accumulate(returns.begin(), returns.end(), 0.0) / static_cast<double>(episodes());
}

double EvaluationResult::standard_deviation() const {
  double squares = 0;
  for (const double value : returns) squares += (value - mean()) * (value - mean());
  return std::sqrt(squares / static_cast<double>(episodes()));
}

double EvaluationResult::minimum() const {
  return *std::min_element(returns.begin(), returns.end());
}

double EvaluationResult::maximum() const {
  return *std::max_element(returns.begin(), returns.end());
}

double EvaluationResult::mean_length() const {
  return static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})) /
         static_cast<double>(episodes());
}

std::string ToString(const EvaluationResult& result) {
  return fmt::format(
      "mean {:.1f}, standard deviation {:.1f}, minimum {:.1f}, maximum {:.1f} over {} "
      "episode{}",
      result.mean(), result.standard_deviation(), result.minimum(), result.maximum(),
      result.episodes(), result.episodes() == 1 ? "" : "s");
}

EvaluationResult Evaluate(const EvaluationPlan& plan, const EnvironmentEntry& environment,
                          Policy& policy, const EpisodeWatcher& watch) {
  if (plan.episodes < 1) {
    throw InvalidArgument("an evaluation of {} episodes means nothing; it takes at least 1",
                          plan.episodes);
  }
  policy.Refresh();
  EvaluationResult result;
  const int together = watch ? 1 : kEvaluationEnvironmentsMax;
  for (int first = 0; first < plan.episodes; first += together) {
    const int count = std::min(together, plan.episodes - first);
    EpisodeBatch(plan, environment, policy, first, count, watch).Play(result);
  }
  return result;
}

}  // namespace menger
