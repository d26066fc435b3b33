#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/observation_encoder.h"
#include "menger/base/counter_random.h"
#include "menger/collectors/policy.h"
#include "menger/networks/distribution.h"
#include "menger/networks/network.h"
#include "menger/parameters/manifest.h"
#include "menger/parameters/publication.h"

namespace menger {

// What Evolution Strategies act with: a network that gives the best action itself. The learner and
// each of its workers make the same one.
struct EsModel {
  // Throws InvalidArgument for networks, actions, masks or transforms that do not fit.
  explicit EsModel(const AlgorithmContext& context);

  static NetworkSpec NetworkSpecFor(const AlgorithmContext& context,
                                    const ObservationEncoder& encoder,
                                    const Distribution& distribution);

  bool normalises() const { return manifest.size() > network->manifest().size(); }

  std::shared_ptr<const ObservationEncoder> encoder;
  std::shared_ptr<const Distribution> distribution;
  std::unique_ptr<Network> network;
  ParameterManifest manifest;  // The network's; with normalise_observation, then scales and shifts.
  float observation_clip = 10;
};

// Takes the action that the network gives; continuous ones with a little noise, a function of its
// seed, environment and step. Follows a publication if it has one; otherwise it acts with what Use
// was given.
class EsPolicy final : public Policy {
 public:
  EsPolicy(EsModel model, double action_noise, std::shared_ptr<Publication> publication,
           std::uint64_t seed);

  // Parameters and, if observations are normalised, scales and shifts. Restarts the noise.
  void Use(std::span<const float> parameters, std::span<const float> statistics,
           std::uint64_t seed);

  const EsModel& model() const { return model_; }
  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override;
  void Act(Slab& slab, int row, PositionRange positions) override;

 private:
  const void* Observations(const Slab& slab, int row, PositionRange positions);
  void AddNoise(Slab& slab, int row, PositionRange positions);

  EsModel model_;
  const PolicySpec spec_;
  const float action_noise_;                        // Standard deviation.
  const std::shared_ptr<Publication> publication_;  // Null: none.
  const std::uint64_t seed_;
  CounterRandom random_;
  std::shared_ptr<const ParameterBlob> blob_;
  std::vector<float> statistics_;
  std::vector<std::byte> encoded_;  // Scratch; grows to the largest range once.
};

}  // namespace menger
