// The fragments of docs/runtime.md, each in a namespace with what its page takes for granted.
#include <numeric>
#include <string>
#include <vector>

#include "expect.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"

namespace values {

struct Trajectory {
  std::vector<double> rewards;
  int seed = 0;
};

#include "blocks/runtime/values_1.declarations.inc"

Trajectory Doubled(Trajectory trajectory) {
  for (double& reward : trajectory.rewards) reward *= 2;
  trajectory.seed *= 2;
  return trajectory;
}

void Run(menger::Runtime& runtime) {
  const Trajectory doubled =
      runtime.Get(runtime.Call<Doubled>(Trajectory{.rewards = {1, 2}, .seed = 3}));
  Expect(doubled.rewards == std::vector<double>{2, 4} && doubled.seed == 6, "values travel");
}

}  // namespace values

namespace streams {

struct Episode {
  int number = 0;
};

Episode Play(int number) { return {.number = number}; }

int learned = 0;
void Learn(const Episode& episode) { learned += episode.number; }

#include "blocks/runtime/streams_1.declarations.inc"

void Run(menger::Runtime& runtime) {
#include "blocks/runtime/streams_1.statements.inc"
  Expect(learned == 99 * 100 / 2, "a hundred episodes are learned from");
}

}  // namespace streams

namespace checkpoints {

using Policy = std::vector<float>;
using Trajectory = std::vector<double>;

#include "blocks/runtime/when_things_die_1.declarations.inc"

Simulator::Simulator(const std::string& name) : state_(name.begin(), name.end()) {}

Trajectory Simulator::Rollout(menger::Runtime& runtime, const Policy& policy) {
  best_.push_back(static_cast<double>(policy.size()));
  state_.push_back(runtime.Random().Double());
  ++episode_;
  return best_;
}

void Run(menger::Runtime& runtime) {
#include "blocks/runtime/when_things_die_1.statements.inc"
  Trajectory last;
  for (int i = 0; i < 25; ++i) {
    last = runtime.Get(simulator.Call<&Simulator::Rollout>(Policy{1, 2, 3}));
  }
  Expect(std::accumulate(last.begin(), last.end(), 0.0) == 25 * 3, "an actor goes on");
}

}  // namespace checkpoints

int main() {
  if (menger::IsWorker()) return menger::WorkerMain();
  menger::Runtime runtime;
  values::Run(runtime);
  streams::Run(runtime);
  checkpoints::Run(runtime);
}
