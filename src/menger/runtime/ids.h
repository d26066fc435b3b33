#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace menger {

// Names of what the runtime keeps. They are computed, never drawn: the id of a call is a hash of
// the call that made it and of how many that one had made before. So a call that is run again after
// a failure makes the same calls under the same names, and whoever knows them already says so
// instead of running them twice.
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
struct NodeId : Id {};    // One node, in all its lives; its engine names it.

// The program's own "task": the parent of all that a driver calls. Jobs that share a cluster have
// different numbers.
TaskId RootTask(std::uint64_t job);

// The call number `counter` that `parent` makes; Put counts as a call.
TaskId ChildTask(TaskId parent, std::uint64_t counter);

// Result number `index` of a task. What was put is result 0 of a task that is never run.
ObjectId ResultOf(TaskId task, std::uint32_t index);

// The actor that a constructor's task makes.
ActorId ActorOf(TaskId creation);

// Instead of a number of items of a stream that were taken: nobody wants the others.
inline constexpr std::uint64_t kStreamDropped = ~std::uint64_t{0};

// 32 hexadecimal digits.
std::string ToString(const Id& id);

// For hash tables: an id is a hash already.
struct IdHash {
  std::size_t operator()(const Id& id) const { return static_cast<std::size_t>(id.low); }
};

}  // namespace menger
