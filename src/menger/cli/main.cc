#include <memory>

#include "menger/cli/commands.h"
#include "menger/environments/atari/atari_environments.h"
#include "menger/environments/catalog.h"
#include "menger/environments/hosted/hosted_environments.h"
#include "menger/environments/mujoco_environments.h"
#include "menger/runtime/worker_main.h"

// The program is composed here: its environments; its algorithms are AllAlgorithms().
int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  menger::EnvironmentCatalog environments = menger::NativeEnvironments();
  environments.AddFamily([] { return std::make_unique<menger::AtariEnvironments>(); });
  environments.AddFamily([] { return std::make_unique<menger::MujocoEnvironments>(); });
  // Last: it takes whatever looks like a name of Gymnasium's.
  environments.AddFamily([] { return std::make_unique<menger::HostedEnvironments>(); });
  return menger::RunProgram(argc, argv, environments);
}
