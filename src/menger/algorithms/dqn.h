#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/action_values.h"
#include "menger/algorithms/dqn_config.h"
#include "menger/algorithms/epsilon.h"
#include "menger/algorithms/output_gradients.h"
#include "menger/algorithms/published_model.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/algorithms/return_loss.h"
#include "menger/algorithms/schedule.h"
#include "menger/algorithms/target_network.h"
#include "menger/algorithms/transition_batch.h"
#include "menger/algorithms/transition_writer.h"
#include "menger/algorithms/value_policy.h"
#include "menger/base/counter_random.h"
#include "menger/networks/network.h"
#include "menger/networks/noisy_network.h"

namespace menger {

// Deep Q-learning (Mnih et al. 2015) and what was added to it, each an option: double (van Hasselt
// et al. 2016), duelling (Wang et al. 2016), n-step returns, noisy networks (Fortunato et al.
// 2018), distributions of returns (C51, QR-DQN). All of them, with C51 and prioritised replay
// (which is the loop's), are Rainbow (Hessel et al. 2018); with epsilon in place of noise,
// e-Rainbow (Stooke & Abbeel 2018).
class Dqn final : public ReplayAlgorithm {
 public:
  // Throws InvalidArgument for actions that are not one Discrete, a recurrent network, a mask or
  // transforms that do not fit.
  Dqn(const DqnConfig& config, const AlgorithmContext& context);

  static void Check(const EnvironmentSpec& environment) { ValuePolicies::Check(environment); }
  static std::unique_ptr<PolicyMaker> MakePolicies(const DqnConfig& config,
                                                   const AlgorithmContext& context);

  const PolicyMaker& policies() const override { return policies_; }
  Publication& publication() override { return published_.publication(); }
  void Publish() override { published_.Publish(epsilon_); }
  std::int64_t parameter_count() const override { return network().manifest().size(); }

  const ItemSpec& items() const override { return format_.items(); }
  std::unique_ptr<SlabWriter> MakeWriter(const SlabWriterContext& context) const override;
  void SetProgress(double progress) override { epsilon_ = epsilon_over_run_.At(progress); }
  BatchMoments MomentsOf(const Slab& slab) const override { return published_.MomentsOf(slab); }
  void ObserveMoments(const BatchMoments& moments) override { published_.ObserveMoments(moments); }
  std::unique_ptr<Memory> AllocateBatch(std::size_t bytes) const override {
    return network().AllocateBatch(bytes);
  }
  Metrics Learn(const ReplayBatch& batch, UpdateRule& update, double progress) override;
  std::vector<std::string> metric_names() const override;
  std::span<const float> priorities() const override { return priorities_; }

  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  void LoadParameters(ArchiveReader& archive) override;

  // What the network and its target say, [rows, actions] expected returns, without noise. For tests
  // and for looking into a run.
  std::vector<float> Values(const NetworkInput& input) { return ValuesOf(network(), input); }
  std::vector<float> TargetValues(const NetworkInput& input) {
    return ValuesOf(target_.network(), input);
  }

 private:
  Network& network() const { return published_.network(); }
  const ActionValues& values() const { return policies_.options().values; }

  void Reserve(std::size_t rows);
  // The steps of Learn, in order.
  void ChooseNextAtoms();
  double Loss();
  void Backward(std::span<const Matrix> outputs);

  void DrawNoise(NoisyNetwork* network, int use) const;
  std::vector<float> ValuesOf(Network& network, const NetworkInput& input) const;

  const DqnConfig config_;
  const Schedule learning_rate_schedule_;
  const Epsilon epsilon_over_run_;
  const ValuePolicies policies_;
  const std::unique_ptr<const ReturnLoss> loss_;
  const TransitionFormat format_;
  PublishedModel published_;
  TargetNetwork target_;
  NoisyNetwork* const noisy_;  // The two again, if their weights are noisy.
  NoisyNetwork* const target_noisy_;
  const CounterRandom noise_random_;
  float epsilon_;  // As published: to the last bit in a checkpoint.
  TransitionBatch batch_;
  std::int64_t updates_ = 0;

  // Of the batch in hand; reused. [rows] ...
  std::vector<float> priorities_;
  std::vector<float> combined_, combined_gradient_;    // ... x actions x atoms
  std::vector<float> means_;                           // ... x actions
  std::vector<float> next_, targets_, taken_, slope_;  // ... x atoms
  OutputGradients output_gradients_;
};

}  // namespace menger
