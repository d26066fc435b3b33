// What docs/algorithms.md and docs/environments.md say of an algorithm and of an environment of
// one's own: the one learns in the other.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "expect.h"
#include "menger/algorithms/actor_critic_algorithm.h"
#include "menger/algorithms/losses.h"
#include "menger/collectors/collector.h"
#include "menger/environments/simulator_group.h"
#include "menger/networks/update_rule.h"

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

namespace {

#include "blocks/algorithms/adding_one_1.declarations.inc"

// Episodes that reached the end in the last tenth of a hundred slabs, and in the first.
void LearnToWalk() {
  const EnvironmentEntry corridor = EntryOf<Corridor>();
  AlgorithmContext context{.environment = corridor.spec, .environments = 8, .seed = 1};
  context.network.hidden = {16};
  Spo algorithm({.common = {.learning_rate = 0.01, .entropy_coefficient = 0}}, context);
  const auto collector =
      MakeCollector({.environments = 8, .horizon = 64, .pin = false, .seed = 1}, corridor,
                    [&] { return algorithm.MakePolicy(PolicyMode::kSample, 2); });
  const auto update = MakeLocalUpdateRule({}, algorithm.parameter_count());
  std::size_t first = 0;
  std::size_t last = 0;
  for (int i = 0; i < 100; ++i) {
    Slab* const slab = &collector->Collect();
    for (const EpisodeResult& episode : collector->episodes()) {
      if (episode.episode_return == 1) ++(i < 10 ? first : last);
    }
    if (i < 90) last = 0;
    for (const auto& [name, value] : algorithm.Learn({&slab, 1}, *update, i / 100.0)) {
      Expect(std::isfinite(value), name);
    }
    algorithm.Publish();
  }
  Expect(last > 2 * first, "it learns to walk");
}

}  // namespace
}  // namespace menger

int main() { menger::LearnToWalk(); }
