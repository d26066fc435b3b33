// Where does the time of one PPO iteration go? Trains with the hyper-parameters of RL Baselines3
// Zoo out of the public pieces that Ppo itself is made of, with a clock around each, and checks the
// sum against Ppo's own loop without clocks.
//
//   bench_ppo_breakdown [--task cartpole lunarlander] [--iterations 200] [--threads 1 2]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/actor_critic.h"
#include "menger/algorithms/losses.h"
#include "menger/algorithms/policy_gradient.h"
#include "menger/algorithms/ppo.h"
#include "menger/algorithms/slab_batch.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "menger/networks/update_rule.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr std::uint64_t kSeed = 1;

struct Task {
  std::string environment;
  int environments = 0;
  int horizon = 0;
  PpoConfig ppo;
};

// RL Baselines3 Zoo's settings; schedules are left out, they cost nothing.
Task TaskNamed(const std::string& name) {
  if (name == "cartpole") {
    return {.environment = "CartPole-v1",
            .environments = 8,
            .horizon = 32,
            .ppo = {.common = {.discount = 0.98,
                               .gae_lambda = 0.8,
                               .learning_rate = 1e-3,
                               .entropy_coefficient = 0},
                    .epochs = 20,
                    .minibatch_size = 256}};
  }
  if (name == "lunarlander") {
    return {.environment = "LunarLander-v3",
            .environments = 16,
            .horizon = 1024,
            .ppo = {.common = {.discount = 0.999,
                               .gae_lambda = 0.98,
                               .learning_rate = 3e-4,
                               .entropy_coefficient = 0.01},
                    .epochs = 4,
                    .minibatch_size = 64}};
  }
  throw InvalidArgument("there is no task '{}'; take cartpole or lunarlander", name);
}

enum Phase {
  kSimulation,
  kInference,
  kCollecting,
  kPreparing,
  kShuffling,
  kGathering,
  kForward,
  kProbabilities,
  kLosses,
  kOutputGradients,
  kBackward,
  kOptimiser,
  kPublishing,
  kPhases
};
constexpr std::array<const char*, kPhases> kPhaseNames = {"simulation",
                                                          "inference",
                                                          "rest of collection",
                                                          "values of what followed, advantages",
                                                          "shuffling",
                                                          "gathering minibatches",
                                                          "forward",
                                                          "log-probabilities, entropies",
                                                          "losses, advantage normalisation",
                                                          "gradient of the outputs",
                                                          "backward",
                                                          "optimiser (norm, clip, Adam)",
                                                          "publishing"};

// Gives the time since its last call to a phase.
class PhaseTimer {
 public:
  void Charge(Phase phase) {
    const std::int64_t now = MonotonicNanoseconds();
    nanoseconds_[phase] += now - last_;
    last_ = now;
  }
  void Move(Phase from, Phase to, double seconds) {
    nanoseconds_[from] -= static_cast<std::int64_t>(seconds * 1e9);
    nanoseconds_[to] += static_cast<std::int64_t>(seconds * 1e9);
  }
  void Clear() {
    nanoseconds_ = {};
    last_ = MonotonicNanoseconds();
  }
  double seconds(int phase) const { return static_cast<double>(nanoseconds_[phase]) * 1e-9; }
  double total() const {
    double sum = 0;
    for (int phase = 0; phase < kPhases; ++phase) sum += seconds(phase);
    return sum;
  }

 private:
  std::array<std::int64_t, kPhases> nanoseconds_ = {};
  std::int64_t last_ = MonotonicNanoseconds();
};

AlgorithmContext ContextOf(const Task& task, const EnvironmentEntry& environment, int threads) {
  return {.environment = environment.spec,
          .environments = task.environments,
          .seed = kSeed,
          .threads = threads};
}

CollectorPlan PlanOf(const Task& task) {
  return {.environments = task.environments, .horizon = task.horizon, .seed = kSeed};
}

// PPO with a clock around each piece.
class TimedPpo {
 public:
  TimedPpo(const Task& task, const EnvironmentEntry& environment, int threads)
      : config_(task.ppo),
        model_(ContextOf(task, environment, threads), config_.common.discount,
               config_.common.initial_log_std),
        batch_(model_),
        update_(MakeLocalUpdateRule({}, model_.network().manifest().size())),
        shuffle_(Random::FromSeed(kSeed)) {
    model_.published().Publish();
    collector_ = MakeCollector(PlanOf(task), environment, [this] {
      return model_.policies().Make(model_.published().publication(), PolicyMode::kSample, kSeed);
    });
  }

  PhaseTimer& timer() { return timer_; }

  void Iterate() {
    const CollectorTimes before = collector_->times();
    Slab* const slab = &collector_->Collect();
    timer_.Charge(kCollecting);
    const CollectorTimes after = collector_->times();
    timer_.Move(kCollecting, kSimulation, after.simulation - before.simulation);
    timer_.Move(kCollecting, kInference, after.inference - before.inference);

    batch_.Prepare({&slab, 1}, *update_);
    batch_.EstimateAdvantages(config_.common.discount, config_.common.gae_lambda);
    timer_.Charge(kPreparing);
    for (std::int64_t epoch = 0; epoch < config_.epochs; ++epoch) Epoch();
    model_.published().Publish();
    timer_.Charge(kPublishing);
  }

 private:
  void Epoch() {
    order_.assign(batch_.valid_rows().begin(), batch_.valid_rows().end());
    shuffle_.Shuffle(std::span<std::int32_t>(order_));
    timer_.Charge(kShuffling);
    const auto size = static_cast<std::size_t>(config_.minibatch_size);
    for (std::size_t begin = 0; begin < order_.size(); begin += size) {
      const std::size_t count = std::min(size, order_.size() - begin);
      Learn(batch_.GatherRows(std::span<const std::int32_t>(order_).subspan(begin, count)));
    }
  }

  void Learn(Minibatch minibatch) {
    timer_.Charge(kGathering);
    const auto outputs = model_.network().Forward(minibatch.input);
    timer_.Charge(kForward);

    minibatch.Weigh(*update_);
    const int rows = minibatch.rows;
    for (auto* const floats : {&log_probabilities_, &entropies_, &values_, &policy_gradient_,
                               &entropy_gradient_, &value_gradient_}) {
      floats->resize(rows);
    }
    const auto policy_outputs = outputs.first(outputs.size() - 1);
    model_.distribution().Evaluate(policy_outputs, minibatch.mask, minibatch.actions,
                                   log_probabilities_.data(), entropies_.data());
    timer_.Charge(kProbabilities);

    for (int row = 0; row < rows; ++row) values_[row] = *outputs.back().row(row);
    NormaliseAdvantages(minibatch.advantages, minibatch.weights, *update_);
    ClippedSurrogate(log_probabilities_, minibatch.log_probabilities, minibatch.advantages,
                     minibatch.weights, config_.clip, policy_gradient_);
    ClippedValueLoss(values_, minibatch.values, minibatch.returns, minibatch.weights,
                     config_.value_clip, config_.common.value_coefficient, value_gradient_);
    for (int row = 0; row < rows; ++row) {
      entropy_gradient_[row] =
          -static_cast<float>(config_.common.entropy_coefficient) * minibatch.weights[row];
    }
    timer_.Charge(kLosses);

    ShapeGradients(outputs);
    const std::span<const Matrix> gradients = gradients_;
    model_.distribution().Gradient(policy_outputs, minibatch.mask, minibatch.actions,
                                   policy_gradient_, entropy_gradient_,
                                   gradients.first(gradients.size() - 1));
    std::copy(value_gradient_.begin(), value_gradient_.end(), gradients.back().data);
    timer_.Charge(kOutputGradients);

    model_.network().Backward(gradients);
    timer_.Charge(kBackward);
    update_->Step(model_.network(), config_.common.learning_rate);
    timer_.Charge(kOptimiser);
  }

  void ShapeGradients(std::span<const Matrix> outputs) {
    std::size_t floats = 0;
    for (const Matrix& output : outputs) {
      floats += static_cast<std::size_t>(output.rows) * output.columns;
    }
    storage_.resize(floats);
    gradients_.clear();
    float* next = storage_.data();
    for (const Matrix& output : outputs) {
      gradients_.push_back({next, output.rows, output.columns, output.columns});
      next += static_cast<std::size_t>(output.rows) * output.columns;
    }
  }

  const PpoConfig config_;
  ActorCritic model_;
  SlabBatch batch_;
  std::unique_ptr<UpdateRule> update_;
  std::unique_ptr<Collector> collector_;
  Random shuffle_;
  PhaseTimer timer_;
  std::vector<std::int32_t> order_;
  std::vector<float> log_probabilities_, entropies_, values_;
  std::vector<float> policy_gradient_, entropy_gradient_, value_gradient_, storage_;
  std::vector<Matrix> gradients_;
};

// Seconds of one iteration of Ppo itself.
double SecondsWithoutClocks(const Task& task, const EnvironmentEntry& environment, int threads,
                            int iterations) {
  Ppo ppo(task.ppo, ContextOf(task, environment, threads));
  const auto update = MakeLocalUpdateRule({}, ppo.parameter_count());
  ppo.Publish();
  const auto collector = MakeCollector(PlanOf(task), environment,
                                       [&] { return ppo.MakePolicy(PolicyMode::kSample, kSeed); });
  Stopwatch watch;
  for (int i = -1; i < iterations; ++i) {
    if (i == 0) watch.Restart();  // The first iteration allocates.
    Slab* const slab = &collector->Collect();
    ppo.Learn({&slab, 1}, *update, /*progress=*/0);
    ppo.Publish();
  }
  return watch.seconds() / iterations;
}

void Print(const Task& task, int threads, int iterations, const PhaseTimer& timer, double whole) {
  const double rows = static_cast<double>(task.environments) * task.horizon;
  const double total = timer.total();
  fmt::print("\n{}, {} x {} steps, {} epochs, minibatches of {}, learning on {} thread{}\n\n",
             task.environment, task.environments, task.horizon, task.ppo.epochs,
             task.ppo.minibatch_size, threads, threads == 1 ? "" : "s");
  fmt::print("| part | us an iteration | share |\n| --- | ---: | ---: |\n");
  for (int phase = 0; phase < kPhases; ++phase) {
    fmt::print("| {} | {:.1f} | {:.1f}% |\n", kPhaseNames[phase],
               timer.seconds(phase) / iterations * 1e6, timer.seconds(phase) / total * 100);
  }
  fmt::print("| sum | {:.1f} | {:.0f} steps/s |\n", total / iterations * 1e6,
             rows * iterations / total);
  fmt::print("| Ppo itself, without clocks | {:.1f} | {:.0f} steps/s |\n", whole * 1e6,
             rows / whole);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  std::vector<std::string> tasks = {"cartpole", "lunarlander"};
  std::vector<int> threads = {1, 2};
  int iterations = 200;  // Of CartPole; LunarLander's are 64 times as long, and there are fewer.
  CLI::App app(
      "Measures where the time of one PPO iteration goes, at RL Baselines3 Zoo's settings.");
  app.add_option("--task", tasks, "cartpole, lunarlander");
  app.add_option("--iterations", iterations, "of CartPole; an eighth for LunarLander");
  app.add_option("--threads", threads, "that learn");
  CLI11_PARSE(app, argc, argv);
  const EnvironmentCatalog catalog = NativeEnvironments();
  for (const std::string& name : tasks) {
    const Task task = TaskNamed(name);
    const EnvironmentEntry& environment = catalog.Find(task.environment);
    const int count = std::max(1, name == "cartpole" ? iterations : iterations / 8);
    for (const int each : threads) {
      TimedPpo ppo(task, environment, each);
      ppo.Iterate();  // Allocates.
      ppo.timer().Clear();
      for (int i = 0; i < count; ++i) ppo.Iterate();
      Print(task, each, count, ppo.timer(), SecondsWithoutClocks(task, environment, each, count));
    }
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_ppo_breakdown", menger::bench::Main, argc, argv);
}
