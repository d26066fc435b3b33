#include "menger/cli/commands.h"
#include "menger/environments/catalog.h"

// The program is composed here: its environments; its algorithms are AllAlgorithms().
int main(int argc, char** argv) {
  const menger::EnvironmentCatalog environments = menger::NativeEnvironments();
  return menger::RunProgram(argc, argv, environments);
}
