#pragma once

#include <memory>
#include <span>

#include "menger/algorithms/action_values.h"

namespace menger {

// How returns in the terms of a ReturnModel are learned. Immutable; any thread.
//
// Arrays are dense, `atoms` numbers a row: those of one action.
class ReturnLoss {
 public:
  virtual ~ReturnLoss() = default;

  // targets <- rewards + bootstraps * the return that `next` describes, one reward and bootstrap a
  // row. Overwrites `next`, too.
  virtual void Targets(std::span<float> next, std::span<const float> rewards,
                       std::span<const float> bootstraps, std::span<float> targets) const = 0;

  // The sum of weights * loss over rows, of the atoms that the network gave for the actions taken.
  // Overwrites `gradient` with d(sum)/d(taken), and `priorities`, one a row, with how surprising
  // the row was.
  virtual double Loss(std::span<const float> taken, std::span<const float> targets,
                      std::span<const float> weights, std::span<float> priorities,
                      std::span<float> gradient) const = 0;
};

// Of kMean the Huber loss with `huber_delta`, and the size of the error as priority; of
// kCategorical the cross entropy, which is the priority, too; of kQuantiles the quantile Huber
// loss, and the size of the error of the mean.
std::unique_ptr<const ReturnLoss> MakeReturnLoss(const ActionValues& values, double huber_delta);

}  // namespace menger
