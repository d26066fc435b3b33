#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/base/counter_random.h"
#include "menger/collectors/policy.h"
#include "menger/environments/environment.h"

namespace menger {

// Takes uniformly distributed actions: Gymnasium's action_space.sample for every leaf of the action
// spec.
//
// Discrete choices respect the observation's `action_mask`: one flag for each choice of the only
// discrete or multi-discrete leaf. Box elements are uniform between their bounds; where bounds are
// infinite they are normal (none finite) or exponential (one finite). It has no parameters, writes
// version 0, and is batch-invariant.
class RandomPolicy : public Policy {
 public:
  // Throws InvalidArgument on a leaf that cannot be sampled or a mask whose size fits no action
  // leaf.
  RandomPolicy(const Spec& observation, const Spec& action, std::uint64_t seed);

  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override {}

  // Throws InvalidArgument, naming environment and step, when a mask allows no action.
  void Act(std::span<const ActSlice> slices) override;
  using Policy::Act;

 private:
  class Words;

  void ActOn(const ActSlice& slice) const;

  void SampleLeaf(Slab& slab, int leaf, int row, int position, const std::uint8_t* mask,
                  Words& words) const;
  static std::int64_t Choose(std::int64_t count, const std::uint8_t* mask, Words& words);

  const PolicySpec spec_;
  const Spec action_;
  int mask_leaf_ = -1;  // Of the observation.
  const CounterRandom random_;
};

PolicyFactory RandomPolicies(const EnvironmentSpec& environment, std::uint64_t seed);

}  // namespace menger
