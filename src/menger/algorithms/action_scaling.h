#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "menger/algorithms/transforms.h"
#include "menger/environments/environment.h"
#include "menger/networks/distribution.h"
#include "menger/networks/network_layers.h"

namespace menger {

// Between actions in [-1, 1], as networks give them, and the environment's own, in one straight
// line from bound to bound. Immutable; any thread.
class ActionScaling {
 public:
  // Throws InvalidArgument unless the environment's only action is a Box of float32 whose every
  // element has two finite bounds; `remedy` is what it says then.
  explicit ActionScaling(const EnvironmentSpec& environment,
                         std::string_view remedy =
                             "this algorithm needs two finite bounds, ppo "
                             "and a2c do not");

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

// The range of a policy's actions: that of the bounds where transforms.scale_actions says so, else
// none. Throws InvalidArgument where it says so of actions that are choices or have no bounds.
ActionRange RangeOf(const EnvironmentSpec& environment, const TransformOptions& transforms);

// Appends the layer that takes what the first head gives to the range.
void AddRange(const ActionRange& range, NetworkLayers& network);

// A sentence about an action whose bounds do not fit a policy that begins around 0 with noise of 1
// (they are far apart, close together, or on one side of 0), and what to do; "" where all fit.
std::string UnfitBoundsText(const EnvironmentSpec& environment);

}  // namespace menger
