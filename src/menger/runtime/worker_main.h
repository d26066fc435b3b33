#pragma once

// What turns a process into a worker, for programs: docs/runtime.md.
#include "menger/runtime/worker/worker_main.h"
