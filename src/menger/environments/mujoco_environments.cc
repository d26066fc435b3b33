#include "menger/environments/mujoco_environments.h"

#include <algorithm>
#include <memory>

#include "menger/base/error.h"
#include "menger/base/plugin.h"

namespace menger {
namespace {

constexpr std::string_view kNames[] = {"InvertedPendulum-v5", "HalfCheetah-v5", "Hopper-v5",
                                       "Walker2d-v5",         "Ant-v5",         "Humanoid-v5"};

// What mujoco/library.h declares.
using OpenFunction = EnvironmentEntry*(const std::string* environment,
                                       const std::string* model_folder);

OpenFunction* LoadLibrary(const std::string& environment) {
  try {
    return reinterpret_cast<OpenFunction*>(
        LoadPlugin({"libmenger_mujoco.so", "MENGER_MUJOCO_LIBRARY", "menger_open_mujoco"}));
  } catch (const Error& error) {
    throw FailedPrecondition("{} needs MuJoCo, which `make mujoco` installs: {}", environment,
                             error.what());
  }
}

}  // namespace

std::string MujocoEnvironments::description() const {
  return "Gymnasium's MuJoCo tasks, version 5, simulated natively";
}

std::vector<std::string> MujocoEnvironments::examples() const {
  return {std::begin(kNames), std::end(kNames)};
}

bool MujocoEnvironments::Serves(std::string_view environment) const {
  return std::ranges::find(kNames, environment) != std::end(kNames);
}

void MujocoEnvironments::Declare(Options& options) {
  options.Add("models", &models_,
              {.consequence = "the folder with the XML models; empty: those of the gymnasium "
                              "package beside which the program was built"});
}

EnvironmentEntry MujocoEnvironments::Open(const std::string& environment,
                                          EnvironmentUse /*use*/) const {
  OpenFunction* const open = LoadLibrary(environment);
  try {
    const std::unique_ptr<EnvironmentEntry> entry(open(&environment, &models_));
    return *entry;
  } catch (...) {
    throw TranslateCurrentException();
  }
}

}  // namespace menger
