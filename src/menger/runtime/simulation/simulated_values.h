#pragma once

#include <cstdint>
#include <vector>

#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/simulation/script.h"
#include "menger/runtime/values/object_value.h"

namespace menger::simulation {

// A reference as simulated programs have it: a handle on an object or an actor.
struct Reference {
  ObjectId object;
  ActorId actor;
  SlotKind kind = SlotKind::kValue;
};

// The value of an object of a simulated program.
struct Value {
  std::uint64_t fold = 0;
  // Of a method: what had become of the actor by then, and after how many calls.
  std::uint64_t state = 0;
  std::uint64_t position = 0;
  std::vector<Reference> references;  // One at most.
};

Payload Encode(const Value& value);
Value DecodeValue(std::span<const std::byte> bytes);

// What a call is given beside its arguments by reference.
struct CallContent {
  std::uint64_t seed = 0;
  std::uint64_t depth = 0;
  std::vector<Reference> given;
};

SpecPointer MakeSpec(const SpecHeader& header, const std::vector<ObjectId>& values,
                     const CallContent& content, std::string_view scheduling);
CallContent ContentOf(const TaskSpec& spec);

}  // namespace menger::simulation
