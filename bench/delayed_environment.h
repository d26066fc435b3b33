#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/counter_random.h"
#include "menger/environments/environment.h"

// Environments that take longer than they need, to see what a collector makes of it.
namespace menger::bench {

enum class DelayKind { kNone, kConstant, kExponential, kStraggler };

struct Delay {
  DelayKind kind = DelayKind::kNone;
  double mean_seconds = 0;  // Of one environment's step; a straggler (environment 0) takes ten
                            // times as long as the others.
};

// A group whose every step also keeps its core busy for the sum of its environments' delays, drawn
// by environment and step.
class DelayedGroup : public EnvironmentGroup {
 public:
  DelayedGroup(std::unique_ptr<EnvironmentGroup> group, const ColumnBlock& block, Delay delay)
      : group_(std::move(group)), block_(block), delay_(delay) {}

  const EnvironmentSpec& spec() const override { return group_->spec(); }
  void Reset(Slab& slab, int row) override { group_->Reset(slab, row); }
  void Step(Slab& slab, int row) override {
    const Stopwatch watch;
    group_->Step(slab, row);
    double delay = 0;
    for (int i = 0; i < block_.count; ++i) {
      delay += DelayOf(block_.first_environment + i, slab.first_step() + row);
    }
    while (watch.seconds() < delay) {
    }
  }
  void ResetParked(Slab& slab, int row) override { group_->ResetParked(slab, row); }
  void StepRandomly(Slab& slab, int row, std::span<const int> steps, std::uint64_t seed) override {
    group_->StepRandomly(slab, row, steps, seed);
  }
  void Save(ArchiveWriter& archive) const override { group_->Save(archive); }
  void Load(ArchiveReader& archive) override { group_->Load(archive); }

 private:
  double DelayOf(int environment, std::int64_t step) const {
    switch (delay_.kind) {
      case DelayKind::kNone:
        return 0;
      case DelayKind::kConstant:
        return delay_.mean_seconds;
      case DelayKind::kStraggler:
        return delay_.mean_seconds * (environment == 0 ? 10 : 1);
      case DelayKind::kExponential:
        return -delay_.mean_seconds *
               std::log1p(-random_.Uniform(static_cast<std::uint64_t>(environment),
                                           static_cast<std::uint64_t>(step)));
    }
    return 0;
  }

  const std::unique_ptr<EnvironmentGroup> group_;
  const ColumnBlock block_;
  const Delay delay_;
  const CounterRandom random_{/*seed=*/1, /*stream=*/2};
};

inline EnvironmentEntry Delayed(EnvironmentEntry entry, Delay delay) {
  entry.make_group = [make = std::move(entry.make_group), delay](const GroupOptions& options) {
    return std::make_unique<DelayedGroup>(make(options), options.columns, delay);
  };
  return entry;
}

}  // namespace menger::bench
