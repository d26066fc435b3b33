#pragma once

#include "menger/base/clock.h"
#include "menger/runtime/calls/worker_program.h"

namespace menger {

// Whether this machine can load a program whose first argument is its path, before it is started
// and ends without a word. Asks the loader that the program names, which does not run it; other
// loaders than the GNU C library's are not asked, nor is what has none.
//
// Throws FailedPrecondition where the program is for another kind of machine, or the loader or
// libraries are not there, which it names.
void CheckLoadable(const WorkerProgram& program, const Deadline& deadline);

}  // namespace menger
