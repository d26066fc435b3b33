#pragma once

#include <CLI/CLI.hpp>

#include "menger/runtime/calls/runtime_options.h"
#include "menger/runtime/cluster/cluster_access.h"

namespace menger {

// Options of commands that speak with a cluster. What they do not say its variables do (AccessOf).
void AddTlsOptions(CLI::App& command, RuntimeOptions& access);

// Where the cluster is. Throws InvalidArgument where nobody says that.
ClusterAccess ClusterOf(const RuntimeOptions& access);

}  // namespace menger
