// Each worker acts on its own environments with its own policy; workers meet once a slab. The
// caller is worker 0.

#include "menger/collectors/slab_collector.h"

namespace menger {
namespace {

class LocalCollector : public SlabCollector {
 public:
  LocalCollector(const CollectorPlan& plan, const EnvironmentEntry& environment,
                 const PolicyFactory& policies)
      : SlabCollector(plan, environment, policies, /*policies=*/plan.workers),
        team_(TeamOptions(/*first_worker=*/1), [this](int worker, int /*round*/) {
          FillBlock(worker, [this, worker] { team_.ReportProgress(worker); });
        }) {}

 private:
  void Fill() override {
    team_.BeginSlab();
    team_.StartRound();
    team_.AsWorker0([this] { FillBlock(/*worker=*/0, [] {}); });
    team_.WaitFor(/*rounds=*/1);
  }

  template <typename Report>
  void FillBlock(int worker, Report report_progress) {
    BeginBlock(/*group=*/0, worker);
    Policy& own_policy = policy(worker);
    const ColumnBlock& block = slab().columns().block(0, worker);
    const PositionRange positions{.first = block.first_position, .count = block.count};
    PhaseClock& time = clock(worker);
    own_policy.Refresh();
    const Stopwatch watch;
    for (int row = 0; row < slab().horizon() && !team_.halted(); ++row) {
      time.Begin();
      own_policy.Act(slab(), row, positions);
      time.Lap(PhaseClock::kInference);
      StepBlock(/*group=*/0, worker, row);
      time.Lap(PhaseClock::kSimulation);
      report_progress();
    }
    time.AddRows(watch.nanoseconds());
  }

  WorkerTeam team_;  // Last: its threads use all of the above.
};

}  // namespace

std::unique_ptr<Collector> MakeLocalCollector(const CollectorPlan& plan,
                                              const EnvironmentEntry& environment,
                                              const PolicyFactory& policies) {
  return std::make_unique<LocalCollector>(plan, environment, policies);
}

}  // namespace menger
