// What docs/algorithms.md and docs/environments.md say of an algorithm and of an environment of
// one's own: `menger train` trains the one in the other, by a recipe of two lines.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "expect.h"
#include "menger/algorithms/algorithm_entries.h"
#include "menger/algorithms/published_model.h"
#include "menger/base/files.h"
#include "menger/cli/commands.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "menger/environments/simulator_group.h"

#include "blocks/algorithms/acting_in_a_way_of_one_s_own_1.declarations.inc"
#include "blocks/algorithms/adding_one_1.declarations.inc"
#include "blocks/algorithms/adding_one_2.declarations.inc"

namespace menger {

#include "blocks/environments/adding_a_native_one_1.declarations.inc"

EnvironmentSpec Corridor::Spec() {
  return {.name = "Corridor-v0",
          .observation =
              menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {1}, {-10}, {2})}),
          .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
          .max_episode_steps = 100,
          .reward_threshold = 1,
          .description = "Walk right to the end."};
}

// In place of the library's: what all_algorithms.cc has after the line was added.
std::vector<std::unique_ptr<AlgorithmEntry>> AllAlgorithms() {
  std::vector<std::unique_ptr<AlgorithmEntry>> entries;
#include "blocks/algorithms/adding_one_2.statements.inc"
  return entries;
}

namespace {

EnvironmentCatalog Environments() {
  EnvironmentCatalog environments = NativeEnvironments();
  environments.Add(EntryOf<Corridor>());
  return environments;
}

// The mean return of the final evaluation.
double Train(const std::string& folder, const std::string& environment, const char* steps) {
  const std::string recipe = folder + "/" + environment + ".toml";
  const std::string run = folder + "/" + environment;
  WriteFileAtomically(recipe, "environment = \"" + environment + "\"\nalgorithm = \"spo\"\n");
  const std::vector<const char*> arguments = {"menger", "train",   recipe.c_str(), "--set",
                                              steps,    "--quiet", "--out",        run.c_str()};
  const int status =
      RunProgram(static_cast<int>(arguments.size()), arguments.data(), Environments());
  Expect(status == 0, "`menger train` trains the algorithm on " + environment);
  const auto summary = nlohmann::json::parse(ReadFile(run + "/summary.json"));
  Expect(std::isfinite(summary.at("episode_return_mean").get<double>()), "episodes end");
  return summary.at("evaluation").at("return_mean");
}

void LearnToWalkAndToBalance() {
  std::string folder = std::filesystem::temp_directory_path() / "own_algorithm_XXXXXX";
  Expect(mkdtemp(folder.data()) != nullptr, "a folder can be made");
  Expect(Train(folder, "Corridor-v0", "steps=40000") == 1, "it learns to walk to the end");
  // Chance balances for 22 steps.
  Expect(Train(folder, "CartPole-v1", "steps=20000") > 100, "it learns to balance");
  std::filesystem::remove_all(folder);
}

// The share of action 1 where its value is higher by one, as a policy of that temperature draws it.
double ShareOfTheBetter(float temperature, PolicyMode mode) {
  const EnvironmentEntry corridor = EntryOf<Corridor>();
  AlgorithmContext context{.environment = corridor.spec, .environments = 64, .seed = 1};
  context.network.hidden = {};
  const BoltzmannPolicies policies(context);
  PublishedModel model(policies.model(), /*threads=*/1, temperature);
  const std::span<float> parameters = model.network().parameters();
  std::ranges::fill(parameters, 0.0F);
  parameters[policies.manifest().Find("action_value/0/bias")->offset + 1] = 1;
  model.network().ParametersChanged();
  model.Publish(temperature);
  const auto collector =
      MakeCollector({.environments = 64, .horizon = 64, .pin = false, .seed = 1}, corridor,
                    [&] { return policies.Make(model.publication(), mode, 2); });
  const Slab& slab = collector->Collect();
  double chosen = 0;
  for (int row = 0; row < slab.horizon(); ++row) {
    for (int i = 0; i < 64; ++i) chosen += slab.action<std::int64_t>(0, row)[i] == 1 ? 1 : 0;
  }
  return chosen / (64 * slab.horizon());
}

// 1 / (1 + exp(-1 / temperature)).
void DrawByTemperature() {
  Expect(std::abs(ShareOfTheBetter(1, PolicyMode::kSample) - 0.731) < 0.03, "as exp(1) is to 1");
  Expect(ShareOfTheBetter(0.01F, PolicyMode::kSample) == 1, "the cold are sure");
  Expect(ShareOfTheBetter(1, PolicyMode::kGreedy) == 1, "the greedy are");
}

}  // namespace
}  // namespace menger

// With arguments it is `menger` with that algorithm.
int main(int argc, char** argv) {
  if (argc > 1) return menger::RunProgram(argc, argv, menger::Environments());
  menger::LearnToWalkAndToBalance();
  menger::DrawByTemperature();
}
