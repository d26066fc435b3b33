// A program's Runtime has its node in it. Apart from the rest of Runtime, which workers have, too,
// and which knows nothing of nodes.
#include <atomic>
#include <cstdint>

#include "menger/runtime/calls/runtime.h"
#include "menger/runtime/calls/worker_identity.h"
#include "menger/runtime/driver/local_node.h"

namespace menger {
namespace {

// What one would say of a Runtime inside of a call: its workers would be started by a worker, and
// wait for CPUs of which nobody knows any longer who has them.
void CheckPlace() {
  if (ThisCall() == nullptr && !BecameWorker()) return;
  throw FailedPrecondition(
      "a Runtime is made inside of a call, or in a worker's process: a function, method or "
      "constructor that takes `Runtime&` first gets the runtime that executes it, and may call on");
}

// How many this process has made, or tried to.
constinit std::atomic<std::uint64_t> runtimes_so_far{0};

RuntimeOptions Numbered(RuntimeOptions options) {
  CheckPlace();
  CheckOptions(options);
  const std::uint64_t number = runtimes_so_far.fetch_add(1, std::memory_order_relaxed) + 1;
  if (options.job == 0) options.job = number;
  return options;
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options)
    : owned_(new LocalNode(Numbered(options)),
             [](Client* client) { static_cast<LocalNode*>(client)->End(); }),
      client_(owned_.get()) {}

}  // namespace menger
