// Two or more groups in turn: while the caller infers for one, the workers simulate the others.
//
// The caller only infers. With a share of the simulation it would be the slowest thread by exactly
// the time of its inference, which is what the synchronous kind already costs; alone it hides that
// time, and wins where inference is not small (on a device, or by large networks) or where step
// times vary.

#include "menger/collectors/slab_collector.h"

namespace menger {
namespace {

class AlternatingCollector : public SlabCollector {
 public:
  AlternatingCollector(const CollectorPlan& plan, const EnvironmentEntry& environment,
                       const PolicyFactory& policies)
      : SlabCollector(plan, environment, policies, /*policies=*/1, /*threads=*/plan.workers + 1),
        team_(TeamOptions(/*first_worker=*/0),
              [this](int worker, int round) { Work(worker, round); }) {}

 private:
  // Rounds 0 .. G - 1 start the slab for each group; then each row has one round a group.
  void Work(int worker, int round) {
    const int row = round / plan().groups - 1;
    const int turn = round % plan().groups;
    if (row < 0) {
      BeginBlock(turn, worker);
      clock(worker).Begin();
    } else {
      StepBetweenWaits(turn, worker, row);
    }
  }

  void Fill() override {
    const int groups = plan().groups;
    PhaseClock& time = clock(plan().workers);
    team_.BeginSlab();
    for (int turn = 0; turn < groups; ++turn) team_.StartRound();
    policy(0).Refresh();
    const Stopwatch watch;
    int round = 0;
    for (int row = 0; row < plan().horizon; ++row) {
      for (int turn = 0; turn < groups; ++turn) {
        time.Begin();
        team_.WaitFor(++round);  // This group's last step; the other groups' are under way.
        time.Lap(PhaseClock::kWaiting);
        policy(0).Act(slab(), row, slab().columns().group(turn));
        time.Lap(PhaseClock::kInference);
        team_.StartRound();
      }
    }
    team_.WaitFor(round + groups);
    CountRowsOfAllThreads(watch.nanoseconds());
  }

  WorkerTeam team_;  // Last: its threads use all of the above.
};

}  // namespace

std::unique_ptr<Collector> MakeAlternatingCollector(const CollectorPlan& plan,
                                                    const EnvironmentEntry& environment,
                                                    const PolicyFactory& policies) {
  return std::make_unique<AlternatingCollector>(plan, environment, policies);
}

}  // namespace menger
