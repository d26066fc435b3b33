#pragma once

#include <string>
#include <string_view>
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

// The names of those that are for that environment; such with the algorithm first.
std::vector<std::string> RecipesFor(std::string_view environment, std::string_view algorithm);

// A recipe's name, or the path of a file. Throws NotFound that names the nearest recipe.
Recipe FindRecipe(const std::string& name_or_file);

}  // namespace menger
