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
#include "menger/base/random.h"

namespace menger {

// Options of section [ppo]. Defaults are those of Huang et al. 2022 ("The 37 implementation
// details"), but without clipping of the value loss, which they found not to help.
struct PpoConfig {
  double discount = 0.99;
  double gae_lambda = 0.95;
  std::int64_t epochs = 4;
  std::int64_t minibatch_size = 256;
  double learning_rate = 2.5e-4;
  std::string learning_rate_schedule = "linear";
  double clip = 0.2;
  std::string clip_schedule = "constant";
  double value_clip = 0;
  double value_coefficient = 0.5;
  double entropy_coefficient = 0.01;
  bool normalise_advantage = true;
  double target_kl = 0;
  double initial_log_std = 0;

  void Declare(Options& options);
};

// Proximal Policy Optimisation with the clipped objective (Schulman et al. 2017). With a recurrent
// network minibatches are whole columns of the slab instead of rows.
class Ppo final : public SlabAlgorithm {
 public:
  Ppo(const PpoConfig& config, const AlgorithmContext& context);

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

  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  void LoadParameters(ArchiveReader& archive) override {
    model_.LoadParameters(archive.Scope("model"));
  }

 private:
  struct Totals;  // Sums over minibatches of what Learn reports.

  // One pass over the batch in a fresh random order; false when the KL target ends the update.
  bool Epoch(UpdateRule& update, double progress, Totals& totals);
  // The minibatch of `count` entries of order_ from `begin` on, as far as there are any.
  Minibatch Gather(std::size_t begin, std::size_t count);

  const PpoConfig config_;
  mutable ActorCritic model_;
  SlabBatch batch_;
  PolicyGradient gradient_;
  Random shuffle_;
  std::vector<std::int32_t> order_;
};

}  // namespace menger
