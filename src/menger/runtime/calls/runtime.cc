#include "menger/runtime/calls/runtime.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "menger/runtime/calls/call_inputs.h"
#include "menger/runtime/calls/place_need.h"
#include "menger/runtime/values/pretty_name.h"

namespace menger {
namespace {

// What goes with a call itself, so that it fits a message whatever it calls.
constexpr std::size_t kInlineTotalMax = std::size_t{512} << 10;  // Of all arguments.
constexpr std::size_t kArgumentsMax = 8192;
constexpr int kConcurrencyMax = 65535;  // Of what is more than kLeasesMax the rest waits.
constexpr std::size_t kNameBytesMax = 1024;

void CheckName(std::string_view name) {
  if (name.size() > kNameBytesMax) {
    throw InvalidArgument("a name of {} bytes; it may have {}", name.size(), kNameBytesMax);
  }
}

template <typename Options>
std::string Scheduling(const Options& options) {
  if (!options.group.valid()) {
    if (options.bundle != -1) {
      throw InvalidArgument("bundle {} of no placement group", options.bundle);
    }
    const bool usual = options.cpus == 1 && options.gpus == 0 && options.resources.empty();
    if (usual && !options.spread && options.preferred.empty()) return "";
    return WritePlaceNeed(WriteAmounts(options.cpus, options.gpus, options.resources),
                          options.spread, WriteAmounts(options.preferred));
  }
  if (options.spread || !options.preferred.empty()) {
    throw InvalidArgument("what is in a placement group is where its bundle is; it can {}",
                          options.spread ? "not be spread" : "prefer nothing");
  }
  if (options.bundle < -1 || options.bundle >= static_cast<int>(options.group.bundles())) {
    throw InvalidArgument("bundle {} of a placement group that has {}", options.bundle,
                          options.group.bundles());
  }
  const std::string amounts = WriteAmounts(options.cpus, options.gpus, options.resources);
  return options.bundle < 0 ? amounts : fmt::format("{} @{}", amounts, options.bundle);
}

std::uint16_t Count(std::string_view what, int value) {
  if (value < 0 || value > 65535) {
    throw InvalidArgument("{} is {}; it must lie between 0 and 65535", what, value);
  }
  return static_cast<std::uint16_t>(value);
}

// What a Get of several, or in time, has come to, where that is not the place of one that failed.
constexpr std::uint32_t kAllThere = UINT32_MAX;
constexpr std::uint32_t kTooLate = UINT32_MAX - 1;

std::string NameOf(FunctionId construction) {
  try {
    return FunctionTable().Find(construction).name();
  } catch (const Error&) {
    return "(one that this process does not know)";
  }
}

}  // namespace

Runtime::~Runtime() = default;

ObjectId Runtime::HomeIn(const PlacementGroup& group) const {
  client_->CheckOwn(group.reservation());
  return group.reservation().id();
}

SpecHeader Runtime::HeaderFor(const CallOptions& options) const {
  if (options.time_limit.count() < 0) {
    throw InvalidArgument("the time limit of a call is {} ns; it must not be negative",
                          options.time_limit.count());
  }
  if (options.priority < -128 || options.priority > 127) {
    throw InvalidArgument("the priority of a call is {}; it must lie between -128 and 127",
                          options.priority);
  }
  return {.kind = CallKind::kFunction,
          .retry_errors = options.retry_errors,
          .priority = static_cast<std::int8_t>(options.priority),
          .home = HomeIn(options.group),
          .time_limit = options.time_limit.count(),
          .retries = Count("retries", options.retries)};
}

std::uint32_t Runtime::StreamAhead(const CallOptions& options) {
  if (options.stream_ahead < 1 || options.stream_ahead > 1'000'000) {
    throw InvalidArgument("stream_ahead is {}; it must lie between 1 and 1000000",
                          options.stream_ahead);
  }
  return static_cast<std::uint32_t>(options.stream_ahead);
}

std::string Runtime::SchedulingFor(const CallOptions& options) { return Scheduling(options); }

SpecHeader Runtime::HeaderFor(const ActorOptions& options) const {
  const std::uint32_t every = Count("checkpoint_every", options.checkpoint_every);
  if (options.concurrency < 1 || options.concurrency > kConcurrencyMax) {
    throw InvalidArgument("the concurrency of an actor is {}; it must lie between 1 and {}",
                          options.concurrency, kConcurrencyMax);
  }
  if (options.concurrency > 1 && every > 0) {
    throw InvalidArgument("an actor with concurrency {} can have no checkpoints",
                          options.concurrency);
  }
  return {.kind = CallKind::kConstruct,
          .named = !options.name.empty(),
          .home = HomeIn(options.group),
          .retries = Count("call_retries", options.call_retries),
          .restarts = Count("restarts", options.restarts.value_or(every > 0 ? 65535 : 0)),
          .checkpoint_every = every,
          .concurrency = static_cast<std::uint16_t>(options.concurrency),
          .detached = options.detached};
}

ObjectHandle Runtime::AssignOwner(SpecHeader& header) {
  if (!header.detached || header.home.valid()) return {};
  // The same for all runs of a call: nothing that a further run would have to be told again.
  std::optional<Client::NamedActor> keeper = client_->FindActor(Client::kKeeperName);
  if (!keeper) return {};
  header.home = keeper->object.id();
  return std::move(keeper->object);
}

std::string Runtime::SchedulingFor(const ActorOptions& options) { return Scheduling(options); }

void Runtime::Submit(const Function& function, SpecHeader& header, std::string_view scheduling,
                     std::string_view name, std::span<const Argument> arguments,
                     std::span<const ObjectHandle> contained, std::span<ObjectHandle> results) {
  client_->CheckOwn(contained);
  for (const Argument& argument : arguments) {
    if (argument.reference != nullptr) client_->CheckOwn(*argument.reference);
  }
  CallContext& caller = client_->Caller();
  if (!header.task.valid()) header.task = caller.NextCall();
  header.parent = caller.task;
  header.function = function.id();
  if (header.kind == CallKind::kConstruct && header.callee == 0) {
    header.callee = function.actor_class();
  }
  if (arguments.size() > kArgumentsMax) {
    throw InvalidArgument("a call has {} arguments; at most {} go with one: put them in a vector",
                          arguments.size(), kArgumentsMax);
  }
  CheckName(name);
  // Arguments that are too large to travel with the call become objects, named after it.
  std::vector<ObjectHandle> put;
  std::vector<ObjectId> ids;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    const auto inside = contained.first(argument.references);
    contained = contained.subspan(argument.references);
    if (argument.size > kInlineBytesMax || bytes + argument.size > kInlineTotalMax) {
      put.resize(arguments.size());
      put[i] = client_->PutAs(
          ArgumentOf(header.task, static_cast<std::uint32_t>(i)), argument.size,
          [&argument](std::span<std::byte> out) { argument.EncodeTo(out); }, inside);
    } else {
      bytes += SpecBuilder::AlignedSize(argument.size);
      for (const ObjectHandle& handle : inside) ids.push_back(handle.id());
    }
  }
  SpecBuilder builder(header, static_cast<std::uint16_t>(arguments.size()), ids, scheduling, name,
                      bytes);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (!put.empty() && put[i].valid()) {
      builder.AddReference(put[i].id());
    } else if (argument.reference != nullptr) {
      builder.AddReference(argument.reference->id());
    } else {
      argument.EncodeTo(builder.AddValue(argument.size));
    }
  }
  client_->Submit(builder.Finish(), results);
}

PlacementGroup Runtime::CreatePlacementGroup(const std::vector<Bundle>& bundles,
                                             const PlacementGroupOptions& options) {
  CheckName(options.name);
  CallContext& caller = client_->Caller();
  const SpecHeader header{
      .kind = CallKind::kReserve, .task = caller.NextCall(), .parent = caller.task, .retries = 0};
  SpecBuilder builder(header, 0, {}, WriteReservation(bundles, options.strategy), options.name, 0);
  ObjectHandle reservation;
  client_->Submit(builder.Finish(), {&reservation, 1});
  return {std::move(reservation), static_cast<std::uint32_t>(bundles.size())};
}

void Runtime::RemovePlacementGroup(const PlacementGroup& group) { Cancel(group.Ready()); }

void Runtime::CheckReference(const ObjectHandle& object) const {
  if (!object.valid()) throw InvalidArgument("an ObjectRef that is given refers to nothing");
  client_->CheckOwn(object);
}

PinnedBytes Runtime::FetchOne(const ObjectHandle& object, std::chrono::nanoseconds timeout) {
  return std::move(FetchAll({&object, 1}, timeout).front());
}

std::vector<PinnedBytes> Runtime::FetchAll(std::span<const ObjectHandle> objects,
                                           std::chrono::nanoseconds timeout) {
  for (const ObjectHandle& object : objects) CheckReference(object);
  CallInputs* const inputs = client_->Caller().inputs;
  const bool may_differ = objects.size() > 1 || timeout < kNoTimeout;
  Fetched fetched = inputs != nullptr && may_differ
                        ? FetchAsBefore(*inputs, objects, timeout)
                        : client_->Get(objects, Deadline::After(timeout));
  if (!fetched.failed) return std::move(fetched.values);
  throw TaskError(DecodeFailure(Payload::Copy(fetched.values.front().bytes())));
}

std::vector<std::size_t> Runtime::FirstReady(std::span<const ObjectHandle> objects,
                                             const WaitOptions& options) {
  if (options.count > objects.size()) {
    throw InvalidArgument("Wait: count is {}, of {} references; at most all of them are waited for",
                          options.count, objects.size());
  }
  const auto ask = [&] {
    // Of many that are ready each costs no more than a look at it.
    if (client_->AreKnownReady(objects.first(options.count))) {
      client_->CheckOpen();
      std::vector<std::size_t> first(options.count);
      std::iota(first.begin(), first.end(), std::size_t{0});
      return first;
    }
    for (const ObjectHandle& object : objects) CheckReference(object);
    std::vector<std::size_t> ready =
        client_->Wait(objects, options.count, Deadline::After(options.timeout));
    ready.resize(std::min(ready.size(), options.count));
    return ready;
  };
  CallInputs* const inputs = client_->Caller().inputs;
  if (inputs == nullptr) return ask();
  const std::vector<std::byte> known = inputs->Bytes([&] {
    const std::vector<std::size_t> first = ask();
    const std::vector<std::uint32_t> ready(first.begin(), first.end());
    const auto bytes = std::as_bytes(std::span(ready));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
  std::vector<std::uint32_t> ready(known.size() / sizeof(std::uint32_t));
  if (!ready.empty()) std::memcpy(ready.data(), known.data(), ready.size() * sizeof(ready[0]));
  for (const std::uint32_t place : ready) {
    if (place < objects.size()) continue;
    throw DataLoss("a call that runs again waits for {} objects; its first run did for more",
                   objects.size());
  }
  return {ready.begin(), ready.end()};
}

// Whether they are ready in time, and which fails first, is asked once: what was there then is
// there sooner or later.
Fetched Runtime::FetchAsBefore(CallInputs& inputs, std::span<const ObjectHandle> objects,
                               std::chrono::nanoseconds timeout) {
  std::optional<Fetched> fetched;
  const std::uint32_t outcome = inputs.Plain([&] {
    try {
      fetched = client_->Get(objects, Deadline::After(timeout));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadlineExceeded) throw;
      return kTooLate;
    }
    return fetched->failed ? static_cast<std::uint32_t>(*fetched->failed) : kAllThere;
  });
  if (outcome == kTooLate) {
    throw DeadlineExceeded("{} objects were not ready in time", objects.size());
  }
  if (fetched) return *std::move(fetched);
  if (outcome == kAllThere) return client_->Get(objects, Deadline::After(kNoTimeout));
  if (outcome < objects.size()) {
    fetched = client_->Get(objects.subspan(outcome, 1), Deadline::After(kNoTimeout));
    if (fetched->failed) return *std::move(fetched);
  }
  throw DataLoss(
      "a call that runs again gets {} objects; in its first run number {} failed, and now it does "
      "not",
      objects.size(), outcome);
}

std::optional<Client::NamedActor> Runtime::FindActor(std::string_view name) {
  CallInputs* const inputs = client_->Caller().inputs;
  if (inputs == nullptr) return client_->FindActor(name);
  struct Answer {
    ActorId actor;
    ObjectId object;
    std::uint64_t actor_class = 0;
    FunctionId construction;
    bool of_another = false;
  };
  std::optional<Client::NamedActor> found;
  bool asked = false;
  const Answer answer = inputs->Plain([&] {
    asked = true;
    found = client_->FindActor(name);
    return found ? Answer{found->id, found->object.id(), found->actor_class, found->construction,
                          found->of_another}
                 : Answer{};
  });
  if (asked || !answer.actor.valid()) return found;
  if (answer.of_another) {
    // By its id alone nobody here would know it.
    found = client_->FindActor(name);
    if (found && found->id == answer.actor) return found;
    throw NotFound("actor '{}', which a call that runs again has found before, lives no longer",
                   name);
  }
  return Client::NamedActor{answer.actor, client_->Adopt(answer.object), answer.actor_class,
                            answer.construction};
}

Client::NamedActor Runtime::FindActor(std::string_view name, const ActorType& wanted) {
  std::optional<Client::NamedActor> found = FindActor(name);
  if (!found) throw NotFound("no actor named '{}' lives", name);
  if (found->actor_class == ClassIdentity(wanted)) return std::move(*found);
  throw InvalidArgument("actor '{}' is asked for as one of class {}; it is of class {}", name,
                        PrettyName(wanted.compiler_name), NameOf(found->construction));
}

std::chrono::nanoseconds Runtime::Now() {
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::system_clock::now().time_since_epoch());
  };
  CallInputs* const inputs = client_->Caller().inputs;
  return inputs != nullptr ? inputs->Plain(now) : now();
}

menger::Random Runtime::Random() {
  const Id seed = client_->Caller().NextSeed();
  return menger::Random(SeedSequence({seed.high, seed.low}));
}

void FailCheckpoint(const char* actor) {
  throw InvalidArgument(
      "checkpoint_every of actor {}: the class cannot be saved; give it a Serialize",
      PrettyName(actor));
}

void FailEmptyActor() { throw InvalidArgument("an ActorRef that is used refers to nothing"); }

}  // namespace menger
