#include "menger/environments/masked_cart_pole.h"

#include <utility>

namespace menger {

EnvironmentSpec MaskedCartPole::Spec() {
  EnvironmentSpec spec = CartPole::Spec();
  const LeafSpec whole = spec.observation[0];
  spec.observation =
      menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {2},
                                  {whole.low[0], whole.low[2]}, {whole.high[0], whole.high[2]})});
  spec.name = "MaskedCartPole-v1";
  spec.description = "CartPole without speeds: needs a policy with a memory.";
  return spec;
}

}  // namespace menger
