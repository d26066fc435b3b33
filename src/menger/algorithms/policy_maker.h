#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "menger/algorithms/policy_description.h"
#include "menger/collectors/policy.h"
#include "menger/parameters/parameter_source.h"

namespace menger {

// How a policy chooses: as in training, or for evaluation (most likely action, statistics frozen).
enum class PolicyMode : std::uint8_t { kSample, kGreedy };

// Makes policies of one algorithm for one environment wherever there are parameters to follow:
// beside a learner, or in a process that has none. Immutable; any thread. Outlives its policies.
class PolicyMaker {
 public:
  virtual ~PolicyMaker() = default;

  virtual const PolicySpec& spec() const = 0;
  virtual int history() const { return 0; }  // Frames of history that slabs need.

  // What a version that its policies follow consists of.
  virtual const ParameterManifest& manifest() const = 0;

  // A policy that acts with the newest version of `source`, which outlives it. Throws
  // FailedPrecondition, naming the first difference, if that has another manifest.
  virtual std::unique_ptr<Policy> Make(const ParameterSource& source, PolicyMode mode,
                                       std::uint64_t seed) const = 0;

  // What the greedy policy of a version computes, as plain data. Throws FailedPrecondition, saying
  // why, where that cannot be had.
  virtual PolicyDescription Describe(std::span<const float> version) const = 0;
};

}  // namespace menger
