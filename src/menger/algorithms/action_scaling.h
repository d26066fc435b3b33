#pragma once

#include <vector>

#include "menger/environments/environment.h"

namespace menger {

// Between actions in [-1, 1], as networks give them, and the environment's own, in one straight
// line from bound to bound. Immutable; any thread.
class ActionScaling {
 public:
  // Throws InvalidArgument unless the environment's only action is a Box of float32 whose every
  // element has two finite bounds.
  explicit ActionScaling(const EnvironmentSpec& environment);

  int elements() const { return static_cast<int>(middle_.size()); }
  const std::vector<float>& middle() const { return middle_; }
  const std::vector<float>& half() const { return half_; }

  // [rows, elements], dense; `from` and `to` may be the same.
  void ToEnvironment(const float* from, int rows, float* to) const;
  void FromEnvironment(const float* from, int rows, float* to) const;

 private:
  std::vector<float> middle_;
  std::vector<float> half_;  // Of the way from bound to bound.
  std::vector<float> low_;
  std::vector<float> high_;
};

}  // namespace menger
