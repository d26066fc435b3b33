#pragma once

#include <memory>

#include "menger/base/function_ref.h"
#include "menger/base/worker_pool.h"

namespace menger {

// Threads for those who compute in turn on one thread, as a learner's networks and its update rule
// do. With a pool each, the workers of one would have to be woken while those of another still spin
// in their way.
//
// Copies are handles of the same threads, which end with the last of them. Of several threads, one
// caller at a time, of all handles together (FailedPrecondition); of one, any number.
class SharedWorkerPool {
 public:
  // New threads; a number where one is expected asks for threads of its own. Throws as WorkerPool.
  SharedWorkerPool(int threads)  // NOLINT(google-explicit-constructor)
      : pool_(std::make_shared<WorkerPool>(threads, "learn")) {}

  int threads() const { return pool_->threads(); }
  void Run(int tasks, FunctionRef<void(int task)> function) const { pool_->Run(tasks, function); }

 private:
  std::shared_ptr<WorkerPool> pool_;
};

}  // namespace menger
