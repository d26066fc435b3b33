#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/base/counter_random.h"
#include "menger/networks/network.h"
#include "menger/tensor/spec.h"

namespace menger {

// A probability distribution over actions, given by the first heads().size() outputs of a network.
// Pure functions on plain arrays: stateless, thread-safe, each row independent of the others.
//
// Actions are dense rows of the action leaf: int64 [1] (Discrete), int64 [k] (MultiDiscrete),
// float32 [d] (Box). `mask` is null or one flag a logit [rows, width]; a forbidden action has
// probability 0, is never drawn, and gets no gradient. Entropy and log-probability are in nats.
// Log-probabilities of MultiDiscrete and Box add up over the elements.
class Distribution {
 public:
  virtual ~Distribution() = default;

  // The heads that a network must have for it, in order.
  virtual std::vector<HeadSpec> heads() const = 0;

  // Draws one action a row. Row i uses random.Draw(environments[i], step): the draw does not depend
  // on the batching. Rows with environments[i] < 0 are padding; anything valid may be written for
  // them.
  virtual void Sample(std::span<const Matrix> outputs, const std::uint8_t* mask,
                      const CounterRandom& random, std::span<const int> environments,
                      std::int64_t step, void* actions, float* log_probability) const = 0;

  // The most likely action of each row.
  virtual void Mode(std::span<const Matrix> outputs, const std::uint8_t* mask,
                    void* actions) const = 0;

  // log p(action) and entropy of each row.
  virtual void Evaluate(std::span<const Matrix> outputs, const std::uint8_t* mask,
                        const void* actions, float* log_probability, float* entropy) const = 0;

  // Overwrites `output_gradients` (shaped as outputs) with d(loss)/d(outputs), given
  // d(loss)/d(log_probability) and d(loss)/d(entropy) of each row.
  virtual void Gradient(std::span<const Matrix> outputs, const std::uint8_t* mask,
                        const void* actions, std::span<const float> log_probability_gradient,
                        std::span<const float> entropy_gradient,
                        std::span<const Matrix> output_gradients) const = 0;
};

// Where real actions lie that a network gives as numbers around 0: at middle + half * x, one of
// each an element. Empty: they are x.
struct ActionRange {
  std::vector<float> middle;
  std::vector<float> half;
};

// Categorical for Discrete, independent categoricals for MultiDiscrete, a Gaussian with a
// state-independent standard deviation (initially exp(`initial_log_std`)) for Box, of x where the
// actions have a `range`. Throws InvalidArgument on any other space.
std::unique_ptr<Distribution> MakeDistribution(const LeafSpec& action, double initial_log_std = 0.0,
                                               ActionRange range = {});

}  // namespace menger
