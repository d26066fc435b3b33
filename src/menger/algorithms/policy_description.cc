#include "menger/algorithms/policy_description.h"

#include <algorithm>
#include <limits>

namespace menger {
namespace {

// What the encoding multiplies by is part of the normalisation here, or all of it.
void AddScales(std::span<const float> scales, PolicyDescription& description) {
  if (scales.empty()) return;
  if (description.scale.empty()) {
    description.scale.assign(scales.size(), 1.0F);
    description.shift.assign(scales.size(), 0.0F);
    description.observation_clip = std::numeric_limits<float>::max();
  }
  for (std::size_t i = 0; i < scales.size(); ++i) description.scale[i] *= scales[i];
}

}  // namespace

PolicyDescription DescribeObservation(const Spec& observation, const ObservationEncoder& encoder,
                                      const TransformOptions& transforms,
                                      std::span<const float> statistics, const LeafSpec& action) {
  PolicyDescription description;
  if (encoder.has_image()) description.observation.push_back(observation[encoder.image_leaf()]);
  for (int leaf = 0; leaf < observation.size(); ++leaf) {
    const bool mask = leaf == encoder.mask_leaf();
    if (leaf == encoder.image_leaf() || (!mask && !encoder.Reads(leaf))) continue;
    if (mask) description.mask_leaf = static_cast<int>(description.observation.size());
    description.observation.push_back(observation[leaf]);
  }
  description.frame_stack = encoder.history() + 1;
  if (!statistics.empty()) {
    const std::size_t elements = statistics.size() / 2;
    description.scale.assign(statistics.begin(), statistics.begin() + elements);
    description.shift.assign(statistics.begin() + elements, statistics.end());
    description.observation_clip = static_cast<float>(transforms.observation_clip);
  }
  AddScales(encoder.scales(), description);
  description.action = action;
  description.clips_action = action.space == Space::kBox && transforms.actions == "clip";
  return description;
}

}  // namespace menger
