#pragma once

#include "menger/environments/environment.h"

namespace menger {

// Prints what becomes of each leaf of an environment's observation on its way to the network of a
// recipe of two lines, of its action, and which network that is.
void PrintUse(const EnvironmentSpec& spec);

}  // namespace menger
