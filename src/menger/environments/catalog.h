#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "menger/environments/environment.h"

namespace menger {

// The environments that a program can make, by name. Composed in `main`; immutable after that, so
// any thread may read.
class EnvironmentCatalog {
 public:
  void Add(EnvironmentEntry entry);  // Throws InvalidArgument on a name that is taken.

  // Throws NotFound that names the nearest known name.
  const EnvironmentEntry& Find(std::string_view name) const;
  const std::vector<EnvironmentEntry>& entries() const { return entries_; }

 private:
  std::vector<EnvironmentEntry> entries_;
};

// All environments written in C++: classic control and Box2D.
EnvironmentCatalog NativeEnvironments();

}  // namespace menger
