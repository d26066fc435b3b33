// Compiled with -O3: the loop below is meant to be vectorised.
#include "menger/algorithms/target_network.h"

#include <algorithm>
#include <cstddef>

namespace menger {
namespace {

constexpr std::size_t kPart = 16384;  // Parameters that are worth a thread.

void Move(std::span<const float> from, std::span<float> to, float rate) {
  if (rate == 1.0F) {
    std::copy(from.begin(), from.end(), to.begin());
    return;
  }
  const float* const __restrict source = from.data();
  float* const __restrict target = to.data();
  for (std::size_t i = 0; i < to.size(); ++i) target[i] += rate * (source[i] - target[i]);
}

}  // namespace

void TargetNetwork::Follow(Network& network, float rate) {
  const std::span<const float> from = network.parameters();
  const std::span<float> to = copy_->parameters();
  const std::size_t parts = (to.size() + kPart - 1) / kPart;
  threads_.Run(static_cast<int>(parts), [&](int part) {
    const std::size_t begin = static_cast<std::size_t>(part) * kPart;
    const std::size_t count = std::min(kPart, to.size() - begin);
    Move(from.subspan(begin, count), to.subspan(begin, count), rate);
  });
  copy_->ParametersChanged();
}

}  // namespace menger
