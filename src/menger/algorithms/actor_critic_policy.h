#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/observation_encoder.h"
#include "menger/base/counter_random.h"
#include "menger/collectors/policy.h"
#include "menger/networks/batch_memory.h"
#include "menger/networks/distribution.h"
#include "menger/networks/network.h"
#include "menger/parameters/publication.h"

namespace menger {

// Acts with a copy of an actor-critic network, following a publication. See
// ActorCritic::MakePolicy.
//
// Greedy policies take the most likely action and write a log-probability of 0. Batch-invariant
// when the network is.
class ActorCriticPolicy final : public Policy {
 public:
  struct Parts {
    PolicySpec spec;
    std::shared_ptr<const ObservationEncoder> encoder;
    std::shared_ptr<const Distribution> distribution;
    std::shared_ptr<Publication> publication;
    std::unique_ptr<Network> network;
    float observation_clip = 10;
  };
  ActorCriticPolicy(Parts parts, PolicyMode mode, std::uint64_t seed);

  const PolicySpec& spec() const override { return parts_.spec; }
  void Refresh() override;
  void Act(Slab& slab, int row, PositionRange positions) override;

 private:
  const void* Observations(const Slab& slab, int row, PositionRange positions);

  Parts parts_;
  const PolicyMode mode_;
  const CounterRandom random_;
  std::shared_ptr<const ParameterBlob> blob_;
  bool normalises_;
  BatchMemory encoded_;
};

}  // namespace menger
