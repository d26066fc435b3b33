#pragma once

#include <string>
#include <vector>

namespace menger {

// A recipe: an experiment in TOML, under experiments/ or anywhere else.
struct Recipe {
  std::string name;  // The file's, without ".toml".
  std::string path;
  std::string description;  // Its first comment line.
};

// The recipes of the first folder that there is: experiments/ here, beside the program's build
// folder, or in the sources that it was built from. Sorted by name.
std::vector<Recipe> AllRecipes();

// A recipe's name, or the path of a file. Throws NotFound that names the nearest recipe.
Recipe FindRecipe(const std::string& name_or_file);

}  // namespace menger
