#include "menger/algorithms/action_values.h"

#include <algorithm>
#include <numeric>

#include "menger/base/error.h"

namespace menger {

std::vector<HeadSpec> ActionValues::heads() const {
  const int all = static_cast<int>(width());
  if (!duelling) return {{.name = "action_value", .width = all}};
  return {{.name = "advantage", .width = all}, {.name = "value", .width = atoms}};
}

void ActionValues::Combine(std::span<const Matrix> outputs, std::span<float> combined) const {
  if (duelling) return CombineDuelling(outputs[0], outputs[1], combined);
  for (int row = 0; row < outputs[0].rows; ++row) {
    std::copy_n(outputs[0].row(row), width(), combined.data() + row * width());
  }
}

void ActionValues::CombineGradient(std::span<const float> combined_gradient,
                                   std::span<const Matrix> output_gradients) const {
  if (duelling)
    return DuellingGradient(combined_gradient, output_gradients[0], output_gradients[1]);
  for (int row = 0; row < output_gradients[0].rows; ++row) {
    std::copy_n(combined_gradient.data() + row * width(), width(), output_gradients[0].row(row));
  }
}

float ActionValues::Mean(std::span<const float> atoms_of_action) const {
  if (model == ReturnModel::kCategorical) return CategoricalMean(support, atoms_of_action);
  const float sum = std::accumulate(atoms_of_action.begin(), atoms_of_action.end(), 0.0F);
  return sum / static_cast<float>(atoms);
}

void ActionValues::Means(std::span<const float> combined, std::span<float> values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = Mean(combined.subspan(i * atoms, atoms));
  }
}

int GreedyAction(std::span<const float> values, const std::uint8_t* mask) {
  int best = -1;
  for (int action = 0; action < static_cast<int>(values.size()); ++action) {
    if (mask != nullptr && mask[action] == 0) continue;
    if (best < 0 || values[action] > values[best]) best = action;
  }
  if (best < 0) throw InvalidArgument("an action mask allows none of {} actions", values.size());
  return best;
}

}  // namespace menger
