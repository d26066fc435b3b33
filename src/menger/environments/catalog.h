#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "menger/environments/environment.h"
#include "menger/environments/family.h"

namespace menger {

// The environments that a program can make, by name: entries, and families that make more on
// demand. Composed in `main`; immutable after that, so any thread may read.
class EnvironmentCatalog {
 public:
  using FamilyFactory = std::function<std::unique_ptr<EnvironmentFamily>()>;

  void Add(EnvironmentEntry entry);  // Throws InvalidArgument on a name that is taken.
  void AddFamily(FamilyFactory factory);

  // Throws NotFound that names the nearest known name.
  const EnvironmentEntry& Find(std::string_view name) const;
  const std::vector<EnvironmentEntry>& entries() const { return entries_; }

  // A family of one's own, with default options: the first one added that serves the name; null if
  // it is an entry's, or nobody's.
  std::unique_ptr<EnvironmentFamily> FamilyOf(std::string_view name) const;
  std::vector<std::unique_ptr<EnvironmentFamily>> Families() const;  // One of each.

  // Whatever has the name: made by `family`, a FamilyOf(name) with its options set, or an entry.
  // Errors name the nearest known name. Without a family: with default options.
  EnvironmentEntry Open(const std::string& name, EnvironmentUse use,
                        const EnvironmentFamily* family) const;
  EnvironmentEntry Open(const std::string& name, EnvironmentUse use) const;

 private:
  void RefuseMisspelt(const std::string& name) const;
  bool Contains(std::string_view name) const;
  std::vector<std::string> KnownNames() const;

  std::vector<EnvironmentEntry> entries_;
  std::vector<FamilyFactory> families_;
};

// All environments written in C++: classic control and Box2D.
EnvironmentCatalog NativeEnvironments();

}  // namespace menger
