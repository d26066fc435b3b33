#pragma once

#include <string>

#include "menger/environments/environment.h"

// What libmenger_mujoco.so exports, all of it: MuJoCo's environments. The caller owns the result,
// which needs the library to stay open. `model_folder` is empty for the models of the gymnasium
// package that the library was built beside.
//
// Throws NotFound for a name that is none of theirs, FailedPrecondition where the model cannot be
// read or the MuJoCo that is found at run time is another one than at build time.
extern "C" [[gnu::visibility("default")]] menger::EnvironmentEntry* menger_open_mujoco(
    const std::string* environment, const std::string* model_folder);
