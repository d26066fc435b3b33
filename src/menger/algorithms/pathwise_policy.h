#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/observation_encoder.h"
#include "menger/base/counter_random.h"
#include "menger/collectors/policy.h"
#include "menger/networks/batch_memory.h"
#include "menger/networks/network.h"
#include "menger/networks/pathwise_distribution.h"
#include "menger/parameters/publication.h"

namespace menger {

// Acts with a copy of an actor, following a publication: the actor's parameters and, after them, 1
// where it is still to act uniformly at random, else 0. Draws are functions of environment and
// step. Batch-invariant when the network is. A greedy policy adds no noise.
class PathwisePolicy final : public Policy {
 public:
  struct Parts {
    PolicySpec spec;
    std::shared_ptr<const ObservationEncoder> encoder;
    std::shared_ptr<const PathwiseDistribution> distribution;
    std::shared_ptr<const ActionScaling> scaling;
    std::shared_ptr<Publication> publication;
    std::unique_ptr<Network> network;
    float exploration = 1;  // What standard normal noise is multiplied by.
  };
  PathwisePolicy(Parts parts, PolicyMode mode, std::uint64_t seed);

  const PolicySpec& spec() const override { return parts_.spec; }
  void Refresh() override;
  void Act(Slab& slab, int row, PositionRange positions) override;

 private:
  const void* Observations(const Slab& slab, int row, PositionRange positions);
  void DrawNoise(const Slab& slab, int row, PositionRange positions);
  void DrawUniform(const Slab& slab, int row, PositionRange positions);

  Parts parts_;
  const PolicyMode mode_;
  const CounterRandom random_;
  std::shared_ptr<const ParameterBlob> blob_;
  bool uniform_ = false;

  // Scratch; grows to the largest range once.
  BatchMemory encoded_;
  std::vector<float> noise_;    // [positions, elements]
  std::vector<float> actions_;  // [positions, elements]
};

}  // namespace menger
