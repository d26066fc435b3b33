#include "menger/environments/worker_environments.h"

#include <memory>

#include "menger/environments/catalog.h"
#include "menger/environments/mujoco_environments.h"

namespace menger {

EnvironmentEntry OpenForWorker(const EnvironmentRequest& request) {
  EnvironmentCatalog catalog = NativeEnvironments();
  catalog.AddFamily([] { return std::make_unique<MujocoEnvironments>(); });
  const std::unique_ptr<EnvironmentFamily> family = catalog.FamilyOf(request.name);
  if (family != nullptr) {
    Options options(family->name());
    family->Declare(options);
    options.SetFromTexts(request.family);
  }
  return catalog.Open(request.name, EnvironmentUse::kTraining, family.get());
}

}  // namespace menger
