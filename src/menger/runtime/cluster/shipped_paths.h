#pragma once

#include <set>
#include <string>
#include <string_view>

#include "menger/runtime/cluster/program_manifest.h"

namespace menger {

// Where paths of a driver's folder lead on a node that has a copy of it: to the copy, if they name
// the folder itself or something of it that was shipped. Others stay as they are: what was left out
// (a virtual environment) is looked for where the driver has it.
class ShippedPaths {
 public:
  ShippedPaths(const ProgramManifest& manifest, std::string copy);

  // Of a path, or several with colons between them.
  std::string Here(std::string_view paths) const;

 private:
  std::string HereOne(std::string_view path) const;

  const std::string folder_;
  const std::string copy_;
  std::set<std::string, std::less<>> names_;  // Of files and the folders that these are in.
};

}  // namespace menger
