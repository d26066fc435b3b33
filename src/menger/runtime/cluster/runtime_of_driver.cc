// A program's Runtime has its node in it. Apart from the rest of Runtime, which workers have, too,
// and which knows nothing of nodes.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "menger/base/process_mark.h"
#include "menger/runtime/calls/runtime.h"
#include "menger/runtime/calls/worker_identity.h"
#include "menger/runtime/cluster/cluster_node.h"
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

std::unique_ptr<Client, std::function<void(Client*)>> Open(RuntimeOptions options) {
  CheckPlace();
  CheckOptions(options);
  ClusterAccess access = AccessOf(options);
  if (options.isolation == Isolation::kThread) access.address.clear();
  const std::uint64_t number = runtimes_so_far.fetch_add(1, std::memory_order_relaxed) + 1;
  if (access.address.empty()) {
    if (options.job == 0) options.job = number;
    return {new LocalNode(options), [](Client* client) { static_cast<LocalNode*>(client)->End(); }};
  }
  auto cluster = std::make_shared<ClusterNode>(ClusterNodeOptions{
      .access = std::move(access), .role = ClusterNodeOptions::Role::kDriver, .runtime = options});
  LocalNode* const node = &cluster->node();
  return {node, [cluster, mark = ProcessMark()](Client*) mutable {
            // A fork has none of its threads, and what it would say its parent would have said.
            if (mark.InFork()) static_cast<void>(new std::shared_ptr<ClusterNode>(cluster));
            cluster.reset();
          }};
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options) : owned_(Open(options)), client_(owned_.get()) {}

}  // namespace menger
