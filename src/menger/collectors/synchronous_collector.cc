// Lock-step: one batched inference for all environments, then every worker simulates its own. The
// caller infers and is also worker 0, so that no thread idles while workers simulate.

#include "menger/collectors/slab_collector.h"

namespace menger {
namespace {

class SynchronousCollector : public SlabCollector {
 public:
  SynchronousCollector(const CollectorPlan& plan, const EnvironmentEntry& environment,
                       const PolicyFactory& policies)
      : SlabCollector(plan, environment, policies, /*policies=*/1),
        team_(TeamOptions(/*first_worker=*/1),
              [this](int worker, int round) { Work(worker, round); }) {}

 private:
  // Round 0 starts the slab, round t + 1 simulates row t.
  void Work(int worker, int round) {
    if (round == 0) {
      BeginBlock(/*group=*/0, worker);
      clock(worker).Begin();
    } else {
      StepBetweenWaits(/*group=*/0, worker, round - 1);
    }
  }

  void Fill() override {
    const PositionRange all = slab().columns().group(0);
    PhaseClock& time = clock(0);
    team_.BeginSlab();
    team_.StartRound();
    team_.AsWorker0([this] { BeginBlock(/*group=*/0, /*worker=*/0); });
    policy(0).Refresh();
    const Stopwatch watch;
    for (int row = 0; row < slab().horizon(); ++row) {
      time.Begin();
      team_.WaitFor(/*rounds=*/row + 1);
      time.Lap(PhaseClock::kWaiting);
      policy(0).Act(slab(), row, all);
      time.Lap(PhaseClock::kInference);
      team_.StartRound();
      team_.AsWorker0([this, row] { group(0, 0).Step(slab(), row); });
      time.Lap(PhaseClock::kSimulation);
    }
    team_.WaitFor(slab().horizon() + 1);
    CountRowsOfAllThreads(watch.nanoseconds());
  }

  WorkerTeam team_;  // Last: its threads use all of the above.
};

}  // namespace

std::unique_ptr<Collector> MakeSynchronousCollector(const CollectorPlan& plan,
                                                    const EnvironmentEntry& environment,
                                                    const PolicyFactory& policies) {
  return std::make_unique<SynchronousCollector>(plan, environment, policies);
}

}  // namespace menger
