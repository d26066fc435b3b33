// How many updates a second do SAC and TD3 make, and how much of it is matrix products? Learn
// itself, on a batch of made-up transitions, beside the bare product of two 256x256 matrices by the
// same kernel on as many threads. Both take turns in windows of a twentieth of a second, so that a
// busy machine slows both alike; rates are medians of the windows, the share is the median of what
// each pair of neighbours gives.
//
//   bench_pathwise_updates [--algorithms sac td3] [--shapes halfcheetah pendulum]
//                          [--threads 1 2] [--seconds 4]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/sac.h"
#include "menger/algorithms/td3.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/base/shared_worker_pool.h"
#include "menger/base/worker_pool.h"
#include "menger/networks/aligned_floats.h"
#include "menger/networks/kernels/kernels.h"
#include "menger/networks/update_rule.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kRows = 256;
constexpr double kWindow = 0.05;  // Seconds.

struct Shapes {
  std::string name;
  int observation = 0;
  int action = 0;
  int hidden = 0;  // Units of each of two layers, ReLU.
};

Shapes ShapesNamed(const std::string& name) {
  if (name == "halfcheetah") return {"HalfCheetah, 256-256", 17, 6, 256};
  if (name == "pendulum") return {"Pendulum, 64-64", 3, 1, 64};
  throw InvalidArgument("there are no shapes '{}'; take halfcheetah or pendulum", name);
}

AlgorithmContext ContextOf(const Shapes& shapes, const SharedWorkerPool& threads) {
  AlgorithmContext context{
      .environment = {.name = "Any",
                      .observation = Spec({LeafSpec::Box("observation", DataType::kFloat32,
                                                         {shapes.observation}, {-1}, {1})}),
                      .action = Spec({LeafSpec::Box("action", DataType::kFloat32, {shapes.action},
                                                    {-1}, {1})})},
      .seed = 1,
      .threads = threads};
  context.network.hidden = {shapes.hidden, shapes.hidden};
  context.network.activation = "relu";
  return context;
}

// Multiply-adds of one row through one network.
struct Products {
  double first = 0;  // Of the layer that reads the input,
  double all = 0;    // and of all layers.
};

Products ProductsOf(int inputs, int hidden, int outputs) {
  const double first = static_cast<double>(inputs) * hidden;
  return {first,
          first + static_cast<double>(hidden) * hidden + static_cast<double>(hidden) * outputs};
}

// What an update needs, two for each multiply-add of a row: its forward passes, d/d(parameters),
// which takes as many products, and d/d(inputs), which takes as many again, or without the first
// layer's where nobody asks what the inputs should have been.
//
// Both: next action, its value by both target critics, both critics forward and both gradients of
// theirs. The actor's step is actor forward, critics forward and back to their inputs, and both
// gradients of the actor; SAC makes it in every update with both critics, TD3 in one of two with
// the first of them.
double FlopsOfUpdate(const std::string& algorithm, const Shapes& shapes) {
  const bool sac = algorithm == "sac";
  const Products actor =
      ProductsOf(shapes.observation, shapes.hidden, (sac ? 2 : 1) * shapes.action);
  const Products critic = ProductsOf(shapes.observation + shapes.action, shapes.hidden, 1);
  const double targets = actor.all + 2 * critic.all;
  const double critics = 2 * (critic.all + critic.all + critic.all - critic.first);
  const double judging = (sac ? 2 : 1) * (critic.all + critic.all);
  const double step = actor.all + judging + actor.all + actor.all - actor.first;
  return 2.0 * kRows * (targets + critics + (sac ? 1.0 : 0.5) * step);
}

// The columns of kRows transitions, as replay hands them out.
class MadeUpBatch {
 public:
  explicit MadeUpBatch(const Shapes& shapes)
      : observations_(Numbers(shapes.observation, 1)),
        actions_(Numbers(shapes.action, 0.3)),
        rewards_(Numbers(1, 1)),
        next_observations_(Numbers(shapes.observation, 1)) {
    Add(observations_);
    Add(actions_);
    Add(rewards_);
    Add(terminated_);
    Add(next_observations_);
  }

  ReplayBatch view() const { return {.columns = columns_, .items = items_}; }

 private:
  std::vector<float> Numbers(int width, double scale) {
    std::vector<float> numbers(static_cast<std::size_t>(kRows) * width);
    for (float& number : numbers) {
      number = static_cast<float>(std::clamp(scale * random_.Normal(), -1.0, 1.0));
    }
    return numbers;
  }

  template <typename T>
  void Add(std::vector<T>& column) {
    columns_.push_back({.data = reinterpret_cast<std::byte*>(column.data()),
                        .item_bytes = column.size() / kRows * sizeof(T),
                        .rows = ones_});
  }

  Random random_ = Random::FromSeed(3);
  const std::vector<std::int32_t> ones_ = std::vector<std::int32_t>(kRows, 1);
  std::vector<float> observations_, actions_, rewards_;
  std::vector<std::uint8_t> terminated_ = std::vector<std::uint8_t>(kRows);
  std::vector<float> next_observations_;
  const std::vector<SampledItem> items_ = std::vector<SampledItem>(kRows, {.probability = 1e-4});
  std::vector<BatchColumn> columns_;
};

std::unique_ptr<PathwiseAlgorithm> MakeAlgorithm(const std::string& name,
                                                 const AlgorithmContext& context) {
  if (name == "sac") return std::make_unique<Sac>(SacConfig{}, context);
  if (name == "td3") return std::make_unique<Td3>(Td3Config{}, context);
  throw InvalidArgument("there is no algorithm '{}'; take sac or td3", name);
}

// c = a * b, 256x256 each, at once on every thread, each of which has matrices of its own.
class BareProducts {
 public:
  explicit BareProducts(int threads) : pool_(threads) {
    Random random = Random::FromSeed(5);
    for (int i = 0; i < 3 * threads; ++i) {
      AlignedFloats& matrix = matrices_.emplace_back(kSize * kSize);
      for (float& number : matrix.span()) number = static_cast<float>(random.Normal());
    }
  }

  double flops() const { return 2.0 * kSize * kSize * kSize * kProducts * pool_.threads(); }

  void Run() {
    pool_.Run(pool_.threads(), [this](int thread) {
      for (int i = 0; i < kProducts; ++i) {
        BestKernels().multiply({.a = matrices_[3 * thread].data(),
                                .a_row = kSize,
                                .a_inner = 1,
                                .b = matrices_[3 * thread + 1].data(),
                                .b_row = kSize,
                                .c = matrices_[3 * thread + 2].data(),
                                .c_row = kSize,
                                .rows = kSize,
                                .inner = kSize,
                                .columns = kSize});
      }
    });
  }

 private:
  static constexpr int kSize = 256;
  static constexpr int kProducts = 8;  // Of one Run: 3 ms, so that handing out costs nothing.

  std::vector<AlignedFloats> matrices_;  // Three a thread.
  WorkerPool pool_;
};

// Calls a second in one window.
template <typename Function>
double RateOfWindow(const Function& function) {
  int calls = 0;
  const Stopwatch watch;
  do {
    function();
    ++calls;
  } while (watch.seconds() < kWindow);
  return calls / watch.seconds();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void Measure(const std::string& name, const Shapes& shapes, int threads, double seconds) {
  const SharedWorkerPool pool = threads;  // As menger train has it.
  const auto algorithm = MakeAlgorithm(name, ContextOf(shapes, pool));
  const auto update = MakeLocalUpdateRule({.epsilon = 1e-8, .max_gradient_norm = 0},
                                          algorithm->parameter_groups(), pool);
  const MadeUpBatch batch(shapes);
  BareProducts products(threads);
  const double flops = FlopsOfUpdate(name, shapes);
  const auto learn = [&] { algorithm->Learn(batch.view(), *update, /*progress=*/0); };
  const auto multiply = [&] { products.Run(); };
  RateOfWindow(learn);  // Allocates.
  RateOfWindow(multiply);
  std::vector<double> updates, bare, shares;
  for (const Stopwatch watch; watch.seconds() < seconds || shares.empty();) {
    const double before = RateOfWindow(multiply) * products.flops();
    updates.push_back(RateOfWindow(learn));
    const double after = RateOfWindow(multiply) * products.flops();
    bare.push_back((before + after) / 2);
    shares.push_back(updates.back() * flops / bare.back());
  }
  fmt::print("| {} | {} | {} | {:.1f} | {:.0f} | {:.1f} | {:.1f} | {:.2f} |\n", name, shapes.name,
             threads, flops * 1e-6, Median(updates), Median(updates) * flops * 1e-9,
             Median(bare) * 1e-9, Median(shares));
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  std::vector<std::string> algorithms = {"sac", "td3"};
  std::vector<std::string> shapes = {"halfcheetah", "pendulum"};
  std::vector<int> threads = {1, 2};
  double seconds = 4;
  CLI::App app("Measures updates of SAC and TD3 beside the bare matrix product.");
  app.add_option("--algorithms", algorithms, "sac, td3");
  app.add_option("--shapes", shapes, "halfcheetah, pendulum");
  app.add_option("--threads", threads, "that learn, and that multiply");
  app.add_option("--seconds", seconds, "of each row");
  CLI11_PARSE(app, argc, argv);
  fmt::print(
      "| algorithm | shapes, batches of {} | threads | MFLOP an update | updates/s | GFLOP/s | "
      "GFLOP/s of the bare product | share |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
      kRows);
  for (const std::string& shape : shapes) {
    for (const std::string& algorithm : algorithms) {
      for (const int each : threads) Measure(algorithm, ShapesNamed(shape), each, seconds);
    }
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_pathwise_updates", menger::bench::Main, argc, argv);
}
