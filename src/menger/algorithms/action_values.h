#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/algorithms/q_losses.h"
#include "menger/networks/network.h"

namespace menger {

// What a network says about the return of an action.
enum class ReturnModel : std::uint8_t {
  kMean,         // Its expectation, one number (Mnih et al. 2015).
  kCategorical,  // Probabilities of fixed returns, as logits: C51 (Bellemare et al. 2017).
  kQuantiles,    // Returns of fixed probabilities: QR-DQN (Dabney et al. 2018).
};

// How the outputs of a network become the value of each action. Immutable; any thread.
//
// Without duelling the network has one head "action_value" [actions x atoms], with it the heads
// "advantage" [actions x atoms] and "value" [atoms]. Either way `combined` is [rows, actions,
// atoms].
struct ActionValues {
  int actions = 1;
  ReturnModel model = ReturnModel::kMean;
  int atoms = 1;    // Numbers an action; 1 for kMean.
  Support support;  // kCategorical: the returns that the atoms stand for.
  bool duelling = false;

  std::size_t width() const { return static_cast<std::size_t>(actions) * atoms; }
  std::vector<HeadSpec> heads() const;

  // The outputs in one array, and the way back: overwrites the gradients of the outputs.
  void Combine(std::span<const Matrix> outputs, std::span<float> combined) const;
  void CombineGradient(std::span<const float> combined_gradient,
                       std::span<const Matrix> output_gradients) const;

  // The expected return of one action, given its atoms.
  float Mean(std::span<const float> atoms_of_action) const;
  // Of every action of every row: `values` is [rows, actions].
  void Means(std::span<const float> combined, std::span<float> values) const;
};

// The action of the largest value among those that `mask` allows (null: all), the first of equals.
// Throws InvalidArgument where it allows none.
int GreedyAction(std::span<const float> values, const std::uint8_t* mask);

}  // namespace menger
