#include "menger/collectors/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "menger/base/clock.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr double kTie = 0.95;
constexpr int kWindows =
    3;  // The best of three windows counts: what else runs on the machine only ever slows one down.

CollectorPlan ApplyOptions(const CollectorOptions& options, CollectorPlan plan) {
  plan.horizon = static_cast<int>(options.horizon);
  plan.reset_mode = options.reset_between_slabs ? ResetMode::kBetweenSlabs : ResetMode::kSameStep;
  plan.decorrelation_steps = static_cast<int>(options.decorrelation_steps);
  plan.restart_budget = options.on_environment_error == "restart" ? options.restart_budget : 0;
  plan.pin = options.pin;
  return plan;
}

void ApplyTrial(const CalibrationTrial& trial, CollectorPlan& plan) {
  plan.kind = trial.kind;
  plan.workers = trial.workers;
  plan.groups = trial.groups;
  plan.environments = trial.environments;
}

// The largest number of workers up to `most` that the environments can be shared by.
int WorkersFor(std::int64_t environments, int groups, int most) {
  int workers = static_cast<int>(std::min<std::int64_t>(most, environments / groups));
  while (workers > 1 && environments % (workers * groups) != 0) --workers;
  return std::max(workers, 1);
}

std::vector<int> WorkerChoices(const CollectorOptions& options, CollectorKind kind, int cpus) {
  if (!options.workers.is_auto) return {static_cast<int>(options.workers.value)};
  if (kind == CollectorKind::kSerial) return {1};
  const int groups = kind == CollectorKind::kAlternating ? static_cast<int>(options.groups) : 1;
  const int all = WorkersFor(options.environments, groups, cpus);
  // The caller of an alternating collector has a CPU of its own, waits for a device, or is worker
  // 0.
  const int others = WorkersFor(options.environments, groups, std::max(1, cpus - 1));
  if (kind == CollectorKind::kAlternating && others < all) return {others, all};
  return {all};
}

// With these every inference is one of all environments, whatever the number of workers.
bool InfersForAll(CollectorKind kind) {
  return kind == CollectorKind::kSerial || kind == CollectorKind::kSynchronous;
}

// The most promising first, because the budget may end the trials.
std::vector<CalibrationTrial> Candidates(const CollectorOptions& options, bool batch_invariant,
                                         int cpus) {
  const bool any_kind = options.kind == "auto";
  std::vector<CalibrationTrial> candidates;
  for (const CollectorKind kind : {CollectorKind::kLocal, CollectorKind::kSerial,
                                   CollectorKind::kSynchronous, CollectorKind::kAlternating}) {
    if (any_kind ? !batch_invariant && !InfersForAll(kind)
                 : CollectorKindFromName(options.kind) != kind) {
      continue;
    }
    const int groups = kind == CollectorKind::kAlternating ? static_cast<int>(options.groups) : 1;
    for (const int workers : WorkerChoices(options, kind, cpus)) {
      if (kind == CollectorKind::kSerial && workers != 1) continue;
      // With one worker a local collector is a serial one, and a synchronous one too.
      if (any_kind && workers == 1 && groups == 1 && kind != CollectorKind::kSerial) continue;
      if (options.environments % (workers * groups) != 0) continue;
      candidates.push_back({.kind = kind,
                            .workers = workers,
                            .groups = groups,
                            .environments = static_cast<int>(options.environments)});
    }
  }
  return candidates;
}

double MeasureStepsPerSecond(const CollectorPlan& plan, const EnvironmentEntry& environment,
                             const PolicyFactory& policies, double seconds) {
  const auto collector = MakeCollector(plan, environment, policies);
  collector->Collect();  // Touches all memory, resets, wakes the threads.
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    const Stopwatch watch;
    double steps = 0;
    do {
      collector->Collect();
      steps += static_cast<double>(plan.horizon) * plan.environments;
    } while (watch.seconds() < seconds / kWindows);
    best = std::max(best, steps / watch.seconds());
  }
  return best;
}

std::string DescribeTrial(const CalibrationTrial& trial) {
  return fmt::format("{}, {} worker{} x {} environment{}", NameOf(trial.kind), trial.workers,
                     trial.workers == 1 ? "" : "s", trial.environments / trial.workers,
                     trial.environments == trial.workers ? "" : "s");
}

std::string Explain(const std::vector<CalibrationTrial>& trials, const CalibrationTrial& chosen,
                    std::size_t candidates) {
  const CalibrationTrial& fastest = *std::max_element(
      trials.begin(), trials.end(), [](const CalibrationTrial& a, const CalibrationTrial& b) {
        return a.steps_per_second < b.steps_per_second;
      });
  std::string reason = fmt::format("the fastest of {} trials", trials.size());
  if (trials.size() == 1) reason = "the only way tried";
  if (&fastest != &chosen) {
    reason = fmt::format("within 5% of the fastest ({}), and simpler", DescribeTrial(fastest));
  }
  if (trials.size() < candidates) {
    reason += fmt::format("; time ended before {} more", candidates - trials.size());
  }
  std::string text = fmt::format("collector: {}: {}\n", DescribeTrial(chosen), reason);
  text +=
      fmt::format("  {:<12} {:>7} {:>12} {:>12}\n", "kind", "workers", "environments", "steps/s");
  for (const CalibrationTrial& trial : trials) {
    text += fmt::format("  {:<12} {:>7} {:>12} {:>12.0f}{}\n", NameOf(trial.kind), trial.workers,
                        trial.environments, trial.steps_per_second,
                        &trial == &chosen ? "  <- chosen" : "");
  }
  return text;
}

}  // namespace

const CalibrationTrial& ChooseTrial(std::span<const CalibrationTrial> trials) {
  double fastest = 0;
  for (const CalibrationTrial& trial : trials) fastest = std::max(fastest, trial.steps_per_second);
  const CalibrationTrial* chosen = nullptr;
  const auto effort = [](const CalibrationTrial& trial) {
    return std::tuple(trial.kind, trial.workers);
  };
  for (const CalibrationTrial& trial : trials) {
    if (trial.steps_per_second < kTie * fastest) continue;
    if (chosen == nullptr || effort(trial) < effort(*chosen)) chosen = &trial;
  }
  return *chosen;
}

CalibrationReport Calibrate(const CollectorOptions& options, const CollectorPlan& base,
                            const EnvironmentEntry& environment, const PolicyFactory& policies,
                            const CalibrationLimits& limits) {
  CalibrationReport report;
  report.plan = ApplyOptions(options, base);
  const bool batch_invariant = policies()->spec().batch_invariant;
  const std::vector<CalibrationTrial> candidates =
      Candidates(options, batch_invariant, limits.cpus);
  if (candidates.empty()) {
    throw InvalidArgument(
        "nothing fits collector.environments = {}, kind = {}, workers = {} and groups = {}: make "
        "the environments a multiple of workers (x groups where alternating), or leave more to "
        "auto",
        options.environments, options.kind,
        options.workers.is_auto ? "auto" : std::to_string(options.workers.value), options.groups);
  }
  if (candidates.size() == 1) {
    ApplyTrial(candidates.front(), report.plan);
    report.text = fmt::format("collector: {}: as configured\n", DescribeTrial(candidates.front()));
    return report;
  }
  const Stopwatch watch;
  for (const CalibrationTrial& candidate : candidates) {
    if (!report.trials.empty() && watch.seconds() > limits.budget_seconds) break;
    CollectorPlan plan = report.plan;
    ApplyTrial(candidate, plan);
    plan.horizon = std::min(plan.horizon, limits.trial_horizon);
    plan.decorrelation_steps = 0;
    report.trials.push_back(candidate);
    report.trials.back().steps_per_second =
        MeasureStepsPerSecond(plan, environment, policies, limits.trial_seconds);
  }
  const CalibrationTrial& chosen = ChooseTrial(report.trials);
  ApplyTrial(chosen, report.plan);
  report.text = Explain(report.trials, chosen, candidates.size());
  return report;
}

}  // namespace menger
