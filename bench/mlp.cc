// How fast are small networks? Inference, learning, the optimiser and distributions for the network
// of the CartPole recipes (two trunks, 64 and 64 units, 4 numbers in, 2 logits and a value out),
// and the costs inside: matrix products, tanh, waking threads. Times of two threads mean little
// while anything else runs.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "menger/base/worker_pool.h"
#include "menger/networks/distribution.h"
#include "menger/networks/kernels/kernels.h"
#include "menger/networks/mlp.h"
#include "menger/networks/update_rule.h"

namespace menger {
namespace {

NetworkSpec CartPoleSpec(int observation = 4, int policy = 2) {
  NetworkSpec spec;
  spec.observation = LeafSpec::Box("observation", DataType::kFloat32, {observation}, {-1}, {1});
  spec.heads = {{.name = "policy", .width = policy, .gain = 0.01}, {.name = "value", .width = 1}};
  return spec;
}

std::vector<float> SomeNumbers(std::size_t count) {
  Random random = Random::FromSeed(5);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.Normal());
  return numbers;
}

// Multiply-adds of one row through all layers.
double ProductsOfOneRow(const Network& network) {
  double products = 0;
  for (const ParameterEntry& entry : network.manifest().entries()) {
    if (entry.shape.size() == 2) products += static_cast<double>(entry.elements());
  }
  return products;
}

void CountFlops(benchmark::State& state, double products) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * products, benchmark::Counter::kIsIterationInvariantRate);
}

void CountRows(benchmark::State& state, int rows) {
  state.counters["ns/row"] = benchmark::Counter(
      1e-9 * rows, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

NetworkSpec NormalisedSpec() {
  NetworkSpec spec = CartPoleSpec();
  spec.options.layer_norm = true;
  return spec;
}

// Argument: rows.
void InferWith(benchmark::State& state, const NetworkSpec& spec) {
  const int rows = static_cast<int>(state.range(0));
  Random random = Random::FromSeed(1);
  MlpNetwork network(spec, random, 1);
  const auto x = SomeNumbers(rows * 4);
  for (auto _ : state) {
    benchmark::DoNotOptimize(network.Infer({.observations = x.data(), .rows = rows}).data());
  }
  CountFlops(state, rows * ProductsOfOneRow(network));
  CountRows(state, rows);
}
void Infer(benchmark::State& state) { InferWith(state, CartPoleSpec()); }
void InferNormalised(benchmark::State& state) { InferWith(state, NormalisedSpec()); }
BENCHMARK(InferNormalised)->Arg(1)->Arg(16)->Arg(256);
BENCHMARK(Infer)->Arg(1)->Arg(8)->Arg(16)->Arg(64)->Arg(256);

// One minibatch without its loss: parameters changed, Forward, Backward. Arguments: rows, threads.
void Learn(benchmark::State& state, const NetworkSpec& spec) {
  const int rows = static_cast<int>(state.range(0));
  Random random = Random::FromSeed(1);
  MlpNetwork network(spec, random, static_cast<int>(state.range(1)));
  const auto x = SomeNumbers(rows * spec.observation.elements());
  auto gradient = SomeNumbers(rows * 32);
  std::vector<Matrix> gradients;
  for (const HeadSpec& head : spec.heads) {
    gradients.push_back({gradient.data(), rows, head.width, head.width});
  }
  for (auto _ : state) {
    network.ParametersChanged();
    benchmark::DoNotOptimize(network.Forward({.observations = x.data(), .rows = rows}).data());
    network.Backward(gradients);
  }
  // Forward, the gradient of the weights, and that of all inputs but the observation.
  const double first = 2.0 * spec.observation.elements() * 64;
  CountFlops(state, rows * (3 * ProductsOfOneRow(network) - first));
}
void LearnCartPole(benchmark::State& state) { Learn(state, CartPoleSpec()); }
void LearnHumanoid(benchmark::State& state) { Learn(state, CartPoleSpec(348, 17)); }
void LearnNormalised(benchmark::State& state) { Learn(state, NormalisedSpec()); }
BENCHMARK(LearnNormalised)->ArgsProduct({{64, 256, 2048}, {1}});
BENCHMARK(LearnCartPole)->ArgsProduct({{64, 256, 2048}, {1}});
BENCHMARK(LearnCartPole)->ArgsProduct({{64, 256, 2048}, {2}})->UseRealTime();
BENCHMARK(LearnHumanoid)->Args({64, 1});

void Optimise(benchmark::State& state) {
  Random random = Random::FromSeed(1);
  MlpNetwork network(CartPoleSpec(), random, 1);
  const auto gradient = SomeNumbers(network.gradients().size());
  std::copy(gradient.begin(), gradient.end(), network.gradients().begin());
  OptimiserOptions options;
  options.kind = state.range(0) == 0 ? "adam" : "rmsprop";
  const auto rule = MakeLocalUpdateRule(options, network.manifest().size());
  for (auto _ : state) rule->Step(network, 1e-9);
  state.SetLabel(options.kind);
}
BENCHMARK(Optimise)->Arg(0)->Arg(1);

// Arguments: 0 sample, 1 evaluate, 2 gradient; logits (0: a Gaussian of one element).
void Distributions(benchmark::State& state) {
  constexpr int kRows = 64;
  const int width = static_cast<int>(state.range(1));
  const auto distribution =
      MakeDistribution(width > 0 ? LeafSpec::Discrete("action", width)
                                 : LeafSpec::Box("action", DataType::kFloat32, {1}, {-1}, {1}));
  auto numbers = SomeNumbers(kRows * 32);
  auto gradient = SomeNumbers(kRows * 32);
  std::vector<Matrix> outputs, gradients;
  for (const HeadSpec& head : distribution->heads()) {
    outputs.push_back({numbers.data(), kRows, head.width, Padded(head.width)});
    gradients.push_back({gradient.data(), kRows, head.width, Padded(head.width)});
  }
  const CounterRandom random(1, 2);
  std::vector<int> environments(kRows);
  for (int i = 0; i < kRows; ++i) environments[i] = i;
  std::vector<std::int64_t> actions(kRows);
  std::vector<float> log_p(kRows), entropy(kRows);
  std::int64_t step = 0;
  for (auto _ : state) {
    if (state.range(0) == 0) {
      distribution->Sample(outputs, nullptr, random, environments, ++step, actions.data(),
                           log_p.data());
    } else if (state.range(0) == 1) {
      distribution->Evaluate(outputs, nullptr, actions.data(), log_p.data(), entropy.data());
    } else {
      distribution->Gradient(outputs, nullptr, actions.data(), log_p, entropy, gradients);
    }
    benchmark::ClobberMemory();
  }
  CountRows(state, kRows);
}
BENCHMARK(Distributions)->ArgsProduct({{0, 1, 2}, {0, 2, 4, 18}});

// Arguments: rows, inner, columns of a product; 0 AVX2, 1 AVX-512.
void Multiply(benchmark::State& state) {
  if (state.range(3) == 1 && !HasAvx512()) return state.SkipWithError("no AVX-512 here");
  const Kernels& kernels = state.range(3) == 1 ? Avx512Kernels() : Avx2Kernels();
  const int rows = static_cast<int>(state.range(0));
  const int inner = static_cast<int>(state.range(1));
  const int columns = static_cast<int>(state.range(2));
  const auto a = SomeNumbers(rows * inner);
  const auto b = SomeNumbers(inner * Padded(columns));
  std::vector<float> c(rows * Padded(columns));
  const MatrixProduct product{.a = a.data(),
                              .a_row = inner,
                              .a_inner = 1,
                              .b = b.data(),
                              .b_row = Padded(columns),
                              .c = c.data(),
                              .c_row = Padded(columns),
                              .rows = rows,
                              .inner = inner,
                              .columns = columns};
  for (auto _ : state) {
    kernels.multiply(product);
    benchmark::ClobberMemory();
  }
  CountFlops(state, static_cast<double>(rows) * inner * columns);
  state.SetLabel(kernels.name);
}
BENCHMARK(Multiply)->ArgsProduct({{64}, {4, 64}, {64}, {0, 1}})->Args({64, 64, 2, 1});

void Tanh(benchmark::State& state) {
  auto values = SomeNumbers(4096);
  for (auto _ : state) {
    BestKernels().tanh(values.data(), 4096);
    benchmark::ClobberMemory();
  }
  CountRows(state, 4096);
}
BENCHMARK(Tanh);

// What it costs to hand out nothing.
void ForkAndJoin(benchmark::State& state) {
  WorkerPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) pool.Run(pool.threads(), [](int) {});
}
BENCHMARK(ForkAndJoin)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace menger
