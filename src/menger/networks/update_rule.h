#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "menger/base/archive.h"
#include "menger/base/options.h"
#include "menger/networks/network.h"

namespace menger {

// Options of section [optimiser].
struct OptimiserOptions {
  // adam, rmsprop (TensorFlow's: epsilon inside the root, accumulator starts at 1) or torch_rmsprop
  // (epsilon outside, from 0).
  std::string kind = "adam";
  double epsilon = 1e-5;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double decay = 0.99;             // RMSprop's alpha.
  double max_gradient_norm = 0.5;  // 0: no clipping.

  void Declare(Options& options);
};

// How a gradient becomes new parameters. Owns the optimiser state. Local here; all-reduced over
// learners, chunk-locked overwrite of central parameters, or every N steps are other
// implementations, and the algorithms do not see which. One thread calls it: the learner's.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // Takes network.gradients(), averages it over learners, clips its norm, changes
  // network.parameters() and tells the network. Returns the norm before clipping (Euclidean, over
  // all learners). Throws Internal, naming the parameter, if a gradient is not finite, and
  // InvalidArgument if the network has another number of parameters; then nothing has changed.
  virtual double Step(Network& network, double learning_rate) = 0;

  // Sums each entry over all learners, in place: for statistics that must be global (advantage
  // mean, KL). Every learner must call it equally often.
  virtual void Sum(std::span<double> values) = 0;
  virtual int learners() const = 0;

  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
};

// One learner, nothing to agree with anybody. `parameters` is the size of the flat vector. Many of
// them are moved by `threads` threads together; to the last bit, their number changes nothing.
std::unique_ptr<UpdateRule> MakeLocalUpdateRule(const OptimiserOptions& options,
                                                std::int64_t parameters, int threads = 1);

}  // namespace menger
