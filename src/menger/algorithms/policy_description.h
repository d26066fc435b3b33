#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/algorithms/action_values.h"
#include "menger/algorithms/observation_encoder.h"
#include "menger/algorithms/transforms.h"
#include "menger/networks/network_layers.h"
#include "menger/tensor/spec.h"

namespace menger {

// How the outputs of a network become an action.
enum class ActionRule : std::uint8_t {
  kLargestLogit,  // Of one head, for each element of the action among its choices.
  kMean,          // One head is the action.
  kLargestValue,  // Of the expected returns of the actions; see ActionValues.
};

// A greedy policy as plain data, parameters included: all that is between what an environment shows
// and what it is given. What `menger evaluate` plays, without the random actions that
// dqn.evaluation_epsilon may mix in. Value type.
struct PolicyDescription {
  // What is read, in the order of the encoding: numbers and codes as ObservationEncoder takes them,
  // after the image that they stand beside if there is one. The action mask may be among them.
  std::vector<LeafSpec> observation;
  int mask_leaf = -1;   // Among them.
  int frame_stack = 1;  // Encodings that the network sees at once, the newest last: images in one
                        // stack, then the numbers beside them in one of their own.

  // clamp(x * scale + shift, -clip, clip) of every element of the stack; where network.beside is
  // not 0, of the numbers' alone. Empty: as it is. What the encoding multiplies by (pixels by
  // 1/255) is in the scale.
  std::vector<float> scale;
  std::vector<float> shift;
  float observation_clip = 0;

  NetworkLayers network;  // Its heads are those that the rule reads, in its order.
  ActionRule rule = ActionRule::kLargestLogit;
  ActionValues values;  // kLargestValue.

  LeafSpec action;
  bool clips_action = false;  // kMean: to the action's bounds.
};

// Begins a description with what does not depend on the algorithm. `statistics` are the scales and
// shifts of the encoding, or nothing.
PolicyDescription DescribeObservation(const Spec& observation, const ObservationEncoder& encoder,
                                      const TransformOptions& transforms,
                                      std::span<const float> statistics, const LeafSpec& action);

}  // namespace menger
