#include "menger/networks/distribution.h"

#include <cmath>
#include <utility>

#include "menger/base/error.h"
#include "menger/networks/categorical.h"
#include "menger/networks/gaussian.h"

namespace menger {
namespace {

constexpr std::int64_t kMostChoices = 1 << 24;  // Logits of one row.

void CheckDataType(const LeafSpec& action, DataType dtype) {
  if (action.dtype == dtype) return;
  throw InvalidArgument("action '{}' is {}; a distribution gives {}", action.name,
                        NameOf(action.dtype), NameOf(dtype));
}

}  // namespace

std::unique_ptr<Distribution> MakeDistribution(const LeafSpec& action, double initial_log_std,
                                               ActionRange range) {
  if (action.elements() < 1) throw InvalidArgument("action '{}' has no elements", action.name);
  if (action.space == Space::kDiscrete || action.space == Space::kMultiDiscrete) {
    CheckDataType(action, DataType::kInt64);
    std::vector<int> counts;
    std::int64_t choices = 0;
    for (const std::int64_t count : action.counts) {
      choices += count;
      if (count < 1 || choices > kMostChoices) {
        throw InvalidArgument("action '{}' has an element of {} choices; it must be 1 to {} in all",
                              action.name, count, kMostChoices);
      }
      counts.push_back(static_cast<int>(count));
    }
    return std::make_unique<CategoricalDistribution>(std::move(counts));
  }
  if (action.space == Space::kBox) {
    CheckDataType(action, DataType::kFloat32);
    if (!std::isfinite(initial_log_std)) {
      throw InvalidArgument("the initial log standard deviation is {}; it must be finite",
                            initial_log_std);
    }
    return std::make_unique<GaussianDistribution>(static_cast<int>(action.elements()),
                                                  initial_log_std, std::move(range));
  }
  throw InvalidArgument(
      "action '{}' is neither Discrete, MultiDiscrete nor Box: no distribution fits it",
      action.name);
}

}  // namespace menger
