#pragma once

#include "menger/environments/environment.h"
#include "menger/training/experiment.h"

namespace menger {

// Replaces what is `auto` in the experiment by values, so that it says what will run: defaults, and
// for those who collect, where there are some, short measurements whose outcome is logged with its
// reason. Does nothing to a configuration that is resolved already.
void Resolve(Experiment& experiment, const EnvironmentEntry& environment);

}  // namespace menger
