// Two or more groups in turn: while the caller infers for one, the workers simulate the others.
//
// The caller only infers, where it has a core of its own or its policy waits for a device: with a
// share of the simulation it would be the slowest thread by exactly the time of its inference,
// which is what the synchronous kind already costs; alone it hides that time, and wins where
// inference is not small or where step times vary. Where workers and inference would compete for
// the cores the caller is worker 0: a thread too many costs more than it hides.

#include "menger/base/thread.h"
#include "menger/collectors/slab_collector.h"

namespace menger {
namespace {

class AlternatingCollector : public SlabCollector {
 public:
  AlternatingCollector(const CollectorPlan& plan, const EnvironmentEntry& environment,
                       const PolicyFactory& policies)
      : SlabCollector(plan, environment, policies, /*policies=*/1),
        caller_simulates_(plan.workers >= AvailableCpus() && !policy(0).spec().waits_for_device),
        team_(TeamOptions(/*first_worker=*/caller_simulates_ ? 1 : 0),
              [this](int worker, int round) { Work(worker, round); }) {
    if (!caller_simulates_) AddClockOfCaller();
  }

 private:
  // The next round of all workers; with the caller's own share of it.
  void StartRound(int round) {
    team_.StartRound();
    if (caller_simulates_) team_.AsWorker0([this, round] { Work(/*worker=*/0, round); });
  }

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
    PhaseClock& time = clock(caller_simulates_ ? 0 : plan().workers);
    team_.BeginSlab();
    for (int round = 0; round < groups; ++round) StartRound(round);
    policy(0).Refresh();
    const Stopwatch watch;
    int round = 0;
    for (int row = 0; row < slab().horizon(); ++row) {
      for (int turn = 0; turn < groups; ++turn, ++round) {
        if (!caller_simulates_) time.Begin();
        team_.WaitFor(round + 1);  // This group's last step; the other groups' are under way.
        time.Lap(PhaseClock::kWaiting);
        policy(0).Act(slab(), row, slab().columns().group(turn));
        time.Lap(PhaseClock::kInference);
        StartRound(round + groups);
      }
    }
    team_.WaitFor(round + groups);
    CountRowsOfAllThreads(watch.nanoseconds());
  }

  const bool caller_simulates_;
  WorkerTeam team_;  // Last: its threads use all of the above.
};

}  // namespace

std::unique_ptr<Collector> MakeAlternatingCollector(const CollectorPlan& plan,
                                                    const EnvironmentEntry& environment,
                                                    const PolicyFactory& policies) {
  return std::make_unique<AlternatingCollector>(plan, environment, policies);
}

}  // namespace menger
