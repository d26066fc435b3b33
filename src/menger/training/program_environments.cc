#include "menger/training/program_environments.h"

#include <memory>

#include "menger/environments/atari/atari_environments.h"
#include "menger/environments/hosted/hosted_environments.h"
#include "menger/environments/mujoco_environments.h"

namespace menger {

EnvironmentCatalog ProgramEnvironments() {
  EnvironmentCatalog environments = NativeEnvironments();
  environments.AddFamily([] { return std::make_unique<AtariEnvironments>(); });
  environments.AddFamily([] { return std::make_unique<MujocoEnvironments>(); });
  // Last: it takes whatever looks like a name of Gymnasium's.
  environments.AddFamily([] { return std::make_unique<HostedEnvironments>(); });
  return environments;
}

}  // namespace menger
