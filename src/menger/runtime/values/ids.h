#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace menger {

// Names of what the runtime keeps. They are computed, never drawn: the id of a call is a hash of
// the call that made it, of which run of that one did, and of how many calls the run had made
// before. So no two runs share a name, whatever a further run does that an earlier one did not.
// Only methods of checkpointed actors, which do the same in each run, are always in their first:
// what they call and put is known by its name, and done once.
//
// What the runtime stores for itself (an argument that is too large to travel with its call, the
// definition of a function of another language) is named after what it is and takes no number.
//
// 128 bits, well mixed: a hash table may use `low` as it is. Two different ids that collide are not
// guarded against (10^12 ids: probability 10^-15).
struct Id {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  bool valid() const { return (high | low) != 0; }
  bool operator==(const Id&) const = default;
  bool operator<(const Id& other) const {
    return high != other.high ? high < other.high : low < other.low;
  }
};

// What an id names; the types only keep one kind from being taken for another.
struct TaskId : Id {};    // One call: of a function, of an actor's constructor or method.
struct ObjectId : Id {};  // One value: a result of a task, or what was put.
struct ActorId : Id {};   // One actor; the hash of the task that creates it.
struct NodeId : Id {};    // One node; drawn whenever one starts (control/node_record.h).

// The program's own "task": the parent of all that a driver calls. Jobs that share a cluster have
// different numbers.
TaskId RootTask(std::uint64_t job);

// Run number `run` of a call, from 0: what its calls and puts are named after.
TaskId RunOf(TaskId task, std::uint32_t run);

// The call number `counter` of a run.
TaskId ChildTask(TaskId run, std::uint64_t counter);

// Result number `index` of a task.
ObjectId ResultOf(TaskId task, std::uint32_t index);

// The value number `counter` that a run puts.
ObjectId PutBy(TaskId run, std::uint64_t counter);

// The value of argument number `position` of a call, where it does not travel with that.
ObjectId ArgumentOf(TaskId task, std::uint32_t position);

// What is stored once for all calls of a job, under the hash of its bytes.
ObjectId DefinitionIn(TaskId job, const Id& hash);

// What seeds the random numbers that a call draws for the `counter`th time: the same in every run.
Id RandomSeed(TaskId task, std::uint64_t counter);

// The actor that a constructor's task makes.
ActorId ActorOf(TaskId creation);

// Instead of a number of items of a stream that were taken: nobody wants the others.
inline constexpr std::uint64_t kStreamDropped = ~std::uint64_t{0};
// The same, but the call goes on to its end, and what it yields is dropped.
inline constexpr std::uint64_t kStreamLeft = kStreamDropped - 1;

// Who refers to objects and asks for them: 0 is the driver with all its threads, a worker process
// has the number of its worker.
using ProcessIndex = std::uint32_t;
using WorkerIndex = std::uint32_t;  // From 1, never used twice.
using LeaseNumber = std::uint64_t;  // Of one worker, from 1.
inline constexpr ProcessIndex kDriver = 0;

// 32 hexadecimal digits.
std::string ToString(const Id& id);
// The id that they name; nothing, if `text` is not that.
std::optional<Id> ParseId(std::string_view text);

// For hash tables: an id is a hash already.
struct IdHash {
  std::size_t operator()(const Id& id) const { return static_cast<std::size_t>(id.low); }
};

}  // namespace menger
