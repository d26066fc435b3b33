#include "menger/algorithms/action_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "menger/algorithms/action_space.h"
#include "menger/base/error.h"

namespace menger {

ActionScaling::ActionScaling(const EnvironmentSpec& environment) {
  const LeafSpec& action = OnlyAction(environment);
  if (action.space != Space::kBox || action.dtype != DataType::kFloat32) {
    throw InvalidArgument("the actions of {} are not real numbers: use dqn, ppo or a2c for choices",
                          environment.name);
  }
  const auto bound = [](const std::vector<double>& bounds, std::size_t i) {
    return bounds.size() == 1 ? bounds[0] : bounds.at(i);
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(action.elements()); ++i) {
    const double low = bound(action.low, i);
    const double high = bound(action.high, i);
    if (!std::isfinite(low) || !std::isfinite(high) || low >= high) {
      throw InvalidArgument(
          "element {} of the actions of {} lies in [{}, {}]; this algorithm needs two finite "
          "bounds, ppo and a2c do not",
          i, environment.name, low, high);
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

}  // namespace menger
