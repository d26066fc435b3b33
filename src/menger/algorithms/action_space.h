#pragma once

#include "menger/environments/environment.h"
#include "menger/tensor/spec.h"

namespace menger {

// What algorithms for a single decision a step ask of an environment. Stateless; any thread.

// The one leaf of the environment's actions. Throws InvalidArgument where there are several.
const LeafSpec& OnlyAction(const EnvironmentSpec& environment);

// Masks are read by the choice, so one of another size would be read beyond its end: throws
// InvalidArgument unless observation leaf `mask_leaf` (negative: none) has a uint8 flag for each
// choice of the environment's only action.
void CheckMask(const EnvironmentSpec& environment, int mask_leaf);

}  // namespace menger
