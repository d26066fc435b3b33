// What docs/algorithms.md and docs/environments.md say of an algorithm and of an environment of
// one's own: the one learns in the other.
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>

#include "expect.h"
#include "menger/algorithms/actor_critic.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/losses.h"
#include "menger/algorithms/policy_gradient.h"
#include "menger/algorithms/slab_batch.h"
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

double MyLoss(std::span<const float> log_probabilities, std::span<const float> advantages,
              std::span<const float> weights, std::span<float> gradient) {
  return PolicyGradientLoss(log_probabilities, advantages, weights, gradient);
}

struct MyConfig {
  double discount = 0.99;
  double gae_lambda = 1;
  double entropy_coefficient = 0;
  double learning_rate = 0.01;
};

class MyAlgorithm final : public SlabAlgorithm {
 public:
  MyAlgorithm(const MyConfig& config, const AlgorithmContext& context)
      : config_(config), model_(context, config.discount, 0), batch_(model_), gradient_(model_) {}

  const PolicySpec& policy_spec() const override { return model_.policy_spec(); }
  std::unique_ptr<Policy> MakePolicy(PolicyMode mode, std::uint64_t seed) override {
    return model_.MakePolicy(mode, seed);
  }
  Publication& publication() override { return model_.publication(); }
  void Publish() override { model_.Publish(); }
  std::int64_t parameter_count() const override { return model_.network().manifest().size(); }
  Metrics Learn(std::span<Slab* const> slabs, UpdateRule& update, double progress) override;
  void Save(ArchiveWriter& archive) const override { model_.Save(archive.Scope("model")); }
  void Load(ArchiveReader& archive) override { model_.Load(archive.Scope("model")); }
  void LoadParameters(ArchiveReader& archive) override {
    model_.LoadParameters(archive.Scope("model"));
  }

 private:
  const MyConfig config_;
  mutable ActorCritic model_;
  SlabBatch batch_;
  PolicyGradient gradient_;
};

#include "blocks/algorithms/adding_one_1.declarations.inc"

// Episodes that reached the end in the last tenth of a hundred slabs, and in the first.
void LearnToWalk() {
  const EnvironmentEntry corridor = EntryOf<Corridor>();
  AlgorithmContext context{.environment = corridor.spec, .environments = 8, .seed = 1};
  context.network.hidden = {16};
  MyAlgorithm algorithm({}, context);
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
