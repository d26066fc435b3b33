#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/networks/distribution.h"

namespace menger {

// Independent categorical distributions side by side: element i of the action is one of counts[i].
// One head "policy" holds all logits; the mask, if any, has one flag a logit.
//
// Works on 16 rows at a time, so that the compiler can use vectors. Throws InvalidArgument for a
// mask that forbids every choice, naming the row, and for an action out of range.
class CategoricalDistribution : public Distribution {
 public:
  explicit CategoricalDistribution(std::vector<int> counts);

  std::vector<HeadSpec> heads() const override;
  void Sample(std::span<const Matrix> outputs, const std::uint8_t* mask,
              const CounterRandom& random, std::span<const int> environments, std::int64_t step,
              void* actions, float* log_probability) const override;
  void Mode(std::span<const Matrix> outputs, const std::uint8_t* mask,
            void* actions) const override;
  void Evaluate(std::span<const Matrix> outputs, const std::uint8_t* mask, const void* actions,
                float* log_probability, float* entropy) const override;
  void Gradient(std::span<const Matrix> outputs, const std::uint8_t* mask, const void* actions,
                std::span<const float> log_probability_gradient,
                std::span<const float> entropy_gradient,
                std::span<const Matrix> output_gradients) const override;

 private:
  std::vector<int> counts_;
  int width_ = 0;    // Logits in all.
  int largest_ = 0;  // Of the counts.
};

}  // namespace menger
