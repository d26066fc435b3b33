#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/collectors/policy.h"
#include "menger/environments/environment.h"

namespace menger {

// What a policy achieved over some episodes.
struct EvaluationResult {
  std::vector<double> returns;        // Sums of raw rewards, by episode.
  std::vector<std::int64_t> lengths;  // Steps, by episode.
  int cut = 0;                        // Episodes among them that were cut at steps_max.

  int episodes() const { return static_cast<int>(returns.size()); }

  // All of at least one episode.
  double mean() const;
  double standard_deviation() const;  // Of the population, as numpy.std.
  double minimum() const;
  double maximum() const;
  double mean_length() const;
};

// What to tell of episodes that were cut; "" if none was.
std::string CutText(const EvaluationResult& result, const std::string& environment,
                    std::int64_t steps_max);

// "mean 487.2, standard deviation 12.0, minimum 430.0, maximum 500.0 over 20 episodes"
std::string ToString(const EvaluationResult& result);

// Environments that play at the same time: more episodes take several passes.
inline constexpr int kEvaluationEnvironmentsMax = 1024;

// Which episodes are played.
struct EvaluationPlan {
  int episodes = 20;
  std::uint64_t seed = 0;           // Episode i runs in an environment seeded with seed + i.
  bool clip_actions = false;        // As in training; see GroupOptions.
  int history = 0;                  // Frames of history that the policy needs.
  std::int64_t steps_max = 10'000;  // Of one episode, where its environment has no time limit.

  // Asked on the calling thread every few steps of all environments; once true, it stays so.
  std::function<bool()> stop_requested = [] { return false; };

  std::atomic<std::int64_t>* steps =
      nullptr;  // Borrowed; counts steps, for who waits. May be null.
};

// Looks on while an episode is played alone: called after the reset and after each step.
using EpisodeWatcher = std::function<void(EnvironmentGroup&)>;

// Plays exactly one episode in each of `episodes` fresh environments: taking the first that end
// out of a few busy ones would favour short episodes. The environments are nobody else's, and the
// policies take the newest published parameters first.
//
// `policies` are at least one, all alike: each plays an equal share of the environments on a thread
// of its own, the first on the calling one. The result is the same for any number of them; those
// that are not batch-invariant, whose numbers would depend on it, leave all to the first. An
// episode that reaches steps_max counts as it is then. Throws what an environment throws. More than
// kEvaluationEnvironmentsMax episodes are played in several passes, with the same result;
// with a watcher, one after the other.
//
// Stopped, it returns the episodes that ended until then: fewer than the plan's, perhaps none, and
// rather the short ones.
EvaluationResult Evaluate(const EvaluationPlan& plan, const EnvironmentEntry& environment,
                          std::span<const std::unique_ptr<Policy>> policies,
                          const EpisodeWatcher& watch = {});

}  // namespace menger
