#pragma once

#include <string>

namespace menger {

// A shared library of ours that the program opens only when what it makes is asked for, so that
// everybody else needs neither it nor the large library that it stands on.
struct Plugin {
  std::string file;      // "libmenger_torch.so": lies beside the program,
  std::string variable;  // unless this environment variable names another path.
  std::string symbol;    // The C function that it exports.
};

// The address of the plugin's function. The library is loaded at the first call and never unloaded:
// what it stands on may keep threads and static state. Throws FailedPrecondition, with the path and
// the system's reason, where it is missing or does not fit; add how to get it.
void* LoadPlugin(const Plugin& plugin);

}  // namespace menger
