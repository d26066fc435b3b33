#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "menger/runtime/calls/function.h"
#include "menger/runtime/values/ids.h"

namespace menger {

enum class CallKind : std::uint8_t {
  kFunction,
  kConstruct,  // Makes an actor; result 0 stands for the actor: it lives while that is referred to.
  kMethod,
  kReserve,  // Sets resources aside; result 0 stands for them: they are kept while that is referred
             // to.
  // What a node asks of its own accord; see checkpoints.h.
  kSave,  // The actor's state is the result.
  kLoad,  // The argument becomes the actor's state.
};

// Everything that a call needs in order to be run, now or again: one immutable run of bytes, the
// same in memory, in a ring and on the disk (within one build: `function.module` says which).
//
//   SpecHeader | Argument[arguments] | ObjectId[contained] | resources | name | values
//
// Offsets count from the header. `Validate` checks one that comes from another process.
struct SpecHeader {
  std::uint32_t bytes = 0;  // Of all, a multiple of 16.
  CallKind kind = CallKind::kFunction;
  bool retry_errors = false;  // Run again also when the function threw.
  bool named = false;         // Of kConstruct: the actor can be found by the call's name.
  std::int8_t priority = 0;   // Higher runs earlier.
  TaskId task;
  TaskId parent;  // The call that made this one; RootTask for the driver.
  FunctionId function;
  // Tells apart what is called where `function` alone does not: of a construction its class, of
  // another language's function its definition; else 0.
  std::uint64_t callee = 0;
  ActorId actor;  // Of kConstruct and kMethod.
  // Of kMethod: result 0 of the actor's construction. Of a call in a placement group: result 0 of
  // what reserves it. Of another process's: what it gives there is that one's.
  ObjectId home;
  std::int64_t time_limit = 0;   // Nanoseconds that one run may take; 0: no limit.
  std::uint32_t scheduling = 0;  // Bytes of the text; see scheduling().
  std::uint32_t scheduling_at = 0;
  std::uint32_t name = 0;  // Bytes of the name that people see.
  std::uint32_t name_at = 0;
  std::uint16_t arguments = 0;
  std::uint16_t results = 1;
  std::uint16_t retries = 3;           // Runs beyond the first that loss of a worker may cost.
  std::uint16_t restarts = 0;          // Of kConstruct: how often a lost actor is made again.
  std::uint32_t checkpoint_every = 0;  // Of kConstruct: calls between checkpoints; 0: none.
  std::uint16_t concurrency = 1;       // Of kConstruct: calls that the actor does at once.
  bool detached = false;               // Of kConstruct: it lives until it is killed.
  std::uint32_t stream_ahead = 0;      // Of a stream: items that may wait for its reader; else 0.
  std::uint32_t contained = 0;         // References inside the values.
};

// One argument: an object, or a value that travels with the call.
struct SpecArgument {
  ObjectId object;          // Valid: the value of that object. Otherwise the value lies here:
  std::uint32_t at = 0;     // aligned to 16,
  std::uint32_t bytes = 0;  // so many.
};

class TaskSpec;
// Specifications are one allocation with what follows the header.
struct SpecDeleter {
  void operator()(TaskSpec* spec) const;
};
using SpecPointer = std::unique_ptr<TaskSpec, SpecDeleter>;

// A view with accessors over such a run of bytes; made by SpecBuilder or Copy.
class TaskSpec {
 public:
  const SpecHeader& header() const { return header_; }
  TaskId task() const { return header_.task; }
  std::span<const SpecArgument> arguments() const;
  std::span<const ObjectId> contained() const;
  // What it needs, as WritePlaceNeed writes it: "cpu=1.000 gpu=2.000"; "": one CPU. In a placement
  // group followed by " @" and the number of the bundle, if it is one; of kReserve as
  // WriteReservation writes it.
  std::string_view scheduling() const { return Text(header_.scheduling_at, header_.scheduling); }
  std::string_view name() const { return Text(header_.name_at, header_.name); }
  std::span<const std::byte> value(const SpecArgument& argument) const;
  std::span<const std::byte> bytes() const;

  // Throws DataLoss, naming what is wrong, unless every offset stays inside `bytes`. `last`: of the
  // kinds that it may have; what nodes ask of their own accord no program can.
  static void Validate(std::span<const std::byte> bytes, CallKind last = CallKind::kReserve);
  static SpecPointer Copy(std::span<const std::byte> bytes);  // Validated.
  SpecPointer Named(std::string_view name) const;  // A copy, that has this name if it had none.

  // Valid bytes, aligned to 16, that outlive the view.
  static const TaskSpec& View(std::span<const std::byte> bytes) {
    return *reinterpret_cast<const TaskSpec*>(bytes.data());
  }

 private:
  friend class SpecBuilder;
  TaskSpec() = default;
  const std::byte* base() const { return reinterpret_cast<const std::byte*>(this); }
  std::string_view Text(std::uint32_t at, std::uint32_t size) const {
    return {reinterpret_cast<const char*>(base()) + at, size};
  }

  SpecHeader header_;
};

// Lays a specification out, in this order: the constructor, every argument's kind and size, Finish,
// then the caller fills the spans that `value` gives.
class SpecBuilder {
 public:
  // `header` has everything but the sizes and offsets.
  SpecBuilder(const SpecHeader& header, std::uint16_t arguments,
              std::span<const ObjectId> contained, std::string_view scheduling,
              std::string_view name, std::size_t value_bytes);

  // The next argument. `value_bytes` of the constructor is the sum of AlignedSize over the values.
  void AddReference(ObjectId object);
  std::span<std::byte> AddValue(std::size_t bytes);

  SpecPointer Finish() { return std::move(spec_); }

  static std::size_t AlignedSize(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

 private:
  SpecPointer spec_;
  SpecArgument* next_ = nullptr;
  std::uint32_t value_at_ = 0;
};

}  // namespace menger
