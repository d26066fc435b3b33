#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "menger/runtime/calls/client.h"
#include "menger/runtime/calls/function.h"
#include "menger/runtime/values/object_ref.h"
#include "menger/runtime/values/pretty_name.h"
#include "menger/runtime/values/serialise.h"

// From the callables of C++ to Functions that can be named and run elsewhere. Three types describe
// what is called; each has a Result, Parameters (those that the caller gives) and Invoke:
//
//     FunctionCall<F>               a free function, a static method, a lambda without captures
//     MethodCall<Actor, F>          a method of Actor or of a base of it
//     ConstructorCall<Actor, Ps...> Actor(Ps...)
//
// A callable may take `Runtime&` first: it gets the runtime that executes it, to call on.
// Parameters are values or references to constants. One of type ObjectRef<T> gets the reference
// itself; every other may be given an ObjectRef<T> instead of the T, and is run when that is there.

namespace menger {

// Types, as one type.
template <typename... Ts>
struct TypeList {
  static constexpr int kSize = sizeof...(Ts);
};

// ---- What a callable takes and gives.

// Of a function, method or lambda: Result, Parameters, and for a method its Class.
template <typename F>
struct Signature {
  static_assert(sizeof(F) == 0,
                "menger: only functions, methods, and lambdas without captures can be called: name "
                "one of several overloads by static_cast, and give parameters of lambdas a type");
};
template <typename R, typename... Ps, bool kNoexcept>
struct Signature<R (*)(Ps...) noexcept(kNoexcept)> {
  using Result = std::remove_cvref_t<R>;
  using Parameters = TypeList<Ps...>;
};
// Of a method, however it is qualified.
template <typename R, typename C, typename... Ps>
struct MethodSignature : Signature<R (*)(Ps...)> {
  using Class = C;
};
template <typename R, typename C, typename... Ps, bool kNoexcept>
struct Signature<R (C::*)(Ps...) noexcept(kNoexcept)> : MethodSignature<R, C, Ps...> {};
template <typename R, typename C, typename... Ps, bool kNoexcept>
struct Signature<R (C::*)(Ps...) const noexcept(kNoexcept)> : MethodSignature<R, C, Ps...> {};
template <typename R, typename C, typename... Ps, bool kNoexcept>
struct Signature<R (C::*)(Ps...)& noexcept(kNoexcept)> : MethodSignature<R, C, Ps...> {};
template <typename R, typename C, typename... Ps, bool kNoexcept>
struct Signature<R (C::*)(Ps...) const& noexcept(kNoexcept)> : MethodSignature<R, C, Ps...> {};
template <typename Lambda>
requires requires { &Lambda::operator(); }
struct Signature<Lambda> : Signature<decltype(&Lambda::operator())> {};

// What is left of the parameters without a first Runtime&.
template <typename Parameters>
struct WithoutRuntime {
  using Rest = Parameters;
  static constexpr bool kTakesRuntime = false;
};
template <typename... Ps>
struct WithoutRuntime<TypeList<Runtime&, Ps...>> {
  using Rest = TypeList<Ps...>;
  static constexpr bool kTakesRuntime = true;
};

// Of a stream; see stream.h.
template <typename T>
class Emitter;

// What is left of the parameters without the Emitter of a stream; Item is what that takes.
template <typename Parameters>
struct WithoutEmitter {
  using Rest = Parameters;
  using Item = void;
};
template <typename T, typename... Ps>
struct WithoutEmitter<TypeList<Emitter<T>&, Ps...>> {
  using Rest = TypeList<Ps...>;
  using Item = T;
};

// What a callable gives: of a stream the number of its items, once it is done.
template <typename Callable>
struct CallTypes {
  using OfRuntime = WithoutRuntime<typename Callable::Parameters>;
  using OfEmitter = WithoutEmitter<typename OfRuntime::Rest>;
  static constexpr bool kStreams = !std::is_void_v<typename OfEmitter::Item>;
  static_assert(!kStreams || std::is_void_v<typename Callable::Result>,
                "menger: a stream returns nothing: it emits what it has to give");
  using Item = typename OfEmitter::Item;
  using Parameters = typename OfEmitter::Rest;
  using Result = std::conditional_t<kStreams, std::uint64_t, typename Callable::Result>;

  // Calls `function` with what it takes before `values`.
  template <typename Function, typename... Values>
  static decltype(auto) Invoke(CallFrame& frame, const Function& function, Values&&... values) {
    const auto with_runtime = [&](auto&&... all) -> decltype(auto) {
      if constexpr (OfRuntime::kTakesRuntime) {
        return function(*frame.runtime, std::forward<decltype(all)>(all)...);
      } else {
        return function(std::forward<decltype(all)>(all)...);
      }
    };
    if constexpr (kStreams) {
      Emitter<Item> emitter(*frame.items);
      with_runtime(emitter, std::forward<Values>(values)...);
      return emitter.count();
    } else {
      return with_runtime(std::forward<Values>(values)...);
    }
  }
};

// The types of the results where a call is asked for several: those of a tuple or a pair.
template <typename R>
struct SeveralResults {
  using Types = TypeList<R>;
};
template <template <typename...> typename Tuple, typename... Rs>
requires requires { std::tuple_size<Tuple<Rs...>>::value; }
struct SeveralResults<Tuple<Rs...>> {
  using Types = TypeList<Rs...>;
};

// The first of the three descriptions of what is called (see above): a function.
template <auto kFunction>
struct FunctionCall {
  using Types = CallTypes<Signature<decltype(kFunction)>>;
  using Result = typename Types::Result;
  using Parameters = typename Types::Parameters;

  static constexpr const char* name() { return CompilerName<kFunction>(); }
  static constexpr const ActorType* actor() { return nullptr; }

  template <typename... Values>
  static decltype(auto) Invoke(CallFrame& frame, Values&&... values) {
    return Types::Invoke(
        frame,
        [](auto&&... all) -> decltype(auto) {
          return kFunction(std::forward<decltype(all)>(all)...);
        },
        std::forward<Values>(values)...);
  }
};

// How actors of a class are destroyed, saved and loaded: one with Serialize can be checkpointed.
template <typename Actor>
consteval ActorType MakeActorType() {
  ActorType type{.compiler_name = CompilerName<Actor>(),
                 .type = &typeid(Actor),
                 .destroy = [](void* actor) { delete static_cast<Actor*>(actor); },
                 .state_size = nullptr,
                 .save = nullptr,
                 .load = nullptr};
  if constexpr (HasSerialize<Actor>) {
    type.state_size = [](const void* actor, std::vector<ObjectHandle>* references) {
      return EncodedSize(*static_cast<const Actor*>(actor), references);
    };
    type.save = [](const void* actor, std::span<std::byte> out) {
      Encode(*static_cast<const Actor*>(actor), out);
    };
    type.load = [](void* actor, std::span<const std::byte> state, ReferenceOwner* owner) {
      static_assert(!kBorrows<Actor>,
                    "menger: the state of an actor must own its data: views would "
                    "outlive the checkpoint that they show");
      DecodeInto(*static_cast<Actor*>(actor), state, owner);
    };
  }
  return type;
}
template <typename Actor>
inline constexpr ActorType kActorType = MakeActorType<Actor>();

// The second: a method of the actor of the frame.
template <typename Actor, auto kMethod>
struct MethodCall {
  using Callable = Signature<decltype(kMethod)>;
  using Types = CallTypes<Callable>;
  using Result = typename Types::Result;
  using Parameters = typename Types::Parameters;

  static constexpr const char* name() { return CompilerName<kMethod>(); }
  static constexpr const ActorType* actor() { return &kActorType<Actor>; }

  template <typename... Values>
  static decltype(auto) Invoke(CallFrame& frame, Values&&... values) {
    static_assert(std::is_base_of_v<typename Callable::Class, Actor>,
                  "menger: this method is not one of the actor's class or of its bases");
    typename Callable::Class& object = *static_cast<Actor*>(frame.actor);
    return Types::Invoke(
        frame,
        [&object](auto&&... all) -> decltype(auto) {
          return (object.*kMethod)(std::forward<decltype(all)>(all)...);
        },
        std::forward<Values>(values)...);
  }
};

// The third: a constructor, which leaves the new actor in the frame. Who runs the call owns it.
template <typename Actor, typename... Ps>
struct ConstructorCall {
  using Result = void;
  using Parameters = TypeList<Ps...>;

  static constexpr const char* name() { return CompilerName<Actor>(); }
  static constexpr const ActorType* actor() { return &kActorType<Actor>; }

  template <typename... Values>
  static void Invoke(CallFrame& frame, Values&&... values) {
    if constexpr (std::is_constructible_v<Actor, Runtime&, Ps...>) {
      frame.actor = new Actor(*frame.runtime, std::forward<Values>(values)...);
    } else {
      frame.actor = new Actor(std::forward<Values>(values)...);
    }
  }
};

// ---- Where a call is executed.

// A call that does not fit its callable: the first throws DataLoss, for the caller's side has
// checked it, the second InvalidArgument.
[[noreturn]] void FailArgumentCount(const char* callable, std::size_t given, int wanted);
[[noreturn]] void FailResultCount(const char* callable, int asked_for, int results);

// Whether a callable could write to what it is given there.
template <typename Parameter>
inline constexpr bool kIsMutableReference =
    std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>>;

// The argument at a position, from its bytes; a view among the parameters shows those.
template <typename Parameter>
std::remove_cvref_t<Parameter> DecodeArgument(const CallFrame& frame, std::size_t position) {
  return Decode<std::remove_cvref_t<Parameter>>(frame.arguments[position], frame.owner);
}

// Writes one result of a call where the frame has room for it.
template <typename R>
void EncodeResult(const CallFrame& frame, int index, const R& result) {
  std::vector<ObjectHandle> references;
  const std::size_t size = EncodedSize(result, &references);
  Encode(result, frame.results->Allocate(index, size, references));
}

// Writes all: each member of a tuple on its own where the caller has asked for several.
template <typename R>
void EncodeResults(const CallFrame& frame, const R& result) {
  constexpr int kSeveral = SeveralResults<R>::Types::kSize;
  if (kSeveral == 1 || frame.result_count == 1) {
    EncodeResult(frame, 0, result);
  } else if constexpr (kSeveral > 1) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (EncodeResult(frame, kIndex, get<kIndex>(result)), ...);
    }
    (std::make_index_sequence<kSeveral>());
  }
}

// Decodes the arguments, invokes the callable and encodes what it returns.
template <typename Call, typename... Ps, std::size_t... kPosition>
void RunCall(CallFrame& frame, TypeList<Ps...>, std::index_sequence<kPosition...>) {
  using Result = typename Call::Result;
  constexpr int kSeveral = SeveralResults<Result>::Types::kSize;
  constexpr bool kChangesArguments = (kIsMutableReference<Ps> || ...);
  static_assert(!kChangesArguments,
                "menger: a parameter cannot be a reference to something that is not const: what is "
                "written to it would not come back; take a value, and return what is new");
  if (frame.arguments.size() != sizeof...(Ps)) {
    FailArgumentCount(Call::name(), frame.arguments.size(), sizeof...(Ps));
  }
  if (frame.result_count != 1 && frame.result_count != kSeveral) {
    FailResultCount(Call::name(), frame.result_count, kSeveral);
  }
  if constexpr (kChangesArguments) {
    return;
  } else if constexpr (std::is_void_v<Result>) {
    Call::Invoke(frame, DecodeArgument<Ps>(frame, kPosition)...);
    frame.results->Allocate(0, 0, {});
  } else {
    EncodeResults<Result>(frame, Call::Invoke(frame, DecodeArgument<Ps>(frame, kPosition)...));
  }
}

// The same with the one signature that all callables share, for tables of functions.
template <typename Call>
void Run(CallFrame& frame) {
  using Parameters = typename Call::Parameters;
  RunCall<Call>(frame, Parameters(), std::make_index_sequence<Parameters::kSize>());
}

// Hidden: each module has its own, in its own memory, whatever others are loaded. So the id does
// not depend on the order in which a process opens libraries.
template <typename Call>
[[gnu::visibility("hidden")]] inline const Function kFunctionEntry(&Run<Call>, Call::name(),
                                                                   Call::actor());

// The Function of a callable: an address known to the linker.
template <typename Call>
[[gnu::visibility("hidden")]] const Function& FunctionOf() {
  return kFunctionEntry<Call>;
}

// ---- Where a call is made.

// An argument on its way into a specification: a reference, or a value that is still to be encoded.
struct Argument {
  const ObjectHandle* reference = nullptr;  // If not null, all else is empty.
  const void* value = nullptr;
  std::size_t size = 0;        // Of the encoding.
  std::size_t references = 0;  // Inside the value: the next so many of those contained.
  // Null: the value's bytes are the encoding.
  void (*encode)(const void* value, std::span<std::byte> out) = nullptr;

  // `out` has `size` bytes and will be read at a multiple of kValueAlignment.
  void EncodeTo(std::span<std::byte> out) const;
};

// Whether a type is some ObjectRef<T>.
template <typename T>
inline constexpr bool kIsObjectRef = false;
template <typename T>
inline constexpr bool kIsObjectRef<ObjectRef<T>> = true;

// What an encoding of a T is also that of: views are written as their owners.
template <typename T>
struct EncodedLike {
  using Type = T;
};
template <>
struct EncodedLike<std::string_view> {
  using Type = std::string;
};
template <typename T>
struct EncodedLike<std::span<const T>> {
  using Type = std::vector<T>;
};

// As what an argument of type A is encoded for a parameter of type P (neither is a reference):
// an ObjectRef stays one.
template <typename P, typename A, int kPosition>
consteval auto CheckArgument() {
  if constexpr (kIsObjectRef<A> && !kIsObjectRef<P>) {
    static_assert(
        std::is_same_v<typename EncodedLike<typename A::Value>::Type,
                       typename EncodedLike<P>::Type>,
        "menger: an ObjectRef<X> (A, below) is passed where another type (P) is expected; "
        "a reference is not converted: X must be the parameter's type");
    return std::type_identity<A>();
  } else {
    constexpr bool kConvertible = std::is_same_v<A, P> || std::is_convertible_v<const A&, P>;
    static_assert(kConvertible,
                  "menger: an argument (A, below) cannot be converted to the type of the parameter "
                  "(P) at this position (counted from 0, without Runtime&)");
    return std::conditional_t<kConvertible, std::type_identity<P>, std::type_identity<A>>();
  }
}
template <typename P, typename A, int kPosition>
using SlotOf = typename decltype(CheckArgument<std::remove_cvref_t<P>, std::remove_cvref_t<A>,
                                               kPosition>())::type;

// Throws InvalidArgument.
[[noreturn]] void FailEmptyReference(const char* callable, int position);

// One argument, not yet encoded; what it refers to inside is appended to `contained`.
template <typename Call, typename P, typename Slot>
Argument MakeArgument(const Slot& value, int position, std::vector<ObjectHandle>& contained) {
  if constexpr (kIsObjectRef<Slot> && !kIsObjectRef<std::remove_cvref_t<P>>) {
    if (!value.valid()) FailEmptyReference(Call::name(), position);
    return {.reference = &value.handle()};
  } else if constexpr (kFormOf<Slot> == ValueForm::kBytes) {
    return {.value = &value, .size = sizeof(Slot)};
  } else {
    const std::size_t before = contained.size();
    const std::size_t size = EncodedSize(value, &contained);
    return {.value = &value,
            .size = size,
            .references = contained.size() - before,
            .encode = [](const void* value, std::span<std::byte> out) {
              Encode(*static_cast<const Slot*>(value), out);
            }};
  }
}

// The arguments, each converted to its slot's type.
template <typename Call, typename Parameters, typename Slots>
struct ArgumentsOf;
template <typename Call, typename... Ps, typename... Slots>
struct ArgumentsOf<Call, TypeList<Ps...>, TypeList<Slots...>> {
  // What needs a conversion is passed as a temporary, which lives until `use` has returned.
  template <typename User, std::size_t... kPosition>
  static decltype(auto) Use(std::index_sequence<kPosition...>, const User& use,
                            const Slots&... values) {
    std::vector<ObjectHandle> contained;
    const std::array<Argument, sizeof...(Slots)> arguments = {
        MakeArgument<Call, Ps>(values, kPosition, contained)...};
    return use(std::span<const Argument>(arguments), std::span<const ObjectHandle>(contained));
  }
};

template <typename Call, typename... Ps, std::size_t... kPosition, typename User, typename... Args>
decltype(auto) UseArguments(TypeList<Ps...>, std::index_sequence<kPosition...> positions,
                            const User& use, const Args&... arguments) {
  static_assert(sizeof...(Ps) == sizeof...(Args),
                "menger: the number of arguments (Args, below) is not that of the parameters (Ps; "
                "a first parameter Runtime& is not the caller's to give)");
  if constexpr (sizeof...(Ps) == sizeof...(Args)) {
    using Slots = TypeList<SlotOf<Ps, Args, kPosition>...>;
    return ArgumentsOf<Call, TypeList<Ps...>, Slots>::Use(positions, use, arguments...);
  }
}

// Checks the arguments of a call against its parameters and returns `use(arguments, contained)`:
// a std::span<const Argument>, in order, and a std::span<const ObjectHandle>, the references that
// lie inside of values. Both are valid only during that. Throws InvalidArgument if an ObjectRef
// that is passed refers to nothing.
template <typename Call, typename User, typename... Args>
decltype(auto) WithArguments(const User& use, const Args&... arguments) {
  using Parameters = typename Call::Parameters;
  return UseArguments<Call>(Parameters(), std::make_index_sequence<Parameters::kSize>(), use,
                            arguments...);
}

// ---- Constructors say nothing of their parameters: they are taken to be the arguments' types.

// As what an argument of type A is passed.
template <typename A>
struct ConstructorParameter {
  using Type = A;
};
template <>
struct ConstructorParameter<const char*> {
  using Type = std::string;
};
template <typename T>
struct ConstructorParameter<ObjectRef<T>> {
  using Type = T;
};

template <typename Actor, typename... Ps>
inline constexpr bool kConstructible =
    std::is_constructible_v<Actor, Ps...> || std::is_constructible_v<Actor, Runtime&, Ps...>;

template <typename Actor, typename... As>
consteval auto ConstructorFor() {
  using WithValues = ConstructorCall<Actor, typename ConstructorParameter<As>::Type...>;
  if constexpr (kConstructible<Actor, typename ConstructorParameter<As>::Type...>) {
    return std::type_identity<WithValues>();
  } else {
    static_assert(kConstructible<Actor, As...>,
                  "menger: the actor's class (below) has no constructor for these arguments");
    return std::type_identity<ConstructorCall<Actor, As...>>();
  }
}

// The ConstructorCall for arguments of these types. References are passed as what they refer to
// wherever the class can be constructed so, otherwise as themselves.
template <typename Actor, typename... Args>
using ConstructorCallFor = typename decltype(ConstructorFor<Actor, std::decay_t<Args>...>())::type;

}  // namespace menger
