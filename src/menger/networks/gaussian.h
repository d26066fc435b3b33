#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/networks/distribution.h"

namespace menger {

// Independent Gaussians, one an element of a Box action: the mean is the head "policy", the
// logarithm of the standard deviation the constant head "log_std". Actions are neither clipped nor
// squashed here. With a range these are of x, and so are log-probabilities and entropy: those of
// the actions differ by a constant. Throws InvalidArgument for a mask: real numbers cannot be
// forbidden.
class GaussianDistribution : public Distribution {
 public:
  GaussianDistribution(int elements, double initial_log_std, ActionRange range = {});

  std::vector<HeadSpec> heads() const override;
  void Sample(std::span<const Matrix> outputs, const std::uint8_t* mask,
              const CounterRandom& random, std::span<const int> environments, std::int64_t step,
              void* actions, float* log_probability) const override;
  void Mode(std::span<const Matrix> outputs, const std::uint8_t* mask,
            void* actions) const override;
  void Evaluate(std::span<const Matrix> outputs, const std::uint8_t* mask, const void* actions,
                float* log_probability, float* entropy) const override;
  void Gradient(std::span<const Matrix> outputs, const std::uint8_t* mask, const void* actions,
                std::span<const float> log_probability_gradient,
                std::span<const float> entropy_gradient,
                std::span<const Matrix> output_gradients) const override;

 private:
  void ToRange(float* action) const;
  float FromRange(const float* action, int i) const {
    return (action[i] - range_.middle[i]) / range_.half[i];
  }
  // Used by Sample too, so that the learner finds the very log-probability that acting recorded.
  float LogProbability(const float* action, const float* mean, const float* log_std) const;

  int elements_;
  double initial_log_std_;
  ActionRange range_;  // Of every element: 0 and 1 change no bit.
};

}  // namespace menger
