#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "menger/runtime/simulation/simulated_values.h"
#include "menger/runtime/values/task_error.h"

namespace menger::simulation {

// Knows what must never happen. Throws Internal when it does.
class Checker {
 public:
  // Calls of one name are the same call, however often they are made.
  void Called(const TaskSpec& spec);
  void WasPut(ObjectId id, std::uint64_t fold);

  // A call of an actor is done: each once in the actor's life, in the order of its caller, whatever
  // is done again. (For actors that are made again as they were, or not at all.)
  void MethodDone(const SpecHeader& header, std::uint64_t state, std::uint64_t position);

  // After the last: those of each actor that became known make one chain.
  void CheckChains() const;

 private:
  struct Done {
    TaskId task;
    TaskId parent;
    std::uint64_t state = 0;
  };
  struct Actor {
    std::unordered_map<std::uint64_t, Done> by_position;
    std::unordered_map<TaskId, std::uint64_t, IdHash> positions;
  };
  std::unordered_map<TaskId, std::uint64_t, IdHash> calls_;
  std::unordered_map<TaskId, std::uint64_t, IdHash> call_order_;
  std::unordered_map<ObjectId, std::uint64_t, IdHash> puts_;
  std::unordered_map<ActorId, Actor, IdHash> actors_;
};

}  // namespace menger::simulation
