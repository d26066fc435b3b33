#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/calls/allocation.h"
#include "menger/runtime/calls/call.h"
#include "menger/runtime/calls/client.h"
#include "menger/runtime/calls/placement_group.h"
#include "menger/runtime/calls/runtime_options.h"
#include "menger/runtime/calls/stream.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Tasks, actors and objects (Moritz et al. 2018, "Ray"), on one machine with nothing to start
// first:
//
//   int Square(int x) { return x * x; }
//
//   int main() {
//     if (menger::IsWorker()) return menger::WorkerMain();
//     menger::Runtime runtime;
//     menger::ObjectRef<int> nine = runtime.Call<Square>(3);
//     menger::ObjectRef<int> more = runtime.Call<Square>(nine);  // Runs when `nine` is there.
//     std::cout << runtime.Get(more);
//   }
//
// A call returns at once with references on its results. Whatever can be encoded
// (runtime/serialise.h) may be an argument or a result. A function that takes `Runtime&` first gets
// the runtime that executes it, and may call on.

// How a call is run. What is left out is as said here.
struct CallOptions {
  double cpus = 1;  // That it needs while it runs.
  double gpus = 0;
  std::vector<std::pair<std::string, double>> resources;  // Others, by name.
  // Likewise, but only while some node has them beside all else: then it goes where that is.
  std::vector<std::pair<std::string, double>> preferred;
  bool spread = false;        // The nodes of a cluster that have room do such calls in turn.
  int retries = 3;            // Further runs, if its worker dies.
  bool retry_errors = false;  // Likewise if it throws.
  std::chrono::nanoseconds time_limit{0};  // It may run so long; 0: as long as it likes.
  int priority = 0;                        // From -128 to 127; higher ones run earlier.
  std::string name;                        // What people see; "" for the function's.
  int stream_ahead = 64;                   // Of a stream: items that may wait for the reader.
  PlacementGroup group;                    // Of which it takes what it needs,
  int bundle = -1;                         // and of which bundle; -1: of any that has it.
};

// How an actor lives. What is left out is as said here.
struct ActorOptions {
  double cpus = 0;  // That it keeps while it lives.
  double gpus = 0;
  std::vector<std::pair<std::string, double>> resources;
  std::vector<std::pair<std::string, double>> preferred;  // As of a call; so are the next three.
  bool spread = false;
  PlacementGroup group;
  int bundle = -1;
  // GetActor finds it by that; "" for none. One with " @" in it ("counter @training") is one in the
  // whole cluster: all of its programs find the actor by it.
  std::string name;
  // It lives until it is killed, also where nobody refers to it. In a cluster it outlives the
  // program, unless it is in a placement group, which ends with that: whoever knows its name finds
  // it.
  bool detached = false;
  // How often it is made again when its worker dies. Left out: never, or as often as it takes if it
  // is checkpointed.
  std::optional<int> restarts;
  int call_retries = 0;  // Further runs of a call that was under way then.
  // So many calls after one checkpoint the next is made; 0: none. The class has a Serialize. When
  // its worker dies, an actor becomes again what it was: the last checkpoint, and the calls since
  // once more. What that asks of its methods: docs/runtime.md, "When things die".
  int checkpoint_every = 0;
  // So many calls, 1 to 65535 (though 1024 at the most), are done at once, each on a thread of its
  // process; they begin in order. The class must be made for that. Above 1 it has no checkpoints,
  // and keeps its CPUs while its calls wait.
  int concurrency = 1;
};

// For what Wait waits.
struct WaitOptions {
  std::size_t count = 1;  // That are waited for.
  std::chrono::nanoseconds timeout = kNoTimeout;
};

// A value that is read where it lies: in shared memory, or in a message. Valid while this lives.
template <typename T>
class Pinned {
 public:
  Pinned(PinnedBytes bytes, ReferenceOwner& owner)
      : bytes_(std::move(bytes)), value_(Decode<T>(bytes_.bytes(), &owner)) {}

  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  PinnedBytes bytes_;
  T value_;
};

// To an actor; below.
template <typename A>
class ActorRef;

// A job with its workers, or within a call the way to the job that runs it. Any number of threads
// may use one, but for its destructor.
//
// A process may have several. What one has given (references, actors, placement groups) another
// refuses with InvalidArgument. A fork of the process can use none that its parent has: whatever it
// asks for throws FailedPrecondition, and what it drops or ends stays as it is for the parent.
class Runtime {
 public:
  // Starts the workers. Throws InvalidArgument for options that make no sense, FailedPrecondition
  // inside of a call: that has one (see above).
  explicit Runtime(const RuntimeOptions& options = {});
  // The runtime of a call that is executed: `client` is borrowed.
  explicit Runtime(Client& client) : client_(&client) {}
  // Ends the workers; what was not fetched is lost. References, actors and pinned values may
  // outlive it: pinned values stay readable, all else throws FailedPrecondition. In a fork of the
  // process that made it, it ends nothing.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Calls kFunction(arguments...) on a worker. Each argument is a value or an ObjectRef on one.
  template <auto kFunction, typename... Arguments>
  auto Call(const Arguments&... arguments) {
    return CallWith<kFunction>(CallOptions(), arguments...);
  }
  template <auto kFunction, typename... Arguments>
  auto CallWith(const CallOptions& options, const Arguments&... arguments) {
    using Called = FunctionCall<kFunction>;
    static_assert(!Called::Types::kStreams, "menger: this function is a stream: use Stream");
    return ObjectRef<typename Called::Result>(
        SubmitCall<Called>(HeaderFor(options), SchedulingFor(options), options.name, arguments...));
  }

  // The same for a function that gives its results one by one (stream.h).
  template <auto kFunction, typename... Arguments>
  auto Stream(const Arguments&... arguments) {
    return StreamWith<kFunction>(CallOptions(), arguments...);
  }
  template <auto kFunction, typename... Arguments>
  auto StreamWith(const CallOptions& options, const Arguments&... arguments) {
    return SubmitStream<FunctionCall<kFunction>>(HeaderFor(options), options, arguments...);
  }

  // The same for a function that returns a std::tuple: one reference an element.
  template <auto kFunction, typename... Arguments>
  auto CallSeveral(const CallOptions& options, const Arguments&... arguments) {
    using Called = FunctionCall<kFunction>;
    return [&]<typename... Rs>(TypeList<Rs...>) {
      std::array<ObjectHandle, sizeof...(Rs)> handles;
      SpecHeader header = HeaderFor(options);
      header.results = sizeof...(Rs);
      MakeCall<Called>(header, SchedulingFor(options), options.name, handles, arguments...);
      return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
        return std::tuple(ObjectRef<Rs>(std::move(handles[kIndex]))...);
      }
      (std::index_sequence_for<Rs...>());
    }(typename SeveralResults<typename Called::Result>::Types());
  }

  // Makes an Actor(arguments...) on a worker; it lives while somebody refers to it.
  template <typename Actor, typename... Arguments>
  ActorRef<Actor> CreateActor(const ActorOptions& options, const Arguments&... arguments);

  // The living actor of that name. Throws NotFound; InvalidArgument if it is of another class;
  // Unavailable where the cluster's control store does not say. Of another program's actor the
  // reference keeps it, as its own do; it ends with that program.
  template <typename Actor>
  ActorRef<Actor> GetActor(std::string_view name);

  // Ends an actor; the calls that it has not done fail. With `may_restart` it counts as lost.
  template <typename Actor>
  void Kill(const ActorRef<Actor>& actor, bool may_restart = false);

  // Asks for resources that calls and actors need together; returns at once. They are set aside as
  // soon as all are free. Where calls that run have them, further calls wait for that up to a
  // second. Throws InvalidArgument for a group of nothing.
  PlacementGroup CreatePlacementGroup(const std::vector<Bundle>& bundles,
                                      const PlacementGroupOptions& options = {});

  // Its resources are free at once. Calls and actors in it end, also those that run, as cancelled.
  void RemovePlacementGroup(const PlacementGroup& group);

  // Makes an object of a value.
  template <typename T>
  ObjectRef<T> Put(const T& value) {
    std::vector<ObjectHandle> contained;
    const std::size_t bytes = EncodedSize(value, &contained);
    return ObjectRef<T>(client_->Put(
        bytes, [&value](std::span<std::byte> out) { Encode(value, out); }, contained));
  }

  // Makes a tensor to be filled where it will lie: no copy, however large. Throws InvalidArgument
  // for a shape that is none, TaskError (out of memory) if there is no room.
  template <typename T>
  Allocation<T> Allocate(const Shape& shape) {
    return Allocation<T>(*client_, shape);
  }

  // Waits for the value. Throws TaskError if what makes it failed, DeadlineExceeded. Of several
  // values it throws as soon as one has failed.
  template <typename T>
  T Get(const ObjectRef<T>& reference, std::chrono::nanoseconds timeout = kNoTimeout) {
    const PinnedBytes bytes = FetchOne(reference.handle(), timeout);
    if constexpr (!std::is_void_v<T>) {
      static_assert(!kBorrows<T>, "menger: a view is valid only while what it shows is: use Pin");
      return Decode<T>(bytes.bytes(), client_);
    }
  }
  template <typename T>
  std::vector<T> Get(const std::vector<ObjectRef<T>>& references,
                     std::chrono::nanoseconds timeout = kNoTimeout) {
    static_assert(!kBorrows<T>, "menger: a view is valid only while what it shows is: use Pin");
    std::vector<T> values;
    values.reserve(references.size());
    for (const PinnedBytes& bytes : FetchAll(Handles(references), timeout)) {
      values.push_back(Decode<T>(bytes.bytes(), client_));
    }
    return values;
  }
  void Get(const std::vector<ObjectRef<void>>& references,
           std::chrono::nanoseconds timeout = kNoTimeout) {
    FetchAll(Handles(references), timeout);
  }

  // The same without a copy of what can be read in place.
  template <typename T>
  Pinned<T> Pin(const ObjectRef<T>& reference, std::chrono::nanoseconds timeout = kNoTimeout) {
    return Pinned<T>(FetchOne(reference.handle(), timeout), *client_);
  }

  // Waits until options.count of the references are ready (a failed call is), or the timeout has
  // passed. The first `count` that were: those that were ready already in their order, then the
  // others in the order in which they became so. The rest is pending, in its order.
  //
  // Whoever waits for many, a few at a time, moves them in and out again: copies of references cost
  // more than the wait.
  //
  //   while (!left.empty()) {
  //     auto [ready, pending] = runtime.Wait(std::move(left));
  //     left = std::move(pending);
  //   }
  template <typename T>
  struct Waited {
    std::vector<ObjectRef<T>> ready;
    std::vector<ObjectRef<T>> pending;
  };
  template <typename T>
  Waited<T> Wait(const std::vector<ObjectRef<T>>& references, const WaitOptions& options = {}) {
    Waited<T> waited;
    std::vector<std::size_t> places = FirstReady(Handles(references), options);
    waited.ready.reserve(places.size());
    for (const std::size_t place : places) waited.ready.push_back(references[place]);
    std::sort(places.begin(), places.end());
    waited.pending.reserve(references.size() - places.size());
    auto next = references.begin();
    for (const std::size_t place : places) {
      const auto taken = references.begin() + static_cast<std::ptrdiff_t>(place);
      waited.pending.insert(waited.pending.end(), next, taken);
      next = taken + 1;
    }
    waited.pending.insert(waited.pending.end(), next, references.end());
    return waited;
  }
  template <typename T>
  Waited<T> Wait(std::vector<ObjectRef<T>>&& references, const WaitOptions& options = {}) {
    Waited<T> waited;
    std::vector<std::size_t> places = FirstReady(Handles(references), options);
    waited.ready.reserve(places.size());
    for (const std::size_t place : places) waited.ready.push_back(std::move(references[place]));
    std::sort(places.begin(), places.end());
    ObjectRef<T>::CloseGaps(references, places);
    waited.pending = std::move(references);
    return waited;
  }

  // Settles a call that is not done as cancelled. One that runs is asked to stop: IsCancelled says
  // so, and what it waits for throws; with `force` its worker process is ended. `recursive`: so are
  // the calls that it has made, and theirs, but not actors.
  template <typename T>
  void Cancel(const ObjectRef<T>& reference, bool force = false, bool recursive = true) {
    CheckReference(reference.handle());
    client_->Cancel(reference.handle(), force, recursive);
  }

  // The time since 1970. A call that is run again is told what its first run was told; so it is
  // with Wait, with Get that may time out, and with GetActor.
  std::chrono::nanoseconds Now();

  // A stream of random numbers that follows from the call and from how many streams it has made
  // before: the same in every run of the call.
  menger::Random Random();

  // Whether the call that runs here was cancelled.
  bool IsCancelled() const { return client_->IsCancelled(); }

  Client& client() { return *client_; }

  // ---- For calls that other languages make: their functions are no templates.

  SpecHeader HeaderFor(const CallOptions& options) const;
  static std::string SchedulingFor(const CallOptions& options);
  SpecHeader HeaderFor(const ActorOptions& options) const;
  // Of a detached actor of a cluster: who will own it, which is kept until the call is made.
  ObjectHandle AssignOwner(SpecHeader& header);
  static std::string SchedulingFor(const ActorOptions& options);
  // Gives the header its ids and its parent, unless it has a task already.
  void Submit(const Function& function, SpecHeader& header, std::string_view scheduling,
              std::string_view name, std::span<const Argument> arguments,
              std::span<const ObjectHandle> contained, std::span<ObjectHandle> results);

 private:
  template <typename A>
  friend class ActorRef;

  // A reference is its handle and nothing else, so that many need not be copied to be passed on.
  template <typename T>
  static std::span<const ObjectHandle> Handles(const std::vector<ObjectRef<T>>& references) {
    static_assert(sizeof(ObjectRef<T>) == sizeof(ObjectHandle) &&
                  std::is_standard_layout_v<ObjectRef<T>>);
    return {reinterpret_cast<const ObjectHandle*>(references.data()), references.size()};
  }

  template <typename Called, typename... Arguments>
  ObjectHandle SubmitCall(SpecHeader header, std::string_view scheduling, std::string_view name,
                          const Arguments&... arguments) {
    std::array<ObjectHandle, 1> result;
    MakeCall<Called>(header, scheduling, name, result, arguments...);
    return std::move(result[0]);
  }
  template <typename Called, typename... Arguments>
  auto SubmitStream(SpecHeader header, const CallOptions& options, const Arguments&... arguments) {
    static_assert(Called::Types::kStreams, "menger: a stream takes an Emitter<T>& first");
    header.task = client_->Caller().NextCall();
    header.stream_ahead = StreamAhead(options);
    ObjectHandle end =
        SubmitCall<Called>(header, SchedulingFor(options), options.name, arguments...);
    return ObjectStream<typename Called::Types::Item>(header.task, std::move(end));
  }
  static std::uint32_t StreamAhead(const CallOptions& options);
  template <typename Called, typename... Arguments>
  void MakeCall(SpecHeader& header, std::string_view scheduling, std::string_view name,
                std::span<ObjectHandle> results, const Arguments&... arguments) {
    const Function& function = FunctionOf<Called>();
    WithArguments<Called>(
        [&](std::span<const Argument> encoded, std::span<const ObjectHandle> contained) {
          Submit(function, header, scheduling, name, encoded, contained, results);
        },
        arguments...);
  }

  void CheckReference(const ObjectHandle& object) const;
  ObjectId HomeIn(const PlacementGroup& group) const;
  std::optional<Client::NamedActor> FindActor(std::string_view name);
  Client::NamedActor FindActor(std::string_view name, const ActorType& wanted);
  PinnedBytes FetchOne(const ObjectHandle& object, std::chrono::nanoseconds timeout);
  std::vector<PinnedBytes> FetchAll(std::span<const ObjectHandle> objects,
                                    std::chrono::nanoseconds timeout);
  Fetched FetchAsBefore(CallInputs& inputs, std::span<const ObjectHandle> objects,
                        std::chrono::nanoseconds timeout);
  std::vector<std::size_t> FirstReady(std::span<const ObjectHandle> objects,
                                      const WaitOptions& options);

  std::unique_ptr<Client, std::function<void(Client*)>> owned_;
  Client* client_;
};

// An actor: an object of class A that lives on a worker and does one call after the other, those of
// one caller in the order in which they were made. It may be an argument and part of values, and
// ends when nobody refers to it any longer.
template <typename A>
class ActorRef {
 public:
  ActorRef() = default;  // Refers to nothing.
  ActorRef(ActorId id, ObjectHandle object) : id_(id), object_(std::move(object)) {}

  bool valid() const { return object_.valid(); }
  ActorId id() const { return id_; }

  // Calls the method on the actor's worker.
  template <auto kMethod, typename... Arguments>
  auto Call(const Arguments&... arguments) const {
    return CallWith<kMethod>("", arguments...);
  }
  // The same; people see `name`.
  template <auto kMethod, typename... Arguments>
  auto CallWith(std::string_view name, const Arguments&... arguments) const {
    using Called = MethodCall<A, kMethod>;
    static_assert(!Called::Types::kStreams, "menger: this method is a stream: use Stream");
    Runtime runtime(ClientOf(object_));
    SpecHeader header{.kind = CallKind::kMethod,
                      .actor = id_,
                      .home = object_.id(),
                      .retries = 0};  // Its actor says how often.
    return ObjectRef<typename Called::Result>(
        runtime.SubmitCall<Called>(header, "", name, arguments...));
  }

  // The same for a method that gives its results one by one (stream.h); of the options only the
  // name and stream_ahead mean something.
  template <auto kMethod, typename... Arguments>
  auto Stream(const Arguments&... arguments) const {
    return StreamWith<kMethod>(CallOptions(), arguments...);
  }
  template <auto kMethod, typename... Arguments>
  auto StreamWith(const CallOptions& options, const Arguments&... arguments) const {
    Runtime runtime(ClientOf(object_));
    SpecHeader header{.kind = CallKind::kMethod,
                      .actor = id_,
                      .home = object_.id(),
                      .retries = 0};  // Its actor says how often.
    return runtime.SubmitStream<MethodCall<A, kMethod>>(header, options, arguments...);
  }

  template <typename Archive>
  friend void Serialize(Archive& archive, ActorRef& actor) {
    archive(actor.id_, actor.object_);
  }

 private:
  friend class Runtime;
  static Client& ClientOf(const ObjectHandle& object);

  ActorId id_;
  ObjectHandle object_;
};

// ---- How.

[[noreturn]] void FailEmptyActor();
[[noreturn]] void FailCheckpoint(const char* actor);

template <typename A>
Client& ActorRef<A>::ClientOf(const ObjectHandle& object) {
  if (!object.valid()) FailEmptyActor();
  return *static_cast<Client*>(object.reference()->owner);
}

template <typename Actor, typename... Arguments>
ActorRef<Actor> Runtime::CreateActor(const ActorOptions& options, const Arguments&... arguments) {
  using Called = ConstructorCallFor<Actor, const Arguments&...>;  // Of a literal, too.
  SpecHeader header = HeaderFor(options);
  header.task = client_->Caller().NextCall();
  header.actor = ActorOf(header.task);
  const ObjectHandle owner = AssignOwner(header);
  if (header.checkpoint_every > 0 && !kActorType<Actor>.checkpointable()) {
    FailCheckpoint(CompilerName<Actor>());
  }
  ObjectHandle object =
      SubmitCall<Called>(header, SchedulingFor(options), options.name, arguments...);
  return ActorRef<Actor>(header.actor, std::move(object));
}

template <typename Actor>
ActorRef<Actor> Runtime::GetActor(std::string_view name) {
  Client::NamedActor found = FindActor(name, kActorType<Actor>);
  return ActorRef<Actor>(found.id, std::move(found.object));
}

template <typename Actor>
void Runtime::Kill(const ActorRef<Actor>& actor, bool may_restart) {
  if (!actor.valid()) FailEmptyActor();
  client_->CheckOwn(actor.object_);
  client_->KillActor(actor.id(), actor.object_.id(), may_restart);
}

}  // namespace menger
