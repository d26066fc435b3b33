#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/action_values.h"
#include "menger/algorithms/epsilon.h"
#include "menger/algorithms/output_gradients.h"
#include "menger/algorithms/published_model.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/algorithms/return_loss.h"
#include "menger/algorithms/schedule.h"
#include "menger/algorithms/sequence_batch.h"
#include "menger/algorithms/sequence_writer.h"
#include "menger/algorithms/target_network.h"
#include "menger/algorithms/value_policy.h"
#include "menger/networks/network.h"

namespace menger {

// Options of section [r2d2]. Defaults are those of Kapturowski et al. 2019, whose environments
// explore as Horgan et al. 2018's do.
struct R2d2Config {
  SequenceOptions sequences;
  double discount = 0.997;
  bool duelling = true;
  double value_rescaling = 1e-3;
  double learning_rate = 1e-4;
  std::string learning_rate_schedule = "constant";
  std::int64_t target_every = 2500;
  double priority_mix = 0.9;
  double importance_exponent = 0.6;  // To 1 at the end of the run.
  EpsilonOptions epsilon = {.start = 0.4, .end = 0.4, .fraction = 0, .spread = 7};

  void Declare(Options& options);
};

// Recurrent replay distributed DQN's learner (Kapturowski et al. 2019): double Q-learning of n
// steps from sequences of replay, each from the state that the policy carried when it began. The
// network is first shown what came before (burn-in) and then learns over the sequence; values are
// those of squashed returns; a sequence is drawn by a mix of its largest and its mean error.
//
// Unlike the paper's, the network sees neither the last action nor the last reward. One that
// remembers nothing learns, too: from many decisions of one stretch.
class R2d2 final : public ReplayAlgorithm {
 public:
  // Throws InvalidArgument for actions that are not one Discrete, and for sequences, masks or
  // transforms that do not fit.
  R2d2(const R2d2Config& config, const AlgorithmContext& context);

  static void Check(const EnvironmentSpec& environment) { ValuePolicies::Check(environment); }
  static std::unique_ptr<PolicyMaker> MakePolicies(const R2d2Config& config,
                                                   const AlgorithmContext& context);

  const PolicyMaker& policies() const override { return policies_; }
  Publication& publication() override { return published_.publication(); }
  void Publish() override { published_.Publish(epsilon_); }
  std::int64_t parameter_count() const override { return network().manifest().size(); }

  const ItemSpec& items() const override { return format_.items(); }
  ItemSteps item_steps() const override {
    return {.learned = format_.length(), .added = format_.period()};
  }
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

  // For tests and for looking into a run.
  const SequenceFormat& format() const { return format_; }
  Network& network() const { return published_.network(); }
  TargetNetwork& target() { return target_; }

 private:
  const ActionValues& values() const { return policies_.options().values; }

  void Reserve();
  // The steps of Learn, in order.
  const float* Remember(Network& network);
  void MakeTargets();
  void Backward(std::span<const Matrix> outputs);
  void MakePriorities();

  const R2d2Config config_;
  const Schedule learning_rate_schedule_;
  const Epsilon epsilon_over_run_;
  const ValuePolicies policies_;
  const std::unique_ptr<const ReturnLoss> loss_;
  const SequenceFormat format_;
  PublishedModel published_;
  TargetNetwork target_;
  float epsilon_;  // As published: to the last bit in a checkpoint.
  SequenceBatch batch_;
  std::int64_t updates_ = 0;

  // Of the batch in hand; reused.
  std::vector<float> priorities_;                                    // [sequences]
  std::vector<float> state_;                                         // [sequences, state]
  std::vector<float> combined_, target_values_, combined_gradient_;  // [window rows, actions]
  std::vector<float> next_, targets_, taken_, errors_, slope_;       // [rows]
  OutputGradients output_gradients_;
};

}  // namespace menger
