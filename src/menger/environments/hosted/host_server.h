#pragma once

#include <functional>
#include <string>

#include "menger/environments/environment.h"

namespace menger {

// Turns `request` (the JSON text that the environment was opened with) into an entry. Throws where
// there is no such environment.
using HostedEntryFactory = std::function<EnvironmentEntry(const std::string& request)>;

// The main function of a host written in C++: serves one EnvironmentGroup, made by the entry, on
// the slab that menger shares, until it is told to close. Returns the exit status.
//
//     int main(int argc, char** argv) {
//       return menger::ServeGroup(argc, argv, [](const std::string& request) { return ...; });
//     }
//
//   HOST ... --control N          as menger starts it: serves the protocol of protocol.h.
//   HOST ... --describe REQUEST   for people: prints the spec as JSON.
//
// Other arguments are the caller's business. A resumable group is saved and loaded whole. Errors of
// the group and warnings that are logged go to menger, which reports them as its own. One call a
// process.
int ServeGroup(int argc, char** argv, const HostedEntryFactory& open);

}  // namespace menger
