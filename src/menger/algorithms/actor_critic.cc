#include "menger/algorithms/actor_critic.h"

#include <algorithm>

namespace menger {

ActorCritic::ActorCritic(const AlgorithmContext& context, double discount, double initial_log_std)
    : transforms_(context.transforms),
      policies_(context, initial_log_std),
      published_(policies_.model(), context.threads) {
  if (transforms_.Has("normalise_reward")) rewards_.emplace(context.environments, discount);
}

float ActorCritic::TransformReward(double reward) const {
  for (const std::string& transform : transforms_.apply) {
    const double clip = transforms_.reward_clip;
    if (transform == "normalise_reward") {
      reward = std::clamp(reward * rewards_->scale(), -clip, clip);
    } else if (transform == "clip_reward") {
      reward = std::clamp(reward, -clip, clip);
    }
  }
  return static_cast<float>(reward);
}

void ActorCritic::UpdateRewardStatistics(std::span<Slab* const> slabs, UpdateRule& update) {
  if (rewards_) rewards_->Update(slabs, update);
}

void ActorCritic::Save(ArchiveWriter archive) const {
  published_.Save(archive);
  if (rewards_) rewards_->Save(archive.Scope("reward_statistics"));
}

void ActorCritic::Load(ArchiveReader archive) {
  published_.Load(archive);
  if (rewards_) rewards_->Load(archive.Scope("reward_statistics"));
}

void ActorCritic::LoadParameters(ArchiveReader archive) {
  published_.LoadParameters(archive);
  if (rewards_ && archive.Contains("reward_statistics/moments/count")) {
    rewards_->LoadScale(archive.Scope("reward_statistics"));
  }
  published_.Publish();
}

}  // namespace menger
