#include "menger/training/recording.h"

#include "menger/base/error.h"
#include "menger/tensor/slab.h"

namespace menger {
namespace {

constexpr int kRows = 32;  // Of the slab that is filled again and again.

class Recorder {
 public:
  Recorder(const EvaluationPlan& plan, const EnvironmentEntry& environment, Policy& policy,
           VideoFile& video, std::uint64_t seed)
      : plan_(plan),
        policy_(policy),
        video_(video),
        slab_(MakeSlab({.observation = environment.spec.observation,
                        .state = policy.spec().state,
                        .action = environment.spec.action,
                        .policy = policy.spec().columns,
                        .horizon = kRows,
                        .history = plan.history,
                        .columns = ColumnLayout::Single(1)},
                       environment)),
        group_(environment.make_group({.columns = slab_.columns().block(/*group=*/0, /*worker=*/0),
                                       .seed = seed,
                                       .reset_mode = ResetMode::kBetweenSlabs,
                                       .clip_actions = plan.clip_actions})) {}

  void Play(EvaluationResult& result) {
    group_->Reset(slab_, /*row=*/0);
    video_.Add(group_->Render(/*index=*/0));
    double episode_return = 0;
    for (std::int64_t step = 0; step < plan_.steps_max; ++step) {
      const int row = static_cast<int>(step % kRows);
      if (step > 0 && row == 0) slab_.Carry(slab_);
      policy_.Act(slab_, row, {.first = 0, .count = slab_.positions()});
      group_->Step(slab_, row);
      video_.Add(group_->Render(/*index=*/0));
      episode_return += slab_.reward(row)[0];
      if (slab_.episode_end(row)[0] == 0) continue;
      result.returns.push_back(episode_return);
      result.lengths.push_back(step + 1);
      return;
    }
    throw DeadlineExceeded("an episode has not ended after {} steps: give the environment a limit",
                           plan_.steps_max);
  }

 private:
  const EvaluationPlan& plan_;
  Policy& policy_;
  VideoFile& video_;
  Slab slab_;
  std::unique_ptr<EnvironmentGroup> group_;
};

}  // namespace

EvaluationResult Record(const EvaluationPlan& plan, const EnvironmentEntry& environment,
                        Policy& policy, VideoFile& video) {
  policy.Refresh();
  EvaluationResult result;
  for (int episode = 0; episode < plan.episodes; ++episode) {
    Recorder(plan, environment, policy, video, plan.seed + static_cast<std::uint64_t>(episode))
        .Play(result);
  }
  return result;
}

}  // namespace menger
