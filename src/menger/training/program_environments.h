#pragma once

#include "menger/environments/catalog.h"

namespace menger {

// All environments of the program: its own, Atari games, MuJoCo's tasks, and whatever looks like a
// name of Gymnasium's.
EnvironmentCatalog ProgramEnvironments();

}  // namespace menger
