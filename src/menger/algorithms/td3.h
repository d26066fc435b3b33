#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/pathwise_actor_critic.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/algorithms/target_network.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [td3]. Defaults are those of Fujimoto et al. 2018; standard deviations in
// halves of the way from an action's lower to its upper bound.
struct Td3Config {
  double discount = 0.99;
  std::int64_t n_step = 1;
  double learning_rate = 1e-3;  // Of actor and critics.
  std::string learning_rate_schedule = "constant";
  double target_rate = 0.005;
  std::int64_t critics = 2;
  std::int64_t policy_delay = 2;
  double exploration_noise = 0.1;
  double target_noise = 0.2;
  double target_noise_clip = 0.5;
  double importance_exponent = 0.4;

  void Declare(Options& options);
};

// Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, algorithm 1): the smallest
// of the critics of a smoothed next action gives the target; actor and targets move every
// `policy_delay` updates. With critics = 1, policy_delay = 1 and target_noise = 0 it is DDPG
// (Lillicrap et al. 2016) with white noise.
class Td3 final : public ReplayAlgorithm {
 public:
  // Throws InvalidArgument for actions without bounds, and what else does not fit.
  Td3(const Td3Config& config, const AlgorithmContext& context);

  int history() const override { return model_.encoder().history(); }
  const PolicySpec& policy_spec() const override { return model_.policy_spec(); }
  std::unique_ptr<Policy> MakePolicy(PolicyMode mode, std::uint64_t seed) override {
    return model_.MakePolicy(mode, seed);
  }
  PolicyDescription DescribePolicy() const override { return model_.DescribePolicy(); }
  Publication& publication() override { return model_.publication(); }
  void Publish() override { model_.Publish(); }
  std::int64_t parameter_count() const override;
  std::vector<ParameterGroup> parameter_groups() const override {
    return model_.parameter_groups();
  }

  const ItemSpec& items() const override { return model_.format().items(); }
  std::unique_ptr<SlabWriter> MakeWriter(const SlabWriterContext& context) const override {
    return std::make_unique<TransitionWriter>(model_.format(), context);
  }
  void SetProgress(double /*progress*/) override {}
  Metrics Learn(const ReplayBatch& batch, UpdateRule& update, double progress) override;
  std::vector<std::string> metric_names() const override;
  std::span<const float> priorities() const override { return model_.priorities(); }

  // For tests and for looking into a run.
  PathwiseActorCritic& model() { return model_; }
  TargetNetwork& target_actor() { return target_actor_; }

  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  void LoadParameters(ArchiveReader& archive) override;

 private:
  void MakeTargets();
  void StepActor(double learning_rate, UpdateRule& update);

  const Td3Config config_;
  mutable PathwiseActorCritic model_;
  TargetNetwork target_actor_;
  double actor_value_ = 0;  // Of the last step of the actor: its mean value,
  double actor_norm_ = 0;   // and the norm of its gradient.

  // Of the batch in hand; reused.
  std::vector<float> noise_, actions_, action_gradient_;  // [rows, elements]
  std::vector<float> targets_;                            // [rows]
  std::vector<float> output_gradient_;                    // [rows, elements]
};

}  // namespace menger
