#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "menger/runtime/calls/call_inputs.h"
#include "menger/runtime/calls/client.h"
#include "menger/runtime/calls/task_result.h"
#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Where the results of a call are put: inline memory, or an extent of shared memory.
class ResultStore {
 public:
  // Room for a result of `bytes` bytes; `value` says where it is once it is filled.
  virtual std::span<std::byte> Allocate(std::size_t bytes, ObjectValue& value) = 0;
  // The room is not needed after all.
  virtual void Discard(const ObjectValue& value) noexcept = 0;

 protected:
  ~ResultStore() = default;
};

// What a call gave, or why it gave nothing.
struct CallOutcome {
  bool failed = false;
  TaskFailure failure;
  std::vector<TaskResult> results;
  // References inside the results: held until the node knows of them.
  std::vector<ObjectHandle> contained;
};

// The actors that live in a process. Any thread; one actor is used by one thread at a time.
class ActorInstances {
 public:
  struct Instance {
    void* actor = nullptr;
    const ActorType* type = nullptr;
    std::uint64_t actor_class = 0;
  };

  ~ActorInstances() { Clear(); }
  void Clear();
  Instance Get(ActorId id) const;  // Throws Internal where it is not.
  void Insert(ActorId id, Instance instance);
  void Erase(ActorId id);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<ActorId, Instance, IdHash> instances_;
};

// Does one call: finds the function, reads the arguments in place, runs it, writes the results
// where they belong; or saves an actor as the result, or loads it from the argument. `run`: which
// run of the call it is, for the names of what it calls and puts. `by_reference`
// has the values of the arguments that are references, in order; `inputs` is null where no run of
// the call is to be told what another was. Never throws: whatever goes wrong is the outcome.
CallOutcome Execute(const TaskSpec& spec, std::uint32_t run,
                    std::span<const std::span<const std::byte>> by_reference, Client& client,
                    void* execution, CallInputs* inputs, ActorInstances& actors,
                    ResultStore& store);

}  // namespace menger
