#pragma once

#include <cstdint>
#include <string>

#include "menger/base/error.h"
#include "menger/runtime/values/object_value.h"

namespace menger {

// Why a result is not there.
enum class FailureKind : std::uint8_t {
  kException,         // The function threw; running it again would do the same.
  kWorkerDied,        // Its worker died under it more often than its retries allow.
  kNodeDied,          // The machine that ran it is gone.
  kActorDied,         // The actor is dead.
  kActorUnavailable,  // The actor's worker died under the call; the actor is made again.
  kObjectLost,        // The value was lost, and what made it is no longer known.
  kDeadline,          // It ran longer than its time limit.
  kCancelled,         // Somebody asked for that.
  kOutOfMemory,       // Its worker used more memory than its budget, or the store is full of pinned
                      // values.
  kOwnerDied,         // The node that owned it is gone, with what knew how to make it.
};

const char* FailureKindName(FailureKind kind);  // "exception", "worker died", ...

// What is known about a failed call: everything that `Get` tells.
struct TaskFailure {
  FailureKind kind = FailureKind::kException;
  ErrorCode code = ErrorCode::kInternal;  // Of the exception; else what a caller can do.
  std::string type;                       // Of the exception, as "std::out_of_range".
  std::string text;
  std::string task;    // The name of the call.
  std::string worker;  // Where it ran, as "worker 3, process 4711"; "" if it never did.
  std::string value;   // The exception, as its language encodes it; "" where nobody can.
  bool final = false;  // Whoever made the call wants no further run after this exception.

  std::string ToString() const;  // One sentence with all of that.
};

Payload Encode(const TaskFailure& failure);
TaskFailure DecodeFailure(const Payload& payload);  // Throws DataLoss.

// What a Function throws that knows better what went wrong than what can be told of a C++
// exception: the failure becomes the call's as it is.
struct ToldFailure {
  TaskFailure failure;
};

// What `Get` throws for a call that failed; the code is the failure's.
class TaskError : public Error {
 public:
  explicit TaskError(TaskFailure failure)
      : Error(failure.code, failure.ToString()), failure_(std::move(failure)) {}

  FailureKind kind() const { return failure_.kind; }
  const TaskFailure& failure() const { return failure_; }

 private:
  TaskFailure failure_;
};

}  // namespace menger
