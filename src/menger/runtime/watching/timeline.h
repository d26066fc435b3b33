#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "menger/base/function_ref.h"
#include "menger/runtime/watching/node_events.h"

namespace menger {

// Workers of other nodes: how people call the node, by the worker.
using WorkerPlaces = std::map<std::uint32_t, std::string>;

// Writes events of a node as a trace that chrome://tracing and Perfetto show (Trace Event Format,
// JSON object): a row a worker, a bar for each task that has ended or still runs, a mark for all
// else. What workers of other nodes did is under a process for each of these nodes. Times count
// from the earliest event, and are this node's: of another's worker, when its word came. `names`
// are those of the NodeEvents.
//
// `write` gets the text piece by piece, about 64 KB each.
void WriteTimeline(std::span<const NodeEvent> events, std::span<const std::string> names,
                   const WorkerPlaces& places, FunctionRef<void(std::string_view)> write);

}  // namespace menger
