#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/algorithm_context.h"
#include "menger/algorithms/observation_encoder.h"
#include "menger/algorithms/policy_description.h"
#include "menger/collectors/policy.h"
#include "menger/networks/network.h"
#include "menger/parameters/manifest.h"

namespace menger {

// What the network of a policy is to be, beside what a recipe says.
struct PolicyModelOptions {
  std::vector<HeadSpec> heads;
  std::optional<double> noisy_sigma;  // Its weights are noisy: see NoisyNetwork.
  std::string extra;  // Name of one more number that acting depends on; empty: there is none.
};

// What a network acts with, and what is published of it: the same for the learner and for all who
// act. Immutable; any thread.
//
// A version's values are the network's parameters; then, with normalise_observation, a scale and a
// shift of each number; then the extra number.
class PolicyModel {
 public:
  // The network's first parameters are functions of the context's seed. Throws InvalidArgument for
  // observations, masks and transforms that do not fit together.
  PolicyModel(const AlgorithmContext& context, const PolicyModelOptions& options);

  const ObservationEncoder& encoder() const { return encoder_; }
  const ParameterManifest& manifest() const { return manifest_; }
  const Network& network() const { return *network_; }  // With its first parameters.
  bool normalises() const { return statistics_ > 0; }

  // What of it is in every PolicySpec: waits_for_device, batch_invariant, and the recurrent state.
  PolicySpec Spec() const;

  // Parts of a version's values.
  template <typename Float>
  std::span<Float> ParametersIn(std::span<Float> version) const {
    return version.first(parameters_);
  }
  template <typename Float>
  std::span<Float> StatisticsIn(std::span<Float> version) const {
    return version.subspan(parameters_, statistics_);
  }

  // Normalises encoded rows of numbers in place; nothing where normalises() is false. Pixels stay
  // as they are.
  void Normalise(std::span<float> rows, std::span<const float> version) const;

  // A description with everything but the rule; its network has the outputs of these heads.
  PolicyDescription Describe(std::span<const float> version,
                             std::span<const std::string> heads) const;

 private:
  const AlgorithmContext context_;
  const ObservationEncoder encoder_;
  const NetworkSpec spec_;
  const std::unique_ptr<const Network> network_;
  std::size_t parameters_ = 0;  // Floats of a version's parts.
  std::size_t statistics_ = 0;
  ParameterManifest manifest_;
};

}  // namespace menger
