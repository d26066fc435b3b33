// The example of the Ray paper (Moritz et al. 2018, figure 3) as a program of Menger: simulators
// are actors, a policy is made and improved by tasks, and a task drives it all. What it learns is
// to balance a pole by random search over a linear policy (Mania et al. 2018).
//
//   build/release/examples/example_ray_paper
//
// Everything after `menger::Runtime runtime` runs in worker processes that the program starts by
// itself, or on the machines of a cluster, where MENGER_ADDRESS names one (docs/runtime.md).
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"

namespace {

using menger::ActorRef;
using menger::ObjectRef;
using menger::Runtime;

constexpr int kStepsMax = 200;

using Policy = std::array<double, 4>;  // Push right where its product with the state is positive.

struct Rollout {
  Policy direction{};  // In which the policy was changed,
  double ahead = 0;    // and how long the pole stood with that change
  double behind = 0;   // and with the opposite one.
};

// A simulator keeps a state between calls: here, its random stream.
class Simulator {
 public:
  explicit Simulator(int seed) : random_(static_cast<std::uint64_t>(seed)) {}

  Rollout Explore(const Policy& policy) {
    Rollout rollout;
    std::normal_distribution<double> normal;
    for (double& weight : rollout.direction) weight = normal(random_);
    rollout.ahead = Balance(Moved(policy, rollout.direction, 0.5));
    rollout.behind = Balance(Moved(policy, rollout.direction, -0.5));
    return rollout;
  }

  double Balance(const Policy& policy) {
    std::uniform_real_distribution<double> start(-0.05, 0.05);
    for (double& value : state_) value = start(random_);
    int steps = 0;
    while (steps < kStepsMax && std::abs(state_[0]) < 2.4 && std::abs(state_[2]) < 0.21) {
      double push = 0;
      for (int i = 0; i < 4; ++i) push += policy[i] * state_[i];
      Step(push > 0 ? 10.0 : -10.0);
      ++steps;
    }
    return steps;
  }

  static Policy Moved(Policy policy, const Policy& direction, double by) {
    for (int i = 0; i < 4; ++i) policy[i] += by * direction[i];
    return policy;
  }

 private:
  // Barto, Sutton and Anderson 1983: a pole of 1 m and 0.1 kg on a cart of 1 kg, 20 ms a step.
  void Step(double force) {
    const double sine = std::sin(state_[2]);
    const double cosine = std::cos(state_[2]);
    const double sum = (force + 0.05 * state_[3] * state_[3] * sine) / 1.1;
    const double angular =
        (9.8 * sine - cosine * sum) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
    const double linear = sum - 0.05 * angular * cosine / 1.1;
    const std::array<double, 4> change = {state_[1], linear, state_[3], angular};
    for (int i = 0; i < 4; ++i) state_[i] += 0.02 * change[i];
  }

  std::mt19937_64 random_;
  std::array<double, 4> state_{};
};

Policy CreatePolicy() { return {}; }

// References inside a value are not waited for: the task fetches them itself.
Policy UpdatePolicy(Runtime& runtime, Policy policy,
                    const std::vector<ObjectRef<Rollout>>& rollouts) {
  for (const Rollout& rollout : runtime.Get(rollouts)) {
    const double slope = (rollout.ahead - rollout.behind) / kStepsMax;
    policy =
        Simulator::Moved(policy, rollout.direction, slope / static_cast<double>(rollouts.size()));
  }
  return policy;
}

// One whose process or machine dies begins anew elsewhere, and what it was doing is done again.
constexpr int kRestarts = 10;

ActorRef<Simulator> MakeSimulator(Runtime& runtime, int seed) {
  return runtime.CreateActor<Simulator>({.restarts = kRestarts, .call_retries = kRestarts}, seed);
}

// Calls return at once: each iteration only says what is to be done, and the last Get waits.
Policy TrainPolicy(Runtime& runtime, int simulators, int iterations) {
  std::vector<ActorRef<Simulator>> actors;
  for (int seed = 0; seed < simulators; ++seed) {
    actors.push_back(MakeSimulator(runtime, seed));
  }
  ObjectRef<Policy> policy = runtime.Call<CreatePolicy>();
  for (int i = 0; i < iterations; ++i) {
    std::vector<ObjectRef<Rollout>> rollouts;
    for (const auto& actor : actors) rollouts.push_back(actor.Call<&Simulator::Explore>(policy));
    policy = runtime.Call<UpdatePolicy>(policy, rollouts);
  }
  return runtime.Get(policy);
}

}  // namespace

int main() {
  if (menger::IsWorker()) return menger::WorkerMain();
  Runtime runtime;
  const ObjectRef<Policy> policy = runtime.Call<TrainPolicy>(/*simulators=*/10, /*iterations=*/100);
  const ActorRef<Simulator> judge = MakeSimulator(runtime, /*seed=*/1000);
  double mean = 0;
  for (int i = 0; i < 20; ++i) mean += runtime.Get(judge.Call<&Simulator::Balance>(policy)) / 20;
  std::printf("the pole stands for %.0f of %d steps\n", mean, kStepsMax);
  return mean > 190 ? 0 : 1;
}
