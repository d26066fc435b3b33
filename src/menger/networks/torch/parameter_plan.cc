#include "menger/networks/torch/parameter_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "menger/networks/init.h"

namespace menger {

int ParameterPlan::AddOrthogonal(std::string name, Shape shape, int rows, int columns,
                                 double gain) {
  manifest_.Add(std::move(name), std::move(shape));
  starts_.push_back({.rows = rows, .columns = columns, .gain = gain});
  return size() - 1;
}

int ParameterPlan::AddConstant(std::string name, Shape shape, double value) {
  manifest_.Add(std::move(name), std::move(shape));
  starts_.push_back({.value = value});
  return size() - 1;
}

void ParameterPlan::MarkReducible(int first) {
  for (int i = first; i < size(); ++i) starts_[i].reducible = true;
}

void ParameterPlan::Initialise(std::span<float> parameters, Random& random) const {
  for (int i = 0; i < size(); ++i) {
    const ParameterEntry& entry = manifest_.entries()[i];
    const Start& start = starts_[i];
    const std::span<float> values = parameters.subspan(static_cast<std::size_t>(entry.offset),
                                                       static_cast<std::size_t>(entry.elements()));
    if (start.rows > 0) {
      FillOrthogonal(values.data(), start.rows, start.columns, start.gain, random);
    } else {
      std::fill(values.begin(), values.end(), static_cast<float>(start.value));
    }
  }
}

}  // namespace menger
