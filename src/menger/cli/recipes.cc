#include "menger/cli/recipes.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Folders() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  std::vector<fs::path> folders = {"experiments"};
  if (!error) folders.push_back(program.parent_path() / ".." / ".." / "experiments");
  folders.emplace_back(MENGER_RECIPE_FOLDER);
  return folders;
}

Recipe RecipeAt(const fs::path& path) {
  std::istringstream text(ReadFile(path.string()));
  std::string line;
  std::getline(text, line);
  line.erase(0, std::min(line.find_first_not_of("# "), line.size()));
  return {
      .name = path.stem().string(), .path = path.lexically_normal().string(), .description = line};
}

}  // namespace

std::vector<Recipe> AllRecipes() {
  for (const fs::path& folder : Folders()) {
    std::error_code error;
    std::vector<Recipe> recipes;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".toml") recipes.push_back(RecipeAt(entry.path()));
    }
    std::sort(recipes.begin(), recipes.end(),
              [](const Recipe& a, const Recipe& b) { return a.name < b.name; });
    if (!recipes.empty()) return recipes;
  }
  return {};
}

std::vector<std::string> RecipesFor(std::string_view environment, std::string_view algorithm) {
  std::vector<std::string> first;
  std::vector<std::string> others;
  for (const Recipe& recipe : AllRecipes()) {
    const std::string text = ReadFile(recipe.path);
    const auto names = [&text](std::string_view option, std::string_view value) {
      return text.find(fmt::format("\n{} = \"{}\"\n", option, value)) != std::string::npos;
    };
    if (!names("environment", environment)) continue;
    (names("algorithm", algorithm) ? first : others).push_back(recipe.name);
  }
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

Recipe FindRecipe(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const Recipe& recipe : AllRecipes()) {
    if (recipe.name == name_or_file) return recipe;
    names.push_back(recipe.name);
  }
  std::error_code error;
  if (fs::is_regular_file(name_or_file, error)) return RecipeAt(name_or_file);
  if (name_or_file.find('/') != std::string::npos || name_or_file.ends_with(".toml")) {
    throw NotFound("there is no recipe file '{}'", name_or_file);
  }
  throw NotFound("there is no recipe '{}'{}; there are: {}", name_or_file,
                 DidYouMean(name_or_file, names), fmt::join(names, ", "));
}

}  // namespace menger
