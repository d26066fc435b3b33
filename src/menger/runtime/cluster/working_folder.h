#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "menger/runtime/cluster/program_manifest.h"

namespace menger {

// How large a folder may be that is shipped. (Ray's limit is 500 MiB; what is that large is data,
// which belongs into a shared file system or an object.)
struct WorkingFolderLimits {
  std::uint64_t bytes = std::uint64_t{64} << 20;
  std::size_t files = 2'000;
  std::size_t looked_at = 20'000;  // Of files and folders.
};

// The files below a folder that go to where its workers work, by name. Left out are
//   - folders whose names begin with '.' (.git, .venv), __pycache__ and node_modules;
//   - folders of Python's virtual environments, by whatever name (they have a pyvenv.cfg);
//   - `build` where it lies in the folder itself;
//   - what is no file, and links that lead out of the folder or to a folder they lie in.
// Other links become what they lead to.
//
// `folder` is absolute. Throws FailedPrecondition that says why it is not to be shipped: which
// limit it is beyond, or what cannot be read. What changes meanwhile may be the old or the new.
std::vector<ProgramFile> ListWorkingFolder(const std::string& folder,
                                           const WorkingFolderLimits& limits = {});

}  // namespace menger
