#pragma once

#include "menger/runtime/calls/runtime_options.h"

namespace menger {

// Tells a line of a worker as the options say: on_line, or standard error.
void ShowLine(const RuntimeOptions& options, const WorkerLine& line);

}  // namespace menger
