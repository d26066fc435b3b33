#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/pathwise_algorithm.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [sac]. Defaults are those of Haarnoja et al. 2018b ("Soft Actor-Critic
// Algorithms and Applications"), which learn their temperature.
struct SacConfig {
  PathwiseOptions common;
  bool learn_temperature = true;
  double temperature = 1;      // At the start, or for good.
  double target_entropy = -1;  // Nats for each element of an action.

  void Declare(Options& options);
};

// Soft actor-critic (Haarnoja et al. 2018): maximises return and entropy. Critics learn the soft
// value of the actor's next action, the smallest of them (eq. 5 and 6 of the second paper), the
// actor goes up their gradient (eq. 9), the temperature keeps the entropy at its target (eq. 18).
class Sac final : public PathwiseAlgorithm {
 public:
  // Throws InvalidArgument for actions without bounds, and what else does not fit.
  Sac(const SacConfig& config, const AlgorithmContext& context);

  static std::unique_ptr<PolicyMaker> MakePolicies(const SacConfig& config,
                                                   const AlgorithmContext& context);

  std::vector<ParameterGroup> parameter_groups() const override;
  double temperature() const;

 private:
  static constexpr int kTemperature = 2;  // The group after actor and critics.

  void MakeTargets(std::span<float> targets) override;
  std::vector<double> StepOthers(double learning_rate, UpdateRule& update) override;
  std::vector<std::string> own_metric_names() const override {
    return {"actor_gradient_norm", "entropy", "temperature"};
  }
  void SaveOwn(ArchiveWriter& archive) const override;
  void LoadOwn(ArchiveReader& archive) override;
  void LoadOwnParameters(ArchiveReader& archive) override { LoadOwn(archive); }

  const SacConfig config_;
  const double target_entropy_;
  ParameterManifest temperature_manifest_;
  float log_temperature_;
  std::vector<float> noise_, next_actions_;    // [rows, elements]; these are reused.
  std::vector<float> next_log_probabilities_;  // [rows]
};

}  // namespace menger
