#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "menger/runtime/values/ids.h"

namespace menger::simulation {

// What the calls of a simulated program do: each is a list of operations that follows from the
// call's seed alone, so that what a program gives can be told without a runtime (Interpret).

std::uint64_t Mix(std::uint64_t value);

// What a call knows of an object: may it wait for it, call it?
enum class SlotKind : std::uint64_t {
  kValue,  // The result of a call.
  kPlain,  // Was put, and refers to nothing: whoever waits for it does not wait for a call.
  kActor,
};

// One step of a call.
struct Operation {
  enum class Kind : std::uint8_t {
    kCall,    // Of a function; adds a slot, as the next three do.
    kMethod,  // Of the actor in slot `actor`.
    kCreate,  // An actor.
    kPut,
    kGet,   // What `target` refers to goes into the call's result.
    kWait,  // For one of `values`, for a while; which are ready decides what is called then.
  };
  Kind kind = Kind::kGet;
  std::uint64_t seed = 0;
  int target = -1;
  int actor = -1;
  std::vector<int> values;      // Slots that are arguments, or waited for.
  std::vector<int> references;  // Slots that lie inside an argument or a value that is put.
};

// What one call does, step by step.
struct Script {
  std::vector<Operation> operations;
  std::vector<SlotKind> slots;  // Those that were given, then one an operation that adds one.
  int result_reference = -1;    // A slot that the result refers to; none for -1.
  bool throws = false;          // It ends with an exception.
  std::uint32_t flaky = 0;      // So do its first runs, where it is run again after one.
};

// A call of `seed`, at `depth` below the deepest that calls nothing any longer; `method`: it runs
// in an actor, which must not wait for whoever may wait for it.
Script MakeScript(std::uint64_t seed, int depth, const std::vector<SlotKind>& given, bool method);

// What the fate of a call that waited and found `ready` is: the seed of the call that it makes
// then.
std::uint64_t SeedAfterWait(std::uint64_t seed, std::uint64_t ready);

// The value of an object, as a program sees it that runs all calls at once, one after the other.
struct Known {
  std::uint64_t fold = 0;  // Of all that went into it.
  bool failed = false;     // A call threw that it needed.
  std::shared_ptr<const Known> inner;
  SlotKind kind = SlotKind::kValue;
};
using KnownPointer = std::shared_ptr<const Known>;

KnownPointer Interpret(std::uint64_t seed, int depth, const std::vector<KnownPointer>& values,
                       const std::vector<KnownPointer>& given, bool method);
KnownPointer InterpretPut(std::uint64_t seed, const std::vector<KnownPointer>& references);

}  // namespace menger::simulation
