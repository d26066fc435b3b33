#pragma once

#include <cstdint>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/object_table.h"

namespace menger {

// A call and the calls that it makes: which of them a further run makes anew, and which are known
// from before.
//
// Names of nested calls begin with the run that makes them (RunOf), so each run makes its own and a
// retry gets past what failed under the run before it. Only calls of checkpointed actors do the
// same in every run, from the same state: what they call is done once, its results are held until a
// checkpoint covers the call, and a further run finds them.

// Whether every run of it does the same.
bool RunsAlike(const Task& task);
// A run is over without results that stay; the next will be another.
void EndRun(Task& task);

// What is called and with which objects, as a number that is not 0: that of one run against that of
// another.
std::uint64_t CalleeOf(const TaskSpec& spec);

// Makes the call one of those of its parent, where the worker does that.
void AdoptChild(const Worker& worker, Task& child, ObjectTable& objects);
// What a call of a checkpointed actor has called stays known until a checkpoint covers the call.
void HoldForFurtherRuns(Task& parent, Object& result, std::uint64_t callee, std::uint16_t name,
                        ObjectTable& objects);
// The call of that name that the worker does; null if it does none.
Task* FindCaller(const Worker& worker, TaskId task);
// It is over: its own calls go on without it.
void LeaveFamily(Task& task);
// What stands for all that it has called, by however many calls in between, and that is not done.
// Not actors and placement groups: they live for as long as somebody refers to them.
std::vector<ObjectId> DescendantsOf(const Task& task);

}  // namespace menger
