#include "menger/collectors/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "menger/base/clock.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr double kTie = 0.95;
constexpr int kWindows =
    3;  // The best of three windows counts: what else runs on the machine only ever slows one down.
constexpr int kEnvironmentChoices[] = {32, 8, 128};

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

std::vector<int> WorkerChoices(const CollectorOptions& options, CollectorKind kind, int cpus) {
  if (!options.workers.is_auto) return {static_cast<int>(options.workers.value)};
  if (kind == CollectorKind::kSerial) return {1};
  // The caller of an alternating collector has a CPU of its own, waits for a device, or is worker
  // 0.
  if (kind == CollectorKind::kAlternating && cpus > 1) return {cpus - 1, cpus};
  return {cpus};
}

// The most promising first, because the budget may end the trials.
std::vector<CalibrationTrial> Candidates(const CollectorOptions& options, AutoInt total, int cpus) {
  const AutoInt& each = options.environments_per_worker;
  std::vector<int> choices(std::begin(kEnvironmentChoices), std::end(kEnvironmentChoices));
  if (!each.is_auto) choices = {static_cast<int>(each.value)};
  std::vector<CalibrationTrial> candidates;
  const auto add = [&](CollectorKind kind, int workers, int environments) {
    const int groups = kind == CollectorKind::kAlternating ? static_cast<int>(options.groups) : 1;
    if (kind == CollectorKind::kSerial && workers != 1) return;
    // With one worker a local collector is a serial one, and a synchronous one too.
    const bool like_serial = workers == 1 && groups == 1 && kind != CollectorKind::kSerial;
    if (options.kind == "auto" && like_serial) return;
    if (environments % (workers * groups) != 0) return;
    candidates.push_back(
        {.kind = kind, .workers = workers, .groups = groups, .environments = environments});
  };
  for (const int choice : choices) {
    for (const CollectorKind kind : {CollectorKind::kLocal, CollectorKind::kSerial,
                                     CollectorKind::kSynchronous, CollectorKind::kAlternating}) {
      if (options.kind != "auto" && CollectorKindFromName(options.kind) != kind) continue;
      for (const int workers : WorkerChoices(options, kind, cpus)) {
        const int wanted = workers * choice;
        if (total.is_auto) {
          add(kind, workers, wanted);
        } else if (each.is_auto ? choice == choices.front() : wanted == total.value) {
          add(kind, workers, static_cast<int>(total.value));
        }
      }
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
    return std::tuple(trial.kind, trial.workers, trial.environments);
  };
  for (const CalibrationTrial& trial : trials) {
    if (trial.steps_per_second < kTie * fastest) continue;
    if (chosen == nullptr || effort(trial) < effort(*chosen)) chosen = &trial;
  }
  return *chosen;
}

CalibrationReport Calibrate(const CollectorOptions& options, AutoInt total,
                            const CollectorPlan& base, const EnvironmentEntry& environment,
                            const PolicyFactory& policies, const CalibrationLimits& limits) {
  CalibrationReport report;
  report.plan = ApplyOptions(options, base);
  const std::vector<CalibrationTrial> candidates = Candidates(options, total, limits.cpus);
  if (candidates.empty()) {
    const auto text = [](const AutoInt& option) {
      return option.is_auto ? std::string("auto") : std::to_string(option.value);
    };
    throw InvalidArgument(
        "nothing fits collector.kind = {}, workers = {}, environments_per_worker = {}, groups = {} "
        "and {} environments in all: "
        "make the environments a multiple of workers (x groups where alternating), or leave more "
        "to auto",
        options.kind, text(options.workers), text(options.environments_per_worker), options.groups,
        text(total));
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
