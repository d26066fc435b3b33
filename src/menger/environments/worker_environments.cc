#include "menger/environments/worker_environments.h"

#include <algorithm>
#include <memory>

#include "menger/base/error.h"
#include "menger/environments/catalog.h"
#include "menger/environments/mujoco_environments.h"

namespace menger {

EnvironmentEntry OpenForWorker(const EnvironmentRequest& request) {
  EnvironmentCatalog catalog = NativeEnvironments();
  catalog.AddFamily([] { return std::make_unique<MujocoEnvironments>(); });
  const std::unique_ptr<EnvironmentFamily> family = catalog.FamilyOf(request.name);
  const auto& entries = catalog.entries();
  if (family == nullptr &&
      std::none_of(entries.begin(), entries.end(), [&](const EnvironmentEntry& entry) {
        return entry.spec.name == request.name;
      })) {
    throw FailedPrecondition(
        "{} cannot be played by workers of the runtime, which open the program's own environments "
        "and MuJoCo's; algorithms with a section [collector] (ppo, a2c, dqn) take every one",
        request.name);
  }
  if (family != nullptr) {
    Options options(family->name());
    family->Declare(options);
    options.SetFromTexts(request.family);
  }
  return catalog.Open(request.name, EnvironmentUse::kTraining, family.get());
}

}  // namespace menger
