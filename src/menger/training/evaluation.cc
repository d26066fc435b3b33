#include "menger/training/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "menger/base/error.h"
#include "menger/base/worker_pool.h"
#include "menger/tensor/slab.h"
#include "menger/training/progress.h"

namespace menger {
namespace {

constexpr int kRows = 32;     // Of the slab that is filled again and again.
constexpr int kPadding = 16;  // Keeps workers out of each other's cache lines.

// One worker a policy, where the result does not depend on who plays what.
int WorkersOf(std::span<const std::unique_ptr<Policy>> policies, int episodes, bool watched) {
  if (watched || !policies[0]->spec().batch_invariant) return 1;
  return std::min(static_cast<int>(policies.size()), episodes);
}

// One pass: `count` episodes, the first of them number `first` of the evaluation. Each worker has a
// block of the environments; they meet once a slab.
class EpisodeBatch {
 public:
  EpisodeBatch(const EvaluationPlan& plan, const EnvironmentEntry& environment,
               std::span<const std::unique_ptr<Policy>> policies, int first, int count,
               const EpisodeWatcher& watch)
      : plan_(plan),
        policies_(policies),
        watch_(watch),
        steps_max_(environment.spec.max_episode_steps > 0 ? std::numeric_limits<std::int64_t>::max()
                                                          : plan.steps_max),
        workers_(WorkersOf(policies, count, watch != nullptr)),
        slab_(MakeSlab(
            {.observation = environment.spec.observation,
             .state = policies[0]->spec().state,
             .action = environment.spec.action,
             .policy = policies[0]->spec().columns,
             .horizon = kRows,
             .history = plan.history,
             .columns = ColumnLayout(count, /*groups=*/1, workers_, workers_ > 1 ? kPadding : 1)},
            environment)),
        ended_(count, 0),
        returns_(count, 0.0),
        lengths_(count, 0) {
    for (const ColumnBlock& block : slab_.columns().blocks()) {
      running_.push_back(block.count);
      groups_.push_back(
          environment.make_group({.columns = block,
                                  .seed = plan.seed + static_cast<std::uint64_t>(first),
                                  // An environment that has played its episode stands still.
                                  .reset_mode = ResetMode::kBetweenSlabs,
                                  .clip_actions = plan.clip_actions}));
    }
  }

  void Play(WorkerPool& pool, EvaluationResult& result) {
    pool.Run(workers_, [this](int worker) {
      groups_[worker]->Reset(slab_, /*row=*/0);
      if (watch_) watch_(*groups_[worker]);
    });
    while (true) {
      pool.Run(workers_, [this](int worker) { PlayRows(worker); });
      if (std::count(running_.begin(), running_.end(), 0) == workers_) break;
      if (plan_.stop_requested()) break;
      slab_.Carry(slab_);
    }
    for (std::size_t episode = 0; episode < ended_.size(); ++episode) {
      if (ended_[episode] == 0) continue;  // Stopped.
      result.returns.push_back(returns_[episode]);
      result.lengths.push_back(lengths_[episode]);
      result.cut += ended_[episode] == kCut ? 1 : 0;
    }
  }

 private:
  void PlayRows(int worker) {
    const ColumnBlock& block = slab_.columns().block(/*group=*/0, worker);
    for (int row = 0; row < kRows && running_[worker] > 0; ++row) {
      policies_[worker]->Act(slab_, row, {.first = block.first_position, .count = block.count});
      groups_[worker]->Step(slab_, row);
      if (watch_) watch_(*groups_[worker]);
      Account(block, row);
      if (plan_.steps != nullptr) plan_.steps->fetch_add(block.count, std::memory_order_relaxed);
    }
  }

  void Account(const ColumnBlock& block, int row) {
    for (int i = 0; i < block.count; ++i) {
      const int position = block.first_position + i;
      const int episode = block.first_environment + i;
      if (ended_[episode] != 0) continue;
      returns_[episode] += slab_.reward(row)[position];
      ++lengths_[episode];
      if (slab_.episode_end(row)[position] != 0) {
        ended_[episode] = kEnded;
      } else if (lengths_[episode] >= steps_max_) {
        ended_[episode] = kCut;
      } else {
        continue;
      }
      --running_[block.worker];
    }
  }

  static constexpr char kEnded = 1;
  static constexpr char kCut = 2;

  const EvaluationPlan& plan_;
  const std::span<const std::unique_ptr<Policy>> policies_;  // One a worker, at least.
  const EpisodeWatcher& watch_;
  const std::int64_t steps_max_;
  const int workers_;
  Slab slab_;
  std::vector<std::unique_ptr<EnvironmentGroup>> groups_;  // One a worker.
  std::vector<int> running_;                               // Episodes, by worker.
  std::vector<char> ended_;                                // By episode, as all below.
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

std::string CutText(const EvaluationResult& result, const std::string& environment,
                    std::int64_t steps_max) {
  if (result.cut == 0) return "";
  return fmt::format(
      "{} of {} episodes had not ended after {} steps and were cut there, because {} has no time "
      "limit (evaluation.steps_max)",
      result.cut, result.episodes(), steps_max, environment);
}

std::string ToString(const EvaluationResult& result) {
  const double scale = std::max(std::abs(result.minimum()), std::abs(result.maximum()));
  return fmt::format("mean {}, standard deviation {}, minimum {}, maximum {} over {} episode{}",
                     NumberText(result.mean(), scale),
                     NumberText(result.standard_deviation(), scale),
                     NumberText(result.minimum(), scale), NumberText(result.maximum(), scale),
                     result.episodes(), result.episodes() == 1 ? "" : "s");
}

EvaluationResult Evaluate(const EvaluationPlan& plan, const EnvironmentEntry& environment,
                          std::span<const std::unique_ptr<Policy>> policies,
                          const EpisodeWatcher& watch) {
  if (plan.episodes < 1) {
    throw InvalidArgument("an evaluation of {} episodes means nothing; it takes at least 1",
                          plan.episodes);
  }
  if (policies.empty()) throw InvalidArgument("an evaluation needs at least one policy");
  for (const auto& policy : policies) policy->Refresh();
  WorkerPool pool(WorkersOf(policies, plan.episodes, watch != nullptr), "evaluation");
  EvaluationResult result;
  const int together = watch ? 1 : kEvaluationEnvironmentsMax;
  for (int first = 0; first < plan.episodes; first += together) {
    const int count = std::min(together, plan.episodes - first);
    EpisodeBatch(plan, environment, policies, first, count, watch).Play(pool, result);
    if (plan.stop_requested()) break;
  }
  return result;
}

}  // namespace menger
