#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/pathwise_algorithm.h"
#include "menger/algorithms/target_network.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [td3]. Defaults are those of Fujimoto et al. 2018; standard deviations in
// halves of the way from an action's lower to its upper bound.
struct Td3Config {
  PathwiseOptions common{.learning_rate = 1e-3};
  std::int64_t policy_delay = 2;
  double exploration_noise = 0.1;
  double target_noise = 0.2;
  double target_noise_clip = 0.5;

  void Declare(Options& options);
};

// Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, algorithm 1): the smallest
// of the critics of a smoothed next action gives the target; actor and targets move every
// `policy_delay` updates. With critics = 1, policy_delay = 1 and target_noise = 0 it is DDPG
// (Lillicrap et al. 2016) with white noise.
class Td3 final : public PathwiseAlgorithm {
 public:
  // Throws InvalidArgument for actions without bounds, and what else does not fit.
  Td3(const Td3Config& config, const AlgorithmContext& context);

  static std::unique_ptr<PolicyMaker> MakePolicies(const Td3Config& config,
                                                   const AlgorithmContext& context);

  TargetNetwork& target_actor() { return target_actor_; }  // For tests.

 private:
  void MakeTargets(std::span<float> targets) override;
  std::vector<double> StepOthers(double learning_rate, UpdateRule& update) override;
  std::vector<std::string> own_metric_names() const override {
    return {"actor_gradient_norm", "actor_value"};
  }
  void SaveOwn(ArchiveWriter& archive) const override;
  void LoadOwn(ArchiveReader& archive) override;
  void LoadOwnParameters(ArchiveReader& /*archive*/) override { target_actor_.Copy(actor()); }

  const Td3Config config_;
  TargetNetwork target_actor_;
  double actor_value_ = 0;                   // Of the last step of the actor: its mean value,
  double actor_norm_ = 0;                    // and the norm of its gradient.
  std::vector<float> noise_, next_actions_;  // [rows, elements]; reused.
};

}  // namespace menger
