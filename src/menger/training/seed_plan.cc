#include "menger/training/seed_plan.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {
namespace {

using Json = nlohmann::ordered_json;

std::string PlanFile(const std::string& folder) { return folder + "/seeds_plan.json"; }

}  // namespace

bool SeedPlan::IsIn(const std::string& folder) {
  std::error_code error;
  return std::filesystem::exists(PlanFile(folder), error);
}

SeedPlan SeedPlan::Read(const std::string& folder) {
  const std::string file = PlanFile(folder);
  const std::string text = ReadFile(file);
  try {
    const Json json = Json::parse(text);
    SeedPlan plan;
    json.at("seeds").get_to(plan.seeds);
    json.at("written_as").get_to(plan.written_as);
    json.at("assignments").get_to(plan.assignments);
    if (!json.at("device").is_null()) plan.device = json.at("device").get<std::string>();
    json.at("init_from").get_to(plan.init_from);
    if (plan.seeds.empty()) throw DataLoss("it names no seeds");
    return plan;
  } catch (const std::exception& error) {
    throw DataLoss("'{}' is not what --seeds writes: {}", file, error.what());
  }
}

void SeedPlan::Write(const std::string& folder) const {
  CreateFolders(folder);
  const Json json = {{"seeds", seeds},
                     {"written_as", written_as},
                     {"assignments", assignments},
                     {"device", device ? Json(*device) : Json(nullptr)},
                     {"init_from", init_from}};
  WriteFileAtomically(PlanFile(folder), json.dump(2) + "\n");
}

std::string SeedRecipe(const std::string& folder) { return folder + "/recipe.toml"; }

std::string SeedFolder(const std::string& folder, std::int64_t seed) {
  return folder + "/seed-" + std::to_string(seed);
}

void RemoveUnusedPlan(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove(PlanFile(folder), error);
  std::filesystem::remove(SeedRecipe(folder), error);
  std::filesystem::remove(folder, error);
}

}  // namespace menger
