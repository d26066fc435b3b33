#pragma once

#include <cstddef>
#include <cstdint>

#include "menger/runtime/node/actors.h"
#include "menger/runtime/node/calls.h"
#include "menger/runtime/node/checkpoints.h"
#include "menger/runtime/node/copies.h"
#include "menger/runtime/node/demand.h"
#include "menger/runtime/node/drains.h"
#include "menger/runtime/node/families.h"
#include "menger/runtime/node/foreign_objects.h"
#include "menger/runtime/node/groups.h"
#include "menger/runtime/node/guests.h"
#include "menger/runtime/node/lineage.h"
#include "menger/runtime/node/node_effects.h"
#include "menger/runtime/node/notes.h"
#include "menger/runtime/node/object_table.h"
#include "menger/runtime/node/peers.h"
#include "menger/runtime/node/scheduler.h"
#include "menger/runtime/node/shared_names.h"
#include "menger/runtime/node/shortage.h"
#include "menger/runtime/node/streams.h"
#include "menger/runtime/node/values.h"
#include "menger/runtime/node/waits.h"
#include "menger/runtime/node/workers.h"

namespace menger {

// What the node has, and its bounds. What is left out is as said here.
struct NodeMachineOptions {
  Resources resources;
  int workers = 1;       // Of the pool, without those of actors.
  int pool_max = 512;    // So many there may be in the pool, with those that stand in for others.
  bool threads = false;  // The workers are threads of the driver.
  // It has no workers of its own: what calls need is elsewhere, also where they need nothing.
  bool only_borrows = false;
  std::uint64_t job = 0;
  // How other nodes know this one, and in which life.
  NodeId node = {};
  std::uint64_t epoch = 0;
  // Of the calls that are kept so that their results can be made again; beyond that the oldest are
  // dropped, and what is lost of their results is lost for good.
  std::size_t lineage_bytes_max = std::size_t{256} << 20;
  // Of the calls that an actor has done since its last checkpoint, with their arguments: beyond
  // that the next checkpoint comes early.
  std::size_t log_bytes_max = std::size_t{16} << 20;
  // Of values that the calls of this node's workers read at once; see ReadingRooms. 0: any number.
  std::uint64_t reading_bytes_max = 0;
  // Nanoseconds that a call may be expected to wait here before other nodes are asked for workers.
  double wait_here_max = 2e6;
  // So long calls wait for a node that has what they need, where no node does: it may be about to
  // join. Nanoseconds; 0: they fail at once.
  std::int64_t node_patience = 0;
  // Somebody keeps the names that all nodes share (NodeEffects::AskName).
  bool shares_names = false;
};

// What has become of calls: submitted + rebuilt = finished + failed + those that are under way.
struct NodeCounts {
  std::uint64_t submitted = 0;
  std::uint64_t finished = 0;
  std::uint64_t failed = 0;
  std::uint64_t retried = 0;
  std::uint64_t rebuilt = 0;
  std::uint64_t actors_restarted = 0;
  std::uint64_t actors_moved = 0;   // Since their node was to leave.
  std::uint64_t bundles_moved = 0;  // Since their node was gone.
  std::uint64_t checkpoints = 0;
  std::uint64_t replayed = 0;  // Calls of actors that were made again.
};

// The parts of a node's logic (NodeMachine), each with what only it changes. They call each other
// by this; none does input or output, takes a lock or reads a clock.
struct NodeParts {
  NodeParts(NodeMachineOptions what, NodeEffects& world)
      : options(std::move(what)),
        effects(world),
        objects(values, states),
        scheduler(options.resources, options.workers, options.pool_max, objects, states, world,
                  copies),
        lineage(objects, tasks),
        demand(scheduler, objects, workers.all()),
        waits(*this) {
    if (options.node_patience > 0) scheduler.AwaitNodes();
    if (options.only_borrows) scheduler.OnlyBorrow();
    scheduler.reading_rooms().Open(0, options.reading_bytes_max);
  }
  NodeParts(const NodeParts&) = delete;
  NodeParts& operator=(const NodeParts&) = delete;

  const NodeMachineOptions options;
  NodeEffects& effects;
  std::int64_t now = 0;
  NodeCounts counts;
  States states;
  Values values{*this};           // And who waits for them,
  ObjectTable objects;            // who needs each,
  Copies copies{*this};           // and at which nodes they lie.
  ForeignObjects foreign{*this};  // What other nodes own.
  Scheduler scheduler;            // Which worker gets which call, and when.
  Pool<Task> tasks;               // The records of calls.
  Calls calls{*this};             // From their beginning to their end.
  Workers workers{*this};
  Actors actors{*this};
  SharedNames names{*this};        // By which others find them.
  Checkpoints checkpoints{*this};  // Of actors.
  Streams streams{*this};
  Groups groups{*this};      // Of resources that are set aside.
  Peers peers{*this};        // Other nodes,
  Guests guests{*this};      // workers with programs of theirs,
  Drains drains{*this};      // and those that will leave.
  Lineage lineage;           // What can be made again.
  Demand demand;             // Who waits for what,
  Waits waits;               // what cannot go on,
  Shortage shortage{*this};  // and what actors keep from others.
  Notes notes{*this};        // What others see.
};

}  // namespace menger
