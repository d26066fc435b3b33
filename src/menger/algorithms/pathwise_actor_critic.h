#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/observation_encoder.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/algorithms/target_network.h"
#include "menger/algorithms/transition_writer.h"
#include "menger/base/counter_random.h"
#include "menger/networks/network.h"
#include "menger/networks/pathwise_distribution.h"
#include "menger/parameters/publication.h"

namespace menger {

// How actors and critics are made and fed.
struct PathwiseOptions {
  double discount = 0.99;
  int n_step = 1;
  int critics = 2;
  double exploration = 1;  // What noise is multiplied by when acting.
  double importance_exponent = 0.4;
};

// What SAC, TD3 and their kin have in common: an actor, whose actions are smooth functions of its
// output; critics, one network of several heads that reads observation and action side by side, so
// that a loss of values has a gradient of the action; the critics' target; the policy that acts
// with the actor, and its publication; and the batch in hand, as arrays.
//
// Actions in here lie in [-1, 1]; ActionScaling is between them and the environment's. Used by the
// learner's thread; policies share only immutable parts and the publication.
class PathwiseActorCritic {
 public:
  // Groups of parameters, in the order of parameter_groups().
  static constexpr int kActor = 0;
  static constexpr int kCritics = 1;

  // Throws InvalidArgument for observations, actions, networks or transforms that do not fit.
  PathwiseActorCritic(const PathwiseOptions& options, const AlgorithmContext& context,
                      std::shared_ptr<const PathwiseDistribution> distribution);

  const TransitionFormat& format() const { return format_; }
  const ObservationEncoder& encoder() const { return *encoder_; }
  const PathwiseDistribution& distribution() const { return *distribution_; }
  const PolicySpec& policy_spec() const { return policy_spec_; }
  Publication& publication() { return *publication_; }
  Network& actor() { return *actor_; }
  Network& critics() { return *critics_; }
  TargetNetwork& target() { return target_; }
  std::vector<ParameterGroup> parameter_groups() const;

  std::unique_ptr<Policy> MakePolicy(PolicyMode mode, std::uint64_t seed) const;
  PolicyDescription DescribePolicy() const;

  // Makes the actor visible to policies; until the first update they act uniformly at random.
  void Publish();

  // ---- An update, in order.

  // Takes a batch: it must stay as it is until EndUpdate. `progress` in [0, 1] as for Learn.
  void BeginUpdate(const ReplayBatch& batch, double progress);

  int rows() const { return rows_; }
  std::span<const float> returns() const { return returns_; }        // Of n steps.
  std::span<const float> bootstraps() const { return bootstraps_; }  // What a next value counts.
  std::span<const float> priorities() const { return priorities_; }  // Absolute errors.

  NetworkInput observations() const;
  NetworkInput next_observations() const;

  // Standard normal numbers [rows, elements], those of one use in one update.
  void DrawNoise(int use, std::span<float> noise) const;

  // The smallest of the target critics' values of each next observation with a next action.
  void NextValues(std::span<const float> next_actions, std::span<float> values);

  // One step of the critics towards the targets, each by half its squared error, weighted as
  // prioritised draws ask for.
  struct CriticStep {
    double loss = 0;
    double mean_value = 0;
    double gradient_norm = 0;
  };
  CriticStep StepCritics(std::span<const float> targets, double learning_rate, UpdateRule& update);

  // The critics' values of other actions for the batch's observations, the smallest of all critics
  // or the first one's; overwrites `gradient` with d(-mean value)/d(action). Returns the mean.
  enum class Judge : std::uint8_t { kSmallest, kFirst };
  double ActionGradient(std::span<const float> actions, Judge judge, std::span<float> gradient);

  void EndUpdate() { ++updates_; }
  std::int64_t updates() const { return updates_; }

  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);
  void LoadParameters(ArchiveReader& archive);  // Without publishing them.

 private:
  void Reserve(int rows);
  NetworkInput CriticInput(const float* observations, std::span<const float> actions);
  void LoadNetworks(const ArchiveReader& archive);

  const PathwiseOptions options_;
  const AlgorithmContext context_;
  TransitionFormat format_;
  std::shared_ptr<const ObservationEncoder> encoder_;         // These three are shared with
  std::shared_ptr<const PathwiseDistribution> distribution_;  // policies, immutable.
  std::shared_ptr<const ActionScaling> scaling_;
  Random random_;  // Of the initial parameters.
  const std::unique_ptr<Network> actor_;
  const std::unique_ptr<Network> critics_;
  TargetNetwork target_;
  PolicySpec policy_spec_;
  std::shared_ptr<Publication> publication_;  // Shared with policies, thread-safe.
  std::vector<float> blob_;                   // What was published last: see PathwisePolicy.
  const CounterRandom noise_random_;
  std::int64_t updates_ = 0;

  // Of the batch in hand; reused.
  ReplayBatch batch_;
  int rows_ = 0;
  std::vector<double> probabilities_;
  std::vector<float> returns_, bootstraps_, weights_, priorities_;  // [rows]
  std::vector<float> actions_;                                      // [rows, elements]
  std::vector<float> critic_input_, input_gradient_;  // [rows, observation + elements]
  std::vector<float> value_gradients_;                // [critics, rows]
  std::vector<Matrix> value_gradient_matrices_;
};

}  // namespace menger
