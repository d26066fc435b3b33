#pragma once

// Tasks, actors and objects, for programs: docs/runtime.md.
#include "menger/runtime/calls/runtime.h"
