#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/pathwise_actor_critic.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [sac]. Defaults are those of Haarnoja et al. 2018b ("Soft Actor-Critic
// Algorithms and Applications"), which learn their temperature.
struct SacConfig {
  double discount = 0.99;
  std::int64_t n_step = 1;
  double learning_rate = 3e-4;  // Of actor, critics and temperature.
  std::string learning_rate_schedule = "constant";
  double target_rate = 0.005;
  std::int64_t critics = 2;
  bool learn_temperature = true;
  double temperature = 1;      // At the start, or for good.
  double target_entropy = -1;  // Nats for each element of an action.
  double importance_exponent = 0.4;

  void Declare(Options& options);
};

// Soft actor-critic (Haarnoja et al. 2018): maximises return and entropy. Critics learn the soft
// value of the actor's next action, the smallest of them (eq. 5 and 6 of the second paper), the
// actor goes up their gradient (eq. 9), the temperature keeps the entropy at its target (eq. 18).
class Sac final : public ReplayAlgorithm {
 public:
  // Throws InvalidArgument for actions without bounds, and what else does not fit.
  Sac(const SacConfig& config, const AlgorithmContext& context);

  int history() const override { return model_.encoder().history(); }
  const PolicySpec& policy_spec() const override { return model_.policy_spec(); }
  std::unique_ptr<Policy> MakePolicy(PolicyMode mode, std::uint64_t seed) override {
    return model_.MakePolicy(mode, seed);
  }
  PolicyDescription DescribePolicy() const override { return model_.DescribePolicy(); }
  Publication& publication() override { return model_.publication(); }
  void Publish() override { model_.Publish(); }
  std::int64_t parameter_count() const override;
  std::vector<ParameterGroup> parameter_groups() const override;

  const ItemSpec& items() const override { return model_.format().items(); }
  std::unique_ptr<SlabWriter> MakeWriter(const SlabWriterContext& context) const override {
    return std::make_unique<TransitionWriter>(model_.format(), context);
  }
  void SetProgress(double /*progress*/) override {}
  Metrics Learn(const ReplayBatch& batch, UpdateRule& update, double progress) override;
  std::vector<std::string> metric_names() const override;
  std::span<const float> priorities() const override { return model_.priorities(); }

  double temperature() const;

  // For tests and for looking into a run.
  PathwiseActorCritic& model() { return model_; }

  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  void LoadParameters(ArchiveReader& archive) override;

 private:
  static constexpr int kTemperature = 2;  // The group after the model's.

  void MakeTargets();
  void StepTemperature(double entropy, double learning_rate, UpdateRule& update);
  struct ActorStep {
    double mean_value = 0;
    double entropy = 0;
    double gradient_norm = 0;
  };
  ActorStep StepActor(double learning_rate, UpdateRule& update);

  const SacConfig config_;
  mutable PathwiseActorCritic model_;
  const double target_entropy_;
  ParameterManifest temperature_manifest_;
  float log_temperature_;

  // Of the batch in hand; reused.
  std::vector<float> noise_, sampled_, action_gradient_;                       // [rows, elements]
  std::vector<float> log_probabilities_, targets_, log_probability_gradient_;  // [rows]
  std::vector<float> output_gradient_;                                         // [rows, head]
};

}  // namespace menger
