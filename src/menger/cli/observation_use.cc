#include "menger/cli/observation_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "menger/algorithms/algorithm.h"

namespace menger {
namespace {

constexpr std::int64_t kUsualSteps = 100'000;

std::string DefaultNetwork(const EnvironmentSpec& spec) {
  for (const auto& algorithm : AllAlgorithms()) {
    if (algorithm->name() != "ppo") continue;
    for (const OptionDefault& value : algorithm->Defaults(spec, kUsualSteps)) {
      if (value.section == "network" && value.name == "kind") return ToText(value.value);
    }
  }
  return NetworkOptions().kind;
}

bool IsImage(const LeafSpec& leaf) {
  return leaf.space == Space::kBox && leaf.dtype == DataType::kUint8 && leaf.shape.size() == 3;
}

// `beside`: what numbers are beside, if anything.
std::string UseOf(const LeafSpec& leaf, bool frames, const char* beside) {
  if (leaf.name == kActionMask) return "says which actions are allowed";
  if (leaf.space == Space::kMask) {
    return fmt::format("{} flags, read as numbers{}", leaf.elements(), beside);
  }
  if (!leaf.counts.empty()) {
    return fmt::format("{} code{}, read as {} numbers of which one each is 1{}", leaf.counts.size(),
                       leaf.counts.size() == 1 ? "" : "s",
                       std::accumulate(leaf.counts.begin(), leaf.counts.end(), std::int64_t{0}),
                       beside);
  }
  if (IsImage(leaf)) {
    return fmt::format("an image [channels, height, width], read as {}",
                       frames ? "stacked frames by convolutions" : "numbers of 0 to 1");
  }
  return fmt::format("{} number{}{}", leaf.elements(), leaf.elements() == 1 ? "" : "s", beside);
}

std::string UseOfAction(const LeafSpec& leaf) {
  if (leaf.space == Space::kDiscrete) return fmt::format("one of {} choices", leaf.counts[0]);
  if (leaf.space == Space::kMultiDiscrete) return fmt::format("{} choices", leaf.counts.size());
  return fmt::format("{} continuous number{}", leaf.elements(), leaf.elements() == 1 ? "" : "s");
}

}  // namespace

void PrintUse(const EnvironmentSpec& spec) {
  NetworkOptions network;
  network.kind = DefaultNetwork(spec);
  const bool frames = network.reads_frames();
  fmt::print("what menger makes of it:\n");
  for (const LeafSpec& leaf : spec.observation.leaves()) {
    fmt::print("  {} {} of {}: {}\n", leaf.name, ToString(leaf.shape), NameOf(leaf.dtype),
               UseOf(leaf, frames, frames ? ", beside the image" : ""));
  }
  fmt::print("  {}: {}\n", spec.action[0].name, UseOfAction(spec.action[0]));
  fmt::print("  network of a recipe of two lines: {}\n", network.kind);
}

}  // namespace menger
