#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/error.h"
#include "menger/base/options.h"
#include "menger/base/shared_worker_pool.h"
#include "menger/networks/network.h"

namespace menger {

// A gradient that no step can be made from; its code is Internal. What was learned before is at
// fault, mostly with too high a learning rate.
class GradientNotFinite : public Error {
 public:
  explicit GradientNotFinite(const std::string& text) : Error(ErrorCode::kInternal, text) {}
};

// Options of section [optimiser].
struct OptimiserOptions {
  // adam, rmsprop (TensorFlow's: epsilon inside the root, accumulator starts at 1) or torch_rmsprop
  // (epsilon outside, from 0).
  std::string kind = "adam";
  double epsilon = 1e-5;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double decay = 0.99;             // RMSprop's alpha.
  bool centred = false;            // RMSprop: gradients are measured from their running mean.
  double max_gradient_norm = 0.5;  // 0: no clipping.

  void Declare(Options& options);
};

// Parameters that an optimiser of their own moves, at a rate of their own: a network's, or a number
// such as a temperature.
struct ParameterGroup {
  std::string name;        // "actor"; each of an algorithm's has another.
  std::int64_t count = 0;  // Floats.
};

// The values of a group and their gradient. Borrowed for the call.
struct GroupValues {
  const ParameterManifest& manifest;  // For errors: says whose gradient is not finite.
  std::span<float> parameters;
  std::span<const float> gradients;
};

// How a gradient becomes new parameters. Owns the optimiser state. Local here; all-reduced over
// learners, chunk-locked overwrite of central parameters, or every N steps are other
// implementations, and the algorithms do not see which. One thread calls it: the learner's.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // Adds up the gradients of all learners (each has weighted its rows by what all have together:
  // see Total), clips their norm (each group its own) and changes the parameters. Returns the norm
  // before clipping. `group` is its place in the algorithm's parameter_groups(). Throws
  // GradientNotFinite, naming the parameter, and InvalidArgument if there is no such group or it
  // has another number of parameters; then nothing has changed.
  virtual double Step(int group, const GroupValues& values, double learning_rate) = 0;

  // The same for a network that is a group, which is told.
  double Step(Network& network, double learning_rate, int group = 0);

  // Learners take equally many steps and call these equally often, in the same order: who has
  // nothing to learn from takes part with weight 0.

  // Sums each entry over all learners, in place: for statistics that must be global (advantage
  // mean, KL).
  virtual void Sum(std::span<double> values) = 0;
  virtual int learners() const = 0;
  virtual int learner() const = 0;  // Which of them this one is, from 0.

  // Of one number that each learner has: the sum, the largest, and the sum of those before.
  double Total(double value);
  double Largest(double value);
  double Before(double value);

  // How many steps all take, where this learner has data for so many: the largest of all counts.
  std::int64_t Agree(std::int64_t count) {
    return static_cast<std::int64_t>(Largest(static_cast<double>(count)));
  }

  // Learners that share parameters without waiting for each other: overwrites those of a group with
  // what all have made of them, and returns true (A3C: Mnih et al. 2016, algorithm S3). With any
  // other rule what a learner has is what there is: does nothing, and returns false.
  virtual bool Pull(int /*group*/, std::span<float> /*parameters*/) { return false; }

  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;

 private:
  std::vector<double> Gather(double value);  // Of every learner, in order.
};

// One learner, nothing to agree with anybody. Many parameters are moved on `threads` together;
// to the last bit, their number changes nothing. Throws InvalidArgument where two groups have one
// name.
std::unique_ptr<UpdateRule> MakeLocalUpdateRule(const OptimiserOptions& options,
                                                std::span<const ParameterGroup> groups,
                                                SharedWorkerPool threads = 1);

// For one group of so many parameters.
std::unique_ptr<UpdateRule> MakeLocalUpdateRule(const OptimiserOptions& options,
                                                std::int64_t parameters,
                                                SharedWorkerPool threads = 1);

}  // namespace menger
