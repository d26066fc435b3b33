#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/pathwise_policy.h"
#include "menger/algorithms/published_model.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/algorithms/schedule.h"
#include "menger/algorithms/target_network.h"
#include "menger/algorithms/transition_batch.h"
#include "menger/algorithms/transition_writer.h"
#include "menger/base/counter_random.h"
#include "menger/base/function_ref.h"
#include "menger/base/options.h"
#include "menger/base/shared_worker_pool.h"
#include "menger/networks/network.h"
#include "menger/networks/pathwise_distribution.h"

namespace menger {

// Options that SAC, TD3 and their kin share.
struct PathwiseOptions {
  double discount = 0.99;
  std::int64_t n_step = 1;
  double learning_rate = 3e-4;  // Of all groups of parameters.
  std::string learning_rate_schedule = "constant";
  double target_rate = 0.005;
  std::int64_t critics = 2;
  double importance_exponent = 0.4;

  void Declare(Options& options);
};

// Learns an actor, whose actions are smooth functions of its output, along the gradient of critics
// that read observation and action side by side: all of SAC, TD3 and their kin but the targets of
// the critics and the step of the actor, which a subclass gives. The critics are one network of
// several heads.
//
// Actions in here lie in [-1, 1]; ActionScaling is between them and the environment's.
class PathwiseAlgorithm : public ReplayAlgorithm {
 public:
  // Groups of parameters, in the order of parameter_groups(); a subclass may add more.
  static constexpr int kActor = 0;
  static constexpr int kCritics = 1;

  const PolicyMaker& policies() const final { return policies_; }
  Publication& publication() final { return published_.publication(); }
  // Until the first update, policies act uniformly at random.
  void Publish() final { published_.Publish(updates_ == 0 ? 1.0F : 0.0F); }
  std::int64_t parameter_count() const final;
  std::vector<ParameterGroup> parameter_groups() const override;

  const ItemSpec& items() const final { return format_.items(); }
  // Throws InvalidArgument where items are to come with errors of their own.
  std::unique_ptr<SlabWriter> MakeWriter(const SlabWriterContext& context) const final;
  void SetProgress(double /*progress*/) final {}
  BatchMoments MomentsOf(const Slab& slab) const final { return published_.MomentsOf(slab); }
  void ObserveMoments(const BatchMoments& moments) final { published_.ObserveMoments(moments); }
  // Throws Internal where StepOthers gives more or fewer values than own_metric_names() has.
  Metrics Learn(const ReplayBatch& batch, UpdateRule& update, double progress) final;
  std::vector<std::string> metric_names() const final;
  std::span<const float> priorities() const final { return priorities_; }

  void Save(ArchiveWriter& archive) const final;
  void Load(ArchiveReader& archive) final;
  void LoadParameters(ArchiveReader& archive) final;

  // For tests and for looking into a run.
  Network& actor() { return published_.network(); }
  Network& critics() { return *critics_; }
  TargetNetwork& target() { return target_; }

 protected:
  // `exploration`: what noise is multiplied by when acting. Throws InvalidArgument for
  // observations, actions, networks or transforms that do not fit.
  PathwiseAlgorithm(const PathwiseOptions& options, const AlgorithmContext& context,
                    std::unique_ptr<const PathwiseDistribution> distribution, double exploration);

  // ---- What a subclass gives.

  // Overwrites targets, [rows], with what the critics' values are to be.
  virtual void MakeTargets(std::span<float> targets) = 0;
  // After the critics' step: steps of the actor and of whatever else learns, and of targets.
  // Returns one value for each of own_metric_names(), each a total over all learners
  // (UpdateRule::Total).
  virtual std::vector<double> StepOthers(double learning_rate, UpdateRule& update) = 0;
  virtual std::vector<std::string> own_metric_names() const = 0;
  virtual void SaveOwn(ArchiveWriter& archive) const = 0;
  virtual void LoadOwn(ArchiveReader& archive) = 0;
  virtual void LoadOwnParameters(ArchiveReader& archive) = 0;  // Of another run.

  // ---- What it is given for that, of the batch in hand.

  const TransitionBatch& batch() const { return batch_; }
  const PathwiseDistribution& distribution() const { return policies_.distribution(); }
  std::int64_t updates() const { return updates_; }  // Before this one.
  std::size_t action_floats() const {                // Of a batch of actions.
    return static_cast<std::size_t>(batch_.rows()) * distribution().elements();
  }

  // Standard normal numbers [rows, elements], those of one use in one update (there are four).
  void DrawNoise(int use, std::span<float> noise) const;

  // PathwiseDistribution::Sample of all rows; log-probabilities may be empty: not asked for.
  void Sample(const Matrix& output, std::span<const float> noise, std::span<float> actions,
              std::span<float> log_probabilities) const;

  // The smallest of the target critics' values of each next observation with a next action.
  void NextValues(std::span<const float> next_actions, std::span<float> values);

  // One step of the actor up the critics' value of its actions: the smallest critic's, or the first
  // one's; with noise, where it is given, and then also up `temperature` x entropy.
  enum class Judge : std::uint8_t { kSmallest, kFirst };
  struct ActorLoss {
    Judge judge = Judge::kSmallest;
    std::span<const float> noise;
    double temperature = 0;
  };
  struct ActorStep {  // This learner's share of means over all rows; the norm is everybody's.
    double value = 0;
    double entropy = 0;
    double gradient_norm = 0;
  };
  ActorStep StepActor(const ActorLoss& loss, double learning_rate, UpdateRule& update);

  // Parts of that step, for an actor whose loss has one more term: what the critics read,
  // observation and action side by side (in memory of this object's: until the next of these
  // calls), and this learner's share of the mean of the critics' values of `actions`, with
  // d(-mean)/d(action). Both [rows, elements].
  NetworkInput CriticInput(const NetworkInput& observations, std::span<const float> actions);
  double ActionGradient(Judge judge, std::span<const float> actions, std::span<float> gradient);
  void FollowTarget() { target_.Follow(*critics_, static_cast<float>(options_.target_rate)); }
  double target_rate() const { return options_.target_rate; }

 private:
  struct CriticStep {  // As ActorStep.
    double loss = 0;
    double value = 0;
    double gradient_norm = 0;
  };
  void Reserve();
  void ByRows(FunctionRef<void(int begin, int end)> function) const;
  CriticStep StepCritics(double learning_rate, UpdateRule& update);
  void ActorGradient(const Matrix& output, const ActorLoss& loss);
  void LoadCritics(const ArchiveReader& archive);

  const PathwiseOptions options_;
  const Schedule learning_rate_schedule_;
  const PathwisePolicies policies_;
  const TransitionFormat format_;
  PublishedModel published_;
  const SharedWorkerPool threads_;
  const std::unique_ptr<Network> critics_;
  TargetNetwork target_;
  const CounterRandom noise_random_;
  TransitionBatch batch_;
  std::int64_t updates_ = 0;

  // Of the batch in hand; reused.
  std::vector<float> targets_, priorities_, log_probabilities_,
      log_probability_gradient_;                             // [rows]
  std::vector<float> taken_, actions_, action_gradient_;     // [rows, elements]
  std::vector<float> output_gradient_;                       // [rows, the actor's head]
  std::vector<float> critic_input_, critic_input_gradient_;  // [rows, observation + elements]
  std::vector<float> value_gradients_;                       // [critics, rows]
  std::vector<Matrix> value_gradient_matrices_;
};

}  // namespace menger
