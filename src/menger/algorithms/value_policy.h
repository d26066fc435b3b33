#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "menger/algorithms/action_values.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/observation_encoder.h"
#include "menger/base/counter_random.h"
#include "menger/collectors/policy.h"
#include "menger/networks/batch_memory.h"
#include "menger/networks/network.h"
#include "menger/networks/noisy_network.h"
#include "menger/parameters/publication.h"

namespace menger {

// Takes the action of the largest expected value, or with probability epsilon any that is allowed;
// with a noisy network the noise explores too.
//
// The publication holds the network's parameters and, after them, the epsilon to train with: it
// belongs to the parameter version, as all that acting depends on does. A greedy policy has an
// epsilon of its own and no noise. Epsilon's draws are functions of environment and step, noise is
// one of the step (drawn anew for each): slabs do not depend on the batching if the network is
// batch-invariant.
class ValuePolicy final : public Policy {
 public:
  static constexpr int kValue = 0;  // Policy column: float32, the largest expected value.

  struct Parts {
    PolicySpec spec;
    std::shared_ptr<const ObservationEncoder> encoder;  // Immutable.
    ActionValues values;
    std::shared_ptr<Publication> publication;  // Thread-safe.
    std::unique_ptr<Network> network;
    NoisyNetwork* noisy = nullptr;  // The network, if its weights are noisy; borrowed from above.
    double evaluation_epsilon = 0;
  };
  ValuePolicy(Parts parts, PolicyMode mode, std::uint64_t seed);

  const PolicySpec& spec() const override { return parts_.spec; }
  void Refresh() override;
  void Act(Slab& slab, int row, PositionRange positions) override;

 private:
  const void* Observations(const Slab& slab, int row, PositionRange positions);
  int Choose(std::span<const float> values, const std::uint8_t* mask, int environment,
             std::int64_t step) const;

  Parts parts_;
  const PolicyMode mode_;
  const CounterRandom choice_random_;
  const CounterRandom noise_random_;
  std::shared_ptr<const ParameterBlob> blob_;
  float epsilon_ = 0;
  std::int64_t noise_step_ = -1;  // Of the noise that the network has.

  // Scratch; grows to the largest range once.
  BatchMemory encoded_;
  std::vector<float> combined_;
  std::vector<float> values_;
};

}  // namespace menger
