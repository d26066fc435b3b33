#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace menger {

// What `--seeds` was asked for, kept in the folder of its runs, so that all of them can go on
// together: a seed that was stopped from its newest checkpoint, one that had not begun from the
// beginning.
//
//     recipe.toml         the recipe as it was
//     seeds_plan.json     this
//     seed-<seed>/        the run folders
//     seeds.json          the outcomes, once all have ended
struct SeedPlan {
  std::vector<std::int64_t> seeds;
  std::string written_as;                // The recipe's path when it was copied.
  std::vector<std::string> assignments;  // Of --set.
  std::optional<std::string> device;
  std::string init_from;

  // Whether such a plan is in a folder.
  static bool IsIn(const std::string& folder);

  // Throws DataLoss where the file is not what Write has written.
  static SeedPlan Read(const std::string& folder);

  void Write(const std::string& folder) const;  // Makes the folder where there is none.
};

std::string SeedRecipe(const std::string& folder);  // <folder>/recipe.toml
std::string SeedFolder(const std::string& folder, std::int64_t seed);

// Removes plan and recipe, and the folder unless somebody has put something into it: where nothing
// was trained.
void RemoveUnusedPlan(const std::string& folder);

}  // namespace menger
