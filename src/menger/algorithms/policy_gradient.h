#pragma once

#include <span>
#include <vector>

#include "menger/algorithms/actor_critic.h"
#include "menger/algorithms/output_gradients.h"
#include "menger/algorithms/slab_batch.h"
#include "menger/networks/update_rule.h"

namespace menger {

// Log-probability and entropy of a minibatch's actions under the present parameters, and the way
// back: from gradients with respect to log-probability, entropy and value to a parameter update.
// Reused buffers; the learner's thread only. A minibatch without rows has a gradient of 0.
class PolicyGradient {
 public:
  explicit PolicyGradient(ActorCritic& model) : model_(model) {}

  // Forward pass. The results below stay valid until the next call.
  void Evaluate(const Minibatch& minibatch);
  std::span<const float> log_probabilities() const { return log_probabilities_; }
  std::span<const float> entropies() const { return entropies_; }
  std::span<const float> values() const { return values_; }

  // Where the losses write their gradients, one entry a row.
  std::span<float> log_probability_gradient() { return log_probability_gradient_; }
  std::span<float> value_gradient() { return value_gradient_; }

  // Backward pass of the gradients above and of -entropy_coefficient * (weighted mean entropy):
  // gives the model's network its gradients, for an update rule's step. The minibatch is not needed
  // after that.
  void Backward(const Minibatch& minibatch, double entropy_coefficient);

 private:
  ActorCritic& model_;
  std::span<const Matrix> outputs_;  // The network's, of the last Evaluate.
  std::vector<float> log_probabilities_, entropies_, values_;
  std::vector<float> log_probability_gradient_, entropy_gradient_, value_gradient_;
  OutputGradients output_gradients_;
};

// (A - mean) / (standard deviation + 1e-8) over the rows that count, of all learners together.
void NormaliseAdvantages(std::span<float> advantages, std::span<const float> weights,
                         UpdateRule& update);

}  // namespace menger
