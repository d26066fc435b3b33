#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/collectors/policy.h"
#include "menger/parameters/parameter_source.h"
#include "menger/tensor/slab.h"

namespace menger {

class ValuePolicies;

// How an algorithm learns from returns, as far as their errors need it.
struct OwnErrorRule {
  int n_step = 1;
  double discount = 0.99;
  double rescaling = 0;  // See RescaleValue; 0: values are those of returns.
};

// Errors of n-step returns by the values that policies of the DQN family wrote down when they
// acted: |sum of discounted rewards + what the largest value there was worth after them - the value
// of the action|. So new items come to replay with priorities that cost no further pass of the
// network (Horgan et al. 2018, section 3); only what a time limit cut short needs one, for its
// final observation. Of distributions the means count. One thread.
class OwnErrors {
 public:
  // Of so many streams of steps, each remembered over `history` of them. Final observations are
  // valued by the newest parameters of `source`, which outlives it.
  OwnErrors(const OwnErrorRule& rule, int streams, int history, const ValuePolicies& policies,
            const ParameterSource& source);

  // A step of a stream: a decision with its reward as it is kept, or an episode's last, on which
  // nothing was done: final_index says where a slab has it.
  void Decision(int stream, std::int64_t step, const Slab& slab, int row, int position,
                float reward);
  void Final(int stream, std::int64_t step, const Slab& slab, int row, int position);
  // Likewise, of an observation that the row itself has.
  void Observation(int stream, std::int64_t step, const Slab& slab, int row, int position);

  // Of a decision whose stream goes to `last` at least, or as far as the return goes.
  double Of(int stream, std::int64_t decision, std::int64_t last) const;

 private:
  struct Step {
    float reward = 0;
    float taken = 0;   // The value of the action.
    double worth = 0;  // The largest value there, of returns; 0 where an episode has ended.
  };

  Step& At(int stream, std::int64_t step) {
    return steps_[static_cast<std::size_t>(stream * history_ + step % history_)];
  }
  double Worth(float value) const;

  const OwnErrorRule rule_;
  const std::int64_t history_;
  const std::unique_ptr<Policy> policy_;
  std::vector<Step> steps_;  // [streams, history], a ring each.
};

}  // namespace menger
