#include "menger/cli/commands.h"
#include "menger/runtime/worker_main.h"
#include "menger/training/program_environments.h"

// The program is composed here: its environments; its algorithms are AllAlgorithms().
int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();  // Started by a runtime, to do its calls.
  return menger::RunProgram(argc, argv, menger::ProgramEnvironments());
}
