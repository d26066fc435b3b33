#pragma once

#include <span>
#include <string>
#include <vector>

#include "menger/collectors/collector.h"

namespace menger {

// One way of collecting, and how fast it was.
struct CalibrationTrial {
  CollectorKind kind = CollectorKind::kSerial;
  int workers = 1;
  int groups = 1;
  int environments = 1;
  double steps_per_second = 0;
};

// What to collect with, and why.
struct CalibrationReport {
  CollectorPlan plan;                    // Complete; not checked.
  std::vector<CalibrationTrial> trials;  // As run; empty where nothing was left to choose.
  std::string text;  // For the user: what was chosen and why, with a small table.
};

struct CalibrationLimits {
  int cpus = 1;                  // No choice uses more workers.
  double budget_seconds = 1.0;   // No trial is begun after that; at least one is run.
  double trial_seconds = 0.045;  // For each trial, after a slab that only warms up.
  int trial_horizon = 16;        // Slabs of trials are no longer than this.
};

// Chooses what the options leave to the program (kind, workers) by short timed trials; what they
// say is kept. Nothing that is learned depends on the outcome: all that is tried gives the same
// slabs. So where a policy is not batch-invariant only kinds are tried that infer for all
// environments at once (serial and synchronous), unless the options name another.
//
// Of `base`, the plan takes what options do not speak of: history, clip_actions, seed, patience.
// Throws InvalidArgument when no way of collecting fits the options, and whatever an environment or
// a policy throws.
CalibrationReport Calibrate(const CollectorOptions& options, const CollectorPlan& base,
                            const EnvironmentEntry& environment, const PolicyFactory& policies,
                            const CalibrationLimits& limits);

// The rule of the choice: the fastest; among those within 5% of it the simplest kind (serial before
// local before synchronous before alternating), then the fewest workers. `trials` is not empty.
const CalibrationTrial& ChooseTrial(std::span<const CalibrationTrial> trials);

}  // namespace menger
