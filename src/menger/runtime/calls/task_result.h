#pragma once

#include <vector>

#include "menger/runtime/values/ids.h"
#include "menger/runtime/values/object_value.h"

namespace menger {

// What a call gave: one of its results, and the references that lie in it.
struct TaskResult {
  ObjectValue value;
  std::vector<ObjectId> contained;
};

}  // namespace menger
