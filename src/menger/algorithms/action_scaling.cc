#include "menger/algorithms/action_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/base/error.h"

namespace menger {

namespace {

constexpr double kHalfMin = .1;  // Of the way from bound to bound, in units of the first noise.
constexpr double kHalfMax = 10;

double BoundOf(const std::vector<double>& bounds, std::size_t i) {
  return bounds.size() == 1 ? bounds[0] : bounds.at(i);
}

}  // namespace

ActionScaling::ActionScaling(const EnvironmentSpec& environment, std::string_view remedy) {
  const LeafSpec& action = OnlyAction(environment);
  if (action.space != Space::kBox || action.dtype != DataType::kFloat32) {
    throw InvalidArgument("the actions of {} are not real numbers: use dqn, ppo or a2c for choices",
                          environment.name);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(action.elements()); ++i) {
    const double low = BoundOf(action.low, i);
    const double high = BoundOf(action.high, i);
    if (!std::isfinite(low) || !std::isfinite(high) || low >= high) {
      throw InvalidArgument("element {} of the actions of {} lies in [{}, {}]; {}", i,
                            environment.name, low, high, remedy);
    }
    low_.push_back(static_cast<float>(low));
    high_.push_back(static_cast<float>(high));
    middle_.push_back(static_cast<float>((low + high) / 2));
    half_.push_back(static_cast<float>((high - low) / 2));
  }
}

void ActionScaling::ToEnvironment(const float* from, int rows, float* to) const {
  for (int row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < middle_.size(); ++i) {
      *to++ = std::clamp(middle_[i] + half_[i] * *from++, low_[i], high_[i]);
    }
  }
}

void ActionScaling::FromEnvironment(const float* from, int rows, float* to) const {
  for (int row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < middle_.size(); ++i) *to++ = (*from++ - middle_[i]) / half_[i];
  }
}

ActionRange RangeOf(const EnvironmentSpec& environment, const TransformOptions& transforms) {
  if (!transforms.scale_actions) return {};
  if (OnlyAction(environment).space != Space::kBox) {
    throw InvalidArgument(
        "transforms.scale_actions = true, but the actions of {} are choices, which have no scale: "
        "leave it out",
        environment.name);
  }
  const ActionScaling scaling(environment,
                              "transforms.scale_actions needs two finite bounds: leave it out");
  return {.middle = scaling.middle(), .half = scaling.half()};
}

void AddRange(const ActionRange& range, NetworkLayers& network) {
  const std::size_t elements = range.half.size();
  if (elements == 0) return;
  NetworkLayer scale{.source = network.heads[0],
                     .inputs = static_cast<int>(elements),
                     .outputs = static_cast<int>(elements),
                     .weight = std::vector<float>(elements * elements),
                     .bias = range.middle};
  for (std::size_t i = 0; i < elements; ++i) scale.weight[i * elements + i] = range.half[i];
  network.heads[0] = static_cast<int>(network.layers.size());
  network.layers.push_back(std::move(scale));
}

std::string UnfitBoundsText(const EnvironmentSpec& environment) {
  for (const LeafSpec& action : environment.action.leaves()) {
    if (action.space != Space::kBox) continue;
    for (std::size_t i = 0; i < static_cast<std::size_t>(action.elements()); ++i) {
      const double low = BoundOf(action.low, i);
      const double high = BoundOf(action.high, i);
      const double half = (high - low) / 2;
      if (!std::isfinite(half)) continue;
      if (half >= kHalfMin && half <= kHalfMax && low <= 0 && high >= 0) continue;
      return fmt::format(
          "element {} of '{}' of {} lies in [{:g}, {:g}], but the policies of ppo, a2c and es "
          "begin around 0 with noise of about 1, in its units: transforms.scale_actions = true "
          "lets them act from -1 to 1 between the bounds",
          i, action.name, environment.name, low, high);
    }
  }
  return "";
}

}  // namespace menger
