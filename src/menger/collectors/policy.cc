#include "menger/collectors/policy.h"

#include "menger/base/error.h"

namespace menger {

void Policy::FinalValues(const Slab& /*slab*/, std::span<const int> /*slots*/,
                         std::span<float> /*values*/) {
  throw FailedPrecondition("this policy chooses actions without a value of what it is shown");
}

}  // namespace menger
