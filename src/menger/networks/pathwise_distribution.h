#pragma once

#include <memory>
#include <vector>

#include "menger/networks/network.h"

namespace menger {

// A distribution over actions in [-1, 1]^d whose draws are smooth functions of a network's output
// and of noise that is given: so a loss of the action has a gradient of the output (Kingma and
// Welling 2014), which a score function does not need (see Distribution).
//
// Dense rows: actions and noise [rows, elements], log-probabilities [rows] in nats. Stateless; any
// thread; each row independent of the others.
class PathwiseDistribution {
 public:
  virtual ~PathwiseDistribution() = default;

  int elements() const { return elements_; }

  // The head that a network must have for it: the `output` of the functions below.
  virtual HeadSpec head() const = 0;

  // The actions that the noise makes of the output; their log-probabilities too, where there are
  // any and they are asked for (not null).
  virtual void Sample(const Matrix& output, const float* noise, float* actions,
                      float* log_probability) const = 0;

  // The action without noise.
  virtual void Mode(const Matrix& output, float* actions) const = 0;

  // Overwrites `output_gradient` (shaped as the output) with d(loss)/d(output), given
  // d(loss)/d(action) and d(loss)/d(log_probability) (null: 0) of what Sample made of the same
  // output and noise.
  virtual void Gradient(const Matrix& output, const float* noise, const float* actions,
                        const float* action_gradient, const float* log_probability_gradient,
                        const Matrix& output_gradient) const = 0;

 protected:
  explicit PathwiseDistribution(int elements) : elements_(elements) {}

 private:
  const int elements_;
};

// tanh(mean + standard deviation * noise), with noise of a standard normal distribution (Haarnoja
// et al. 2018, appendix C). The output is d means, then d logarithms of standard deviations, which
// are held in [-20, 2] as the authors do; beyond, their gradient is 0.
std::unique_ptr<PathwiseDistribution> MakeSquashedGaussian(int elements);

// clip(tanh(output) + noise, -1, 1), with noise of any kind (Fujimoto et al. 2018: of exploration,
// and of the smoothed target). Without log-probabilities. Where the noise clips, the gradient is
// that of tanh all the same: losses have none.
std::unique_ptr<PathwiseDistribution> MakeSquashedPoint(int elements);

}  // namespace menger
