#pragma once

#include "menger/runtime/calls/worker_identity.h"

namespace menger {

// What a worker process does instead of its program's own main: calls, until its node ends. Returns
// the exit status.
int WorkerMain();

}  // namespace menger
