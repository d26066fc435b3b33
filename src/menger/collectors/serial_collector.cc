// One thread does everything: the reference that the other kinds are compared with.

#include "menger/collectors/slab_collector.h"

namespace menger {
namespace {

class SerialCollector : public SlabCollector {
 public:
  SerialCollector(const CollectorPlan& plan, const EnvironmentEntry& environment,
                  const PolicyFactory& policies)
      : SlabCollector(plan, environment, policies, /*policies=*/1) {}

 private:
  void Fill() override {
    BeginBlock(/*group=*/0, /*worker=*/0);
    policy(0).Refresh();
    const PositionRange positions = slab().columns().group(0);
    PhaseClock& time = clock(0);
    const Stopwatch watch;
    for (int row = 0; row < slab().horizon(); ++row) {
      time.Begin();
      policy(0).Act(slab(), row, positions);
      time.Lap(PhaseClock::kInference);
      StepBlock(/*group=*/0, /*worker=*/0, row);
      time.Lap(PhaseClock::kSimulation);
    }
    time.AddRows(watch.nanoseconds());
  }
};

}  // namespace

std::unique_ptr<Collector> MakeSerialCollector(const CollectorPlan& plan,
                                               const EnvironmentEntry& environment,
                                               const PolicyFactory& policies) {
  return std::make_unique<SerialCollector>(plan, environment, policies);
}

}  // namespace menger
