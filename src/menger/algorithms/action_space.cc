#include "menger/algorithms/action_space.h"

#include <cstdint>

#include "menger/base/error.h"

namespace menger {

const LeafSpec& OnlyAction(const EnvironmentSpec& environment) {
  if (environment.action.size() != 1) {
    throw InvalidArgument("{} has {} action leaves; this algorithm takes one", environment.name,
                          environment.action.size());
  }
  return environment.action[0];
}

void CheckMask(const EnvironmentSpec& environment, int mask_leaf) {
  if (mask_leaf < 0) return;
  const LeafSpec& action = OnlyAction(environment);
  std::int64_t choices = 0;
  for (const std::int64_t count : action.counts) choices += count;
  const LeafSpec& mask = environment.observation[mask_leaf];
  if (mask.dtype == DataType::kUint8 && mask.elements() == choices) return;
  throw InvalidArgument(
      "{}: observation '{}' has {} elements of {}; it must have one uint8 flag for each of the {} "
      "choices of action '{}'",
      environment.name, mask.name, mask.elements(), NameOf(mask.dtype), choices, action.name);
}

}  // namespace menger
