#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include "menger/base/function_ref.h"
#include "menger/runtime/values/object_ref.h"

namespace menger {

class Runtime;
class TaskSpec;

// Names what a call runs, in every process of one build: the module (program or library), and where
// in it the callable's Function lies. Two builds never agree by accident.
struct FunctionId {
  std::uint64_t module = 0;  // The first bytes of its ELF build id.
  std::uint64_t offset = 0;

  bool operator==(const FunctionId&) const = default;
};

// Takes the results of one call.
class ResultSink {
 public:
  // Where result `index`, of `size` bytes, is to be written: at a multiple of kValueAlignment. The
  // references in it are counted before the caller drops them.
  virtual std::span<std::byte> Allocate(int index, std::size_t size,
                                        std::span<const ObjectHandle> references) = 0;

 protected:
  ~ResultSink() = default;
};

// Takes the items of a call that is a stream (stream.h).
class ItemSink {
 public:
  // The next one: `bytes` bytes that `fill` writes, with those references in it. Waits while the
  // reader is too far behind; throws Cancelled when it wants no more.
  virtual void Emit(std::size_t bytes, FunctionRef<void(std::span<std::byte>)> fill,
                    std::span<const ObjectHandle> references) = 0;

 protected:
  ~ItemSink() = default;
};

// One argument: an encoded value (runtime/serialise.h) that stays where it is during the call.
using EncodedValue = std::span<const std::byte>;

// One call, where it is executed. Everything is borrowed.
struct CallFrame {
  Runtime* runtime = nullptr;       // For callables whose first parameter is Runtime&.
  ReferenceOwner* owner = nullptr;  // Adopts references in arguments.
  std::span<const EncodedValue> arguments;
  ResultSink* results = nullptr;
  int result_count = 1;            // More than 1: of a std::tuple, each element by itself.
  void* actor = nullptr;           // Of a method. A constructor leaves its new actor here.
  const TaskSpec* spec = nullptr;  // The call as it was made.
  ItemSink* items = nullptr;       // For callables that take an Emitter.
};

// The `module` of this program itself.
std::uint64_t ProgramBuild();

// What the runtime does with actors of a class. A class is checkpointable if it has a Serialize
// (runtime/serialise.h): to restore an actor, it is constructed as it was, then loaded.
struct ActorType {
  const char* compiler_name;
  const std::type_info* type;
  void (*destroy)(void* actor);
  bool says_begun = false;  // Its methods call Client::Begun themselves.
  // Null unless checkpointable.
  std::size_t (*state_size)(const void* actor, std::vector<ObjectHandle>* references);
  void (*save)(const void* actor, std::span<std::byte> out);
  void (*load)(void* actor, std::span<const std::byte> state, ReferenceOwner* owner);

  bool checkpointable() const { return save != nullptr; }
};

// Names a class in every process of one build: two classes never agree by accident, however they
// are called and in how many files.
std::uint64_t ClassIdentity(const ActorType& actor);

// A callable that calls may name: a function, a lambda without captures, a method or a constructor.
// There is one for each that the program's text calls; it enters itself in the process's list
// before main, or when its library is opened, and stays: so does the library, if it is closed.
class Function {
 public:
  Function(void (*run)(CallFrame&), const char* compiler_name, const ActorType* actor) noexcept;
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  FunctionId id() const { return id_; }
  std::string name() const;  // For people.

  // Decodes the arguments, calls, encodes the results. Exceptions of the callable pass; throws
  // DataLoss if arguments are not what it takes, InvalidArgument if it has another number of
  // results.
  void Run(CallFrame& frame) const { run_(frame); }

  // Of a constructor or a method: what it makes, or is a method of; otherwise null, and 0.
  const ActorType* actor() const { return actor_; }
  std::uint64_t actor_class() const { return actor_class_; }

 private:
  friend class FunctionTable;

  void (*const run_)(CallFrame&);
  const char* const compiler_name_;
  const ActorType* const actor_;
  const std::uint64_t actor_class_;
  const FunctionId id_;
  const Function* next_;  // In the list.
};

// Finds callables by their ids: nothing else that a process is told can be run. One thread at a
// time; make one a thread.
class FunctionTable {
 public:
  // Throws FailedPrecondition, naming the callable, if a module has no build id.
  FunctionTable();

  // Looks again for libraries that were opened meanwhile. Throws NotFound.
  const Function& Find(FunctionId id) {
    const Function* const found = Look(id);
    return found != nullptr ? *found : FindAmongNew(id);
  }

 private:
  static std::size_t Hash(FunctionId id) {
    return (id.offset ^ id.module) * 0x9e3779b97f4a7c15ULL >> 32;
  }
  const Function* Look(FunctionId id) const {
    for (std::size_t slot = Hash(id);; ++slot) {
      const Function* const function = slots_[slot & (slots_.size() - 1)];
      if (function == nullptr || function->id() == id) return function;
    }
  }
  const Function& FindAmongNew(FunctionId id);
  void Fill();

  const Function* newest_ = nullptr;    // Of those that `slots_` has.
  std::vector<const Function*> slots_;  // Open addressing, at most half full; a power of two.
};

}  // namespace menger
