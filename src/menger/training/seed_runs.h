#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "menger/base/child_launch.h"
#include "menger/training/run.h"

namespace menger {

// Runs of one recipe that differ in nothing but their seed.
struct SeedRuns {
  std::function<ChildProgram(std::int64_t seed)> program;  // Trains one of them in its folder,
  std::string folder;                                      // SeedFolder(folder, seed).
  std::vector<std::int64_t> seeds;
  std::int64_t steps = 0;  // Planned for each.
  int side_by_side = 1;    // So many at a time.
};

// A run that was not trained to its end, and was not interrupted either.
struct SeedFailure {
  std::int64_t seed = 0;
  std::string cause;     // "ended with exit status 1"
  bool refused = false;  // It never began: as a rule no other will.
};

// Trains them side by side, each in a process of its own with its share of the CPUs, so that
// neither what the libraries of one hold nor its end touches another; `ended` is told of each as it
// ends, in any order. What they say goes to the progress display, line by line with the seed in
// front.
//
// Once a stop is requested they are interrupted, which makes them save, and no others begin; no
// others begin after one that was refused, either. Returns those that failed, in order.
std::vector<SeedFailure> TrainSideBySide(
    const SeedRuns& runs, const std::function<void(std::int64_t seed, const RunOutcome&)>& ended,
    const RunContext& context);

}  // namespace menger
