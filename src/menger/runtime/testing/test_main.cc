#include <gtest/gtest.h>

#include "menger/runtime/worker_main.h"

// The tests are their own workers.
int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
