#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/actor_critic.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/policy_gradient.h"
#include "menger/algorithms/slab_batch.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [a2c]. Defaults are those of Stable-Baselines3's A2C: OpenAI Baselines' for
// Mnih et al. 2016, but without their entropy bonus (0.01) and with a constant learning rate. Use
// [optimiser] kind = "rmsprop" with them, or "torch_rmsprop" as Stable-Baselines3 does.
struct A2cConfig {
  double discount = 0.99;
  double gae_lambda = 1.0;
  double learning_rate = 7e-4;
  std::string learning_rate_schedule = "constant";
  std::int64_t reference_batch = 0;
  double value_coefficient = 1.0;  // Their 0.5: our value loss is half the squared error.
  double entropy_coefficient = 0.0;
  bool normalise_advantage = false;
  double initial_log_std = 0;

  void Declare(Options& options);
};

// Advantage Actor-Critic: one gradient step from each slab (the synchronous form of Mnih et al.
// 2016). The learning rate may grow with the square root of the batch (Stooke & Abbeel 2018,
// section 4.1).
class A2c final : public SlabAlgorithm {
 public:
  A2c(const A2cConfig& config, const AlgorithmContext& context);

  int history() const override { return model_.encoder().history(); }
  const PolicySpec& policy_spec() const override { return model_.policy_spec(); }
  std::unique_ptr<Policy> MakePolicy(PolicyMode mode, std::uint64_t seed) override {
    return model_.MakePolicy(mode, seed);
  }
  PolicyDescription DescribePolicy() const override { return model_.DescribePolicy(); }
  Publication& publication() override { return model_.publication(); }
  void Publish() override { model_.Publish(); }
  std::int64_t parameter_count() const override;

  Metrics Learn(std::span<Slab* const> slabs, UpdateRule& update, double progress) override;

  void Save(ArchiveWriter& archive) const override { model_.Save(archive.Scope("model")); }
  void Load(ArchiveReader& archive) override { model_.Load(archive.Scope("model")); }
  void LoadParameters(ArchiveReader& archive) override {
    model_.LoadParameters(archive.Scope("model"));
  }

 private:
  struct Losses;  // What one gradient step reports.

  double LearningRate(double progress, double rows) const;
  Losses TakeStep(UpdateRule& update, double learning_rate);

  const A2cConfig config_;
  mutable ActorCritic model_;
  SlabBatch batch_;
  PolicyGradient gradient_;
  std::vector<std::int32_t> columns_;
};

}  // namespace menger
