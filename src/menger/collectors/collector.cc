#include "menger/collectors/collector.h"

#include <array>

#include "menger/base/error.h"
#include "menger/collectors/slab_collector.h"

namespace menger {
namespace {

constexpr std::array kKinds = {CollectorKind::kSerial, CollectorKind::kLocal,
                               CollectorKind::kSynchronous, CollectorKind::kAlternating};
constexpr int kWorkersMax = 1024;
constexpr int kEnvironmentsMax = 1'000'000;
constexpr int kStepsMax = 1'000'000'000;  // What is an int in the plan.

void CheckAtLeast(const char* name, std::int64_t value, std::int64_t minimum) {
  if (value < minimum) {
    throw InvalidArgument("collector.{} is {}; it must be at least {}", name, value, minimum);
  }
}

}  // namespace

const char* NameOf(CollectorKind kind) {
  switch (kind) {
    case CollectorKind::kSerial:
      return "serial";
    case CollectorKind::kLocal:
      return "local";
    case CollectorKind::kSynchronous:
      return "synchronous";
    case CollectorKind::kAlternating:
      return "alternating";
  }
  return "unknown";
}

CollectorKind CollectorKindFromName(const std::string& name) {
  std::vector<std::string> names;
  for (const CollectorKind kind : kKinds) {
    if (name == NameOf(kind)) return kind;
    names.emplace_back(NameOf(kind));
  }
  throw InvalidArgument(
      "collector.kind is '{}'; it must be serial, local, synchronous or alternating{}", name,
      DidYouMean(name, names));
}

void CollectorOptions::Declare(Options& options) {
  options.Add("kind", &kind,
              {.choices = {"auto", "serial", "local", "synchronous", "alternating"},
               .consequence = "how threads share simulation and inference; auto measures at the "
                              "start and takes the fastest"});
  options.Add(
      "workers", &workers,
      {.minimum = 1,
       .maximum = kWorkersMax,
       .unit = "threads",
       .consequence = "threads that simulate; more than there are cores slow each other down"});
  options.Add("environments", &environments,
              {.minimum = 1,
               .maximum = kEnvironmentsMax,
               .consequence = "in all, shared equally by the workers: the width of a slab, and "
                              "with the horizon the batch of an update"});
  options.Add("groups", &groups,
              {.minimum = 2,
               .maximum = 64,
               .consequence = "alternating only: groups that take turns, so that one is simulated "
                              "while another is inferred"});
  options.Add(
      "horizon", &horizon,
      {.minimum = 1,
       .maximum = kStepsMax,
       .unit = "steps",
       .consequence = "steps of each environment in a slab; longer means fewer, larger updates"});
  options.Add("reset_between_slabs", &reset_between_slabs,
              {.consequence = "an environment whose episode ended waits for the next slab; its "
                              "rows there are not learned from"});
  options.Add("decorrelation_steps", &decorrelation_steps,
              {.minimum = 0,
               .maximum = kStepsMax,
               .unit = "steps",
               .consequence = "each environment first takes up to so many random steps, so that "
                              "episodes do not end together"});
  options.Add("on_environment_error", &on_environment_error,
              {.choices = {"stop", "restart"},
               .consequence = "stop ends the run at an environment's error; restart goes on with a "
                              "fresh episode, up to restart_budget times"});
  options.Add(
      "restart_budget", &restart_budget,
      {.minimum = 1,
       .consequence =
           "restarts of failed environments in a run before it stops after all, for each of "
           "topology.collectors"});
  options.Add(
      "pin", &pin,
      {.consequence = "each worker thread stays on one CPU; false lets the system move them"});
}

void CollectorPlan::Check() const {
  CheckAtLeast("workers", workers, 1);
  if (workers > kWorkersMax) {
    throw InvalidArgument("collector.workers is {}; it must be at most {}", workers, kWorkersMax);
  }
  CheckAtLeast("environments", environments, workers);
  CheckAtLeast("horizon", horizon, 1);
  CheckAtLeast("history", history, 0);
  CheckAtLeast("decorrelation_steps", decorrelation_steps, 0);
  CheckAtLeast("restart_budget", restart_budget, 0);
  if (!(patience_seconds > 0) || patience_seconds > 1e6) {
    throw InvalidArgument("collector.patience_seconds is {}; it must be above 0 and at most 1e6",
                          patience_seconds);
  }
  if (kind == CollectorKind::kSerial && workers != 1) {
    throw InvalidArgument(
        "collector.workers is {}, but a serial collector has one thread: set it to 1, or "
        "collector.kind to local",
        workers);
  }
  if (kind == CollectorKind::kAlternating && groups < 2) {
    throw InvalidArgument("collector.groups is {}; an alternating collector needs at least 2",
                          groups);
  }
  if (kind != CollectorKind::kAlternating && groups != 1) {
    throw InvalidArgument(
        "collector.groups is {}; only an alternating collector has groups, a {} one has 1", groups,
        NameOf(kind));
  }
  if (environments % (workers * groups) != 0) {
    throw InvalidArgument(
        "{} environments cannot be shared equally by collector.workers = {} x groups = {}; take a "
        "multiple of {}",
        environments, workers, groups, workers * groups);
  }
}

std::unique_ptr<Collector> MakeCollector(const CollectorPlan& plan,
                                         const EnvironmentEntry& environment,
                                         const PolicyFactory& policies) {
  plan.Check();
  if (!environment.make_group) {
    throw InvalidArgument("environment '{}' has no simulator", environment.spec.name);
  }
  switch (plan.kind) {
    case CollectorKind::kSerial:
      return MakeSerialCollector(plan, environment, policies);
    case CollectorKind::kLocal:
      return MakeLocalCollector(plan, environment, policies);
    case CollectorKind::kSynchronous:
      return MakeSynchronousCollector(plan, environment, policies);
    case CollectorKind::kAlternating:
      return MakeAlternatingCollector(plan, environment, policies);
  }
  throw InvalidArgument("collector.kind has no meaning: {}", static_cast<int>(plan.kind));
}

}  // namespace menger
