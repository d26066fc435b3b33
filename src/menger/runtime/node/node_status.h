#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/watching/metrics.h"

namespace menger {

// What a node says of itself when it is asked: one moment of it, copied under its lock.
struct NodeStatus {
  struct WorkerStatus {
    WorkerIndex index = 0;
    std::string node;                // The other node that has lent it; "" for one of this node's.
    std::string lent_to;             // The other node that it is lent to; "" for none.
    bool guest = false;              // It runs another node's program, and is lent to that alone.
    pid_t process = 0;               // The driver's own where it is a thread; 0 for another node's.
    std::uint64_t memory_bytes = 0;  // Resident and its own; 0 for a thread.
    std::string actor;               // The first one that lives there; "" for one of the pool.
    std::string running;             // The call that it does; "" if none.
    double running_seconds = 0;      // Since it was given that one.
    std::size_t queued = 0;          // Behind that one.
    bool blocked = false;            // The call waits for objects.
  };
  struct ActorStatus {
    std::string id;
    std::string name;            // As its user named it, else its class.
    bool named = false;          // It is the former.
    std::string state;           // "pending", "alive", "restarting", "dead".
    std::uint32_t restarts = 0;  // That it had,
    std::uint32_t restarts_left = 0;
    std::size_t waiting = 0;  // Calls.
    WorkerIndex worker = 0;   // 0: nowhere.
  };
  struct GroupStatus {
    std::string id;     // Of what stands for it.
    std::string state;  // "waiting", "created", "moving": some bundles are on no node any longer.
    std::vector<std::optional<std::string>> nodes;  // Of each bundle: "" this one; none: nowhere.
  };
  struct CallStatus {
    std::string id;
    std::string name;
    std::string state;  // "waiting", "ready", "given", "running".
    std::string actor;  // Whose method or construction it is; "" of a function.
    bool constructs = false;
    WorkerIndex worker = 0;  // That has it; 0: none.
    int attempt = 0;         // Runs that a lost worker has ended.
  };
  struct TaskStatus {
    std::size_t waiting = 0;  // For arguments, or for a turn of their caller.
    std::size_t ready = 0;    // For a worker.
    std::size_t given = 0;    // To workers.
    std::size_t kept = 0;     // Done; kept to make results again.
    std::uint64_t submitted = 0;
    std::uint64_t finished = 0;
    std::uint64_t failed = 0;
    std::uint64_t retried = 0;
    std::uint64_t rebuilt = 0;
    double finished_per_second = 0;  // Over the last second or two.
  };
  struct ResourceStatus {
    std::string name;
    double total = 0;
    double free = 0;  // Less than 0: a call that woke up took what it had lent.
  };
  struct BorrowedStatus {
    std::string name;
    double amount = 0;
  };
  struct LossStatus {
    double seconds_ago = 0;  // The last time.
    std::uint64_t times = 0;
    std::string text;
  };

  std::uint64_t job = 0;
  pid_t process = 0;
  std::string program;
  double seconds = 0;  // Since the start.
  std::vector<WorkerStatus> workers;
  TaskStatus tasks;
  std::size_t actor_count = 0;
  std::uint64_t actors_restarted = 0;   // So often one was made again,
  std::uint64_t checkpoints = 0;        // so many states were saved,
  std::uint64_t replayed = 0;           // and so many calls made again since one.
  std::vector<ActorStatus> actors;      // Up to kActorsMax.
  std::size_t groups = 0;               // Placement groups,
  std::size_t groups_waiting = 0;       // those of them that wait for resources,
  std::vector<GroupStatus> group_list;  // and all of them, up to kGroupsMax.
  std::size_t objects = 0;
  std::uint64_t store_bytes = 0;
  std::uint64_t store_bytes_max = 0;
  std::uint64_t disk_bytes = 0;      // Of values that did not fit there.
  std::uint64_t spilled_bytes = 0;   // Written so far,
  std::uint64_t restored_bytes = 0;  // and read.
  std::size_t lineage_bytes = 0;
  std::vector<ResourceStatus> resources;
  std::vector<BorrowedStatus> borrowed;  // Of other nodes: what its calls and groups have there.
  std::vector<LossStatus> losses;        // The last ones, the newest first,
  std::map<std::string, std::uint64_t> causes;  // and how many there were in all, of which cause.
  std::uint64_t calls_for_others = 0;           // That lent workers have ended,
  std::uint64_t pulled_bytes = 0;               // and values that were brought from other nodes,
  std::uint64_t served_bytes = 0;               // or to them,
  std::uint64_t shown_bytes = 0;                // or are read where another one has them.

  static constexpr std::size_t kActorsMax = 1000;
  static constexpr std::size_t kGroupsMax = 1000;
  static constexpr std::size_t kCallsMax = 10'000;
};

const char* ActorStateName(ActorState state);

// One JSON object; the names are those of the fields.
std::string ToJson(const NodeStatus& status);
std::string ToJson(const std::vector<NodeStatus::CallStatus>& calls);

// menger_tasks, menger_workers, menger_store_bytes, ...
void AddMetrics(const NodeStatus& status, MetricsText& text);

}  // namespace menger
