#include "menger/environments/mujoco/library.h"

#include <memory>

#include "menger/base/error.h"
#include "menger/environments/mujoco/ant.h"
#include "menger/environments/mujoco/humanoid.h"
#include "menger/environments/mujoco/inverted_pendulum.h"
#include "menger/environments/mujoco/planar_walkers.h"
#include "menger/environments/simulator_group.h"

namespace menger {
namespace {

// The entry of the one that is called `name`; null if none is.
template <typename... Environments>
std::unique_ptr<EnvironmentEntry> OpenOneOf(const std::string& name, const std::string& folder) {
  std::unique_ptr<EnvironmentEntry> entry;
  const auto open = [&]<typename E>() {
    if (name != E::kName) return false;
    entry = std::make_unique<EnvironmentEntry>(EntryOf<E>(LoadMujocoModel(folder, E::kModelFile)));
    return true;
  };
  (open.template operator()<Environments>() || ...);
  return entry;
}

}  // namespace
}  // namespace menger

menger::EnvironmentEntry* menger_open_mujoco(const std::string* environment,
                                             const std::string* model_folder) {
  using namespace menger;
  try {
    if (mj_version() != mjVERSION_HEADER) {
      throw FailedPrecondition("libmujoco is version {}; this library was built for version {}",
                               mj_version(), mjVERSION_HEADER);
    }
    auto entry = OpenOneOf<InvertedPendulum, HalfCheetah, Hopper, Walker2d, Ant, Humanoid>(
        *environment, model_folder->empty() ? MENGER_MUJOCO_MODELS : *model_folder);
    if (entry == nullptr) throw NotFound("there is no MuJoCo environment '{}'", *environment);
    return entry.release();
  } catch (...) {
    throw TranslateCurrentException();
  }
}
