#pragma once

#include <span>
#include <string>
#include <string_view>

#include "menger/base/function_ref.h"
#include "menger/runtime/watching/node_events.h"

namespace menger {

// Writes events of a node as a trace that chrome://tracing and Perfetto show (Trace Event Format,
// JSON object): a row a worker, a bar for each task that has ended or still runs, a mark for all
// else. Times count from the earliest event. `names` are those of the NodeEvents.
//
// `write` gets the text piece by piece, about 64 KB each.
void WriteTimeline(std::span<const NodeEvent> events, std::span<const std::string> names,
                   FunctionRef<void(std::string_view)> write);

}  // namespace menger
