// A robot-control loop: every tick a simulator, which is an actor, takes an action and gives an
// observation, and a policy, which is a task, makes the next action of that. How many actions come
// too late? (Moritz et al. 2018, "Ray", section 5.2, ask the same.)
//
//   bench_runtime_control [--ticks MILLISECONDS...] [--seconds S]
//
// The sizes are those of Humanoid; the policy has two hidden layers of 64 and reads its parameters
// where they lie in the object store. The load beside it is the caller's: bench/runtime.py.
// bench/peers/ray_control.py is the same with Ray.

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"
#include "program.h"
#include "rates.h"

namespace menger::bench {
namespace {

constexpr std::size_t kObservations = 376;
constexpr std::size_t kActions = 17;
constexpr std::size_t kHidden = 64;
using Observation = std::array<float, kObservations>;
using Action = std::array<float, kActions>;

class Simulator {
 public:
  Observation Step(const Action& action) {
    for (std::size_t i = 0; i < kObservations; ++i) {
      state_[i] = 0.99F * state_[i] + 0.01F * action[i % kActions];
    }
    return state_;
  }

 private:
  Observation state_{};
};

// tanh(inputs x weights), `weights` row by row; takes them off the front of `parameters`.
template <std::size_t kOut, std::size_t kIn>
std::array<float, kOut> Layer(std::span<const float>& parameters,
                              const std::array<float, kIn>& inputs) {
  std::array<float, kOut> outputs{};
  for (std::size_t i = 0; i < kIn; ++i) {
    for (std::size_t j = 0; j < kOut; ++j) outputs[j] += inputs[i] * parameters[i * kOut + j];
  }
  for (float& output : outputs) output = std::tanh(output);
  parameters = parameters.subspan(kIn * kOut);
  return outputs;
}

Action Policy(std::span<const float> parameters, const Observation& observation) {
  const auto first = Layer<kHidden>(parameters, observation);
  const auto second = Layer<kHidden>(parameters, first);
  return Layer<kActions>(parameters, second);
}

void Measure(Runtime& runtime, double tick_ms, double seconds) {
  const auto tick = std::chrono::nanoseconds(static_cast<std::int64_t>(tick_ms * 1e6));
  const auto ticks = static_cast<std::int64_t>(seconds * 1e3 / tick_ms);
  const auto simulator = runtime.CreateActor<Simulator>({});
  const auto parameters = runtime.Put(
      std::vector<float>(kObservations * kHidden + kHidden * kHidden + kHidden * kActions, 0.01F));
  Action action{};
  const auto act = [&] {
    const auto observation = simulator.Call<&Simulator::Step>(action);
    action = runtime.Get(runtime.Call<Policy>(parameters, observation));
  };
  for (int i = 0; i < 100; ++i) act();  // Workers start, and have what they need.

  std::int64_t missed = 0;
  std::vector<double> times;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < ticks; ++i) {
    const auto begin = start + i * tick;
    std::this_thread::sleep_until(begin);
    act();
    const auto took = std::chrono::steady_clock::now() - begin;
    times.push_back(static_cast<double>(std::chrono::nanoseconds(took).count()));
    // What is late keeps those after it from beginning: they are missed as well.
    const std::int64_t late = took / tick;
    missed += late;
    i += late;
  }
  PrintResult(fmt::format(
      R"("tick_ms": {}, "ticks": {}, "missed_share": {:.3g}, "p50_us": {:.4g}, "p99_us": {:.4g}, "max_us": {:.4g})",
      tick_ms, ticks, static_cast<double>(missed) / static_cast<double>(ticks),
      Percentile(times, 0.5) * 1e-3, Percentile(times, 0.99) * 1e-3, Percentile(times, 1) * 1e-3));
}

int Main(int argc, char** argv) {
  std::vector<double> ticks = {1, 3, 10, 30};
  double seconds = 10;
  CLI::App app("Measures how often a control loop misses its deadline.");
  app.add_option("--ticks", ticks, "milliseconds");
  app.add_option("--seconds", seconds, "of each tick");
  CLI11_PARSE(app, argc, argv);
  for (const double tick : ticks) {
    Runtime runtime;
    Measure(runtime, tick, seconds);
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_runtime_control", menger::bench::Main, argc, argv);
}
