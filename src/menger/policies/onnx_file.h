#pragma once

#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/policy_description.h"

namespace menger {

// The bytes of an ONNX model (opset 17) that acts as the policy does, for a batch of observations.
//
// Inputs are the arrays of the observation under their names, with the batch in front; "frames" and
// "state", where frames are stacked and where the network is recurrent, are what the outputs
// "next_frames" and "next_state" were a step before, zeros at an episode's start. The output
// "action" is what the environment is given; "logits", "values" (expected returns) or "mean"
// (before clipping) is what it was chosen by. A mask that allows nothing gives 0, a code out of
// range counts as none. `about` is kept as the model's properties. Throws InvalidArgument for a
// model of 2 GB or more.
std::string OnnxOf(const PolicyDescription& policy,
                   const std::vector<std::pair<std::string, std::string>>& about);

}  // namespace menger
