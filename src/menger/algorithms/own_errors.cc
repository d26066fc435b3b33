#include "menger/algorithms/own_errors.h"

#include <algorithm>
#include <cmath>

#include "menger/algorithms/q_losses.h"
#include "menger/algorithms/value_policy.h"

namespace menger {

OwnErrors::OwnErrors(const OwnErrorRule& rule, int streams, int history,
                     const ValuePolicies& policies, const ParameterSource& source)
    : rule_(rule),
      history_(history),
      policy_(policies.Make(source, PolicyMode::kGreedy, /*seed=*/0)),
      steps_(static_cast<std::size_t>(streams) * static_cast<std::size_t>(history)) {}

double OwnErrors::Worth(float value) const {
  return rule_.rescaling > 0 ? RestoreValue(value, rule_.rescaling) : value;
}

void OwnErrors::Decision(int stream, std::int64_t step, const Slab& slab, int row, int position,
                         float reward) {
  At(stream, step) = {.reward = reward,
                      .taken = *slab.policy<float>(ValuePolicies::kActionValue, row, position),
                      .worth = Worth(*slab.policy<float>(ValuePolicies::kValue, row, position))};
}

void OwnErrors::Final(int stream, std::int64_t step, const Slab& slab, int row, int position) {
  Step& last = At(stream, step);
  last = {};
  if (slab.terminated(row)[position] != 0) return;
  const int slot = slab.final_index(row)[position];
  float value = 0;
  policy_->Refresh();
  policy_->FinalValues(slab, {&slot, 1}, {&value, 1});
  last.worth = Worth(value);
}

void OwnErrors::Observation(int stream, std::int64_t step, const Slab& slab, int row,
                            int position) {
  At(stream, step) = {.worth = Worth(*slab.policy<float>(ValuePolicies::kValue, row, position))};
}

double OwnErrors::Of(int stream, std::int64_t decision, std::int64_t last) const {
  const auto at = [&](std::int64_t step) -> const Step& {
    return steps_[static_cast<std::size_t>(stream * history_ + step % history_)];
  };
  const std::int64_t next = std::min<std::int64_t>(decision + rule_.n_step, last);
  double target = at(next).worth;
  for (std::int64_t step = next; step-- > decision;) {
    target = at(step).reward + rule_.discount * target;
  }
  if (rule_.rescaling > 0) target = RescaleValue(target, rule_.rescaling);
  return std::abs(target - at(decision).taken);
}

}  // namespace menger
