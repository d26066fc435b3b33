// What does a call of libmenger_policy take? For bundles of `menger export`, in microseconds: the
// median of some windows, the fastest and the slowest of them. Observations are random and change
// from call to call.
//
//   bench_exported_policy FILE... [--calls 100000]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/policies/library/menger_policy.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kWindows = 9;
constexpr int kObservations = 64;  // That are given in turn.

// One array for a policy: `kObservations` random values of it.
std::vector<std::byte> RandomValues(const menger_array& array, Random& random) {
  constexpr std::size_t kSizes[] = {1, 4, 8, 4, 8};  // By enum menger_type.
  const auto elements = static_cast<std::size_t>(array.elements);
  std::vector<std::byte> values(kObservations * elements * kSizes[array.type]);
  for (std::size_t i = 0; i < kObservations * elements; ++i) {
    if (array.type == MENGER_FLOAT32) {
      reinterpret_cast<float*>(values.data())[i] = static_cast<float>(random.Uniform(-1, 1));
    } else if (array.type == MENGER_FLOAT64) {
      reinterpret_cast<double*>(values.data())[i] = random.Uniform(-1, 1);
    } else {  // 0 and 1 are choices and flags as well; everything may be done.
      values[i * kSizes[array.type]] = std::byte{1};
    }
  }
  return values;
}

void Measure(const std::string& file, int calls) {
  char error[512];
  menger_policy* const policy = menger_policy_open(file.c_str(), error, sizeof(error));
  if (policy == nullptr) throw InvalidArgument("{}", error);
  Random random = Random::FromSeed(1);
  std::vector<std::vector<std::byte>> values;
  for (int i = 0; i < menger_policy_observations(policy); ++i) {
    values.push_back(RandomValues(menger_policy_observation(policy, i), random));
  }
  std::vector<std::byte> action(
      static_cast<std::size_t>(menger_policy_action(policy).elements * 8));
  std::vector<const void*> arrays(values.size());
  menger_player* const player = menger_player_new(policy);
  std::vector<double> windows;
  for (int window = 0; window <= kWindows; ++window) {  // The first warms up.
    const Stopwatch watch;
    for (int call = 0; call < calls; ++call) {
      const std::size_t observation = static_cast<std::size_t>(call) % kObservations;
      for (std::size_t i = 0; i < values.size(); ++i) {
        arrays[i] = values[i].data() + observation * (values[i].size() / kObservations);
      }
      if (menger_player_act(player, arrays.data(), action.data()) != MENGER_ACTED) {
        throw InvalidArgument("'{}' refuses a random observation: it has codes below 2", file);
      }
    }
    if (window > 0) windows.push_back(watch.seconds() * 1e6 / calls);
  }
  std::ranges::sort(windows);
  fmt::print("{}: {:.3f} us a call ({:.3f} to {:.3f} over {} windows of {} calls)\n", file,
             windows[kWindows / 2], windows.front(), windows.back(), kWindows, calls);
  menger_player_delete(player);
  menger_policy_close(policy);
}

int Main(int argc, char** argv) {
  CLI::App app("Times calls of libmenger_policy.");
  std::vector<std::string> files;
  int calls = 100'000;
  app.add_option("files", files, "Bundles of `menger export`")->required();
  app.add_option("--calls", calls, "Of a window")->check(CLI::Range(1, 1'000'000'000));
  CLI11_PARSE(app, argc, argv);
  for (const std::string& file : files) Measure(file, calls);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_exported_policy", menger::bench::Main, argc, argv);
}
