#include "menger/runtime/worker/executor.h"

#include <cxxabi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "menger/runtime/calls/runtime.h"
#include "menger/runtime/values/pretty_name.h"

namespace menger {
namespace {

// The class of the exception that is being handled, as "std::out_of_range".
std::string ExceptionType() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "";
  int status = 0;
  char* const name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string result = status == 0 ? name : type->name();
  std::free(name);
  return result;
}

// Descriptions are told in one message.
void Cut(std::string& text) {
  constexpr std::size_t kTextBytesMax = 64 * 1024;
  if (text.size() <= kTextBytesMax) return;
  text.resize(kTextBytesMax);
  text += " ... (cut)";
}

class Results final : public ResultSink {
 public:
  Results(const Client& client, CallOutcome& outcome, ResultStore& store)
      : client_(&client), outcome_(&outcome), store_(&store) {}

  std::span<std::byte> Allocate(int index, std::size_t size,
                                std::span<const ObjectHandle> references) override {
    TaskResult& result = outcome_->results.at(static_cast<std::size_t>(index));
    client_->CheckOwn(references);
    for (const ObjectHandle& handle : references) {
      result.contained.push_back(handle.id());
      outcome_->contained.push_back(handle);
    }
    return store_->Allocate(size, result.value);
  }

 private:
  const Client* client_;
  CallOutcome* outcome_;
  ResultStore* store_;
};

[[noreturn]] void FailClass(const ActorInstances::Instance& instance, const Function& function) {
  throw InvalidArgument(
      "'{}' is called, a method of {}; the actor is of class {}", function.name(),
      function.actor() != nullptr ? PrettyName(function.actor()->compiler_name) : "no class",
      PrettyName(instance.type->compiler_name));
}

class Calling {
 public:
  explicit Calling(CallContext& call) : before_(std::exchange(ThisCall(), &call)) {}
  ~Calling() { ThisCall() = before_; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  CallContext* before_;
};

void RunCall(const TaskSpec& spec, std::span<const EncodedValue> by_reference, Client& client,
             ActorInstances& actors, Results& results) {
  static thread_local FunctionTable functions;
  const SpecHeader& header = spec.header();
  const Function& function = functions.Find(header.function);
  std::vector<EncodedValue> arguments;
  arguments.reserve(header.arguments);
  std::size_t references = 0;
  for (const SpecArgument& argument : spec.arguments()) {
    arguments.push_back(argument.object.valid() ? by_reference[references++]
                                                : spec.value(argument));
  }
  Runtime runtime(client);
  StreamWriter items(client, header.task, header.stream_ahead);
  CallFrame frame{.runtime = &runtime,
                  .owner = &client,
                  .arguments = arguments,
                  .results = &results,
                  .result_count = header.results,
                  .spec = &spec,
                  .items = &items};
  if (header.kind == CallKind::kMethod) {
    const ActorInstances::Instance instance = actors.Get(header.actor);
    if (instance.actor_class != function.actor_class()) FailClass(instance, function);
    frame.actor = instance.actor;
    if (!instance.type->says_begun) client.Begun();
  }
  function.Run(frame);
  if (header.kind == CallKind::kConstruct) {
    actors.Insert(header.actor, {frame.actor, function.actor(), function.actor_class()});
  }
}

void SaveOrLoad(const TaskSpec& spec, std::span<const EncodedValue> by_reference, Client& client,
                ActorInstances& actors, Results& results) {
  const ActorInstances::Instance instance = actors.Get(spec.header().actor);
  const ActorType& type = *instance.type;
  if (!type.checkpointable()) {
    throw FailedPrecondition("an actor of class {} cannot be saved: give the class a Serialize",
                             PrettyName(type.compiler_name));
  }
  if (spec.header().kind == CallKind::kLoad) {
    return type.load(instance.actor, by_reference.front(), &client);
  }
  std::vector<ObjectHandle> references;
  const std::size_t size = type.state_size(instance.actor, &references);
  type.save(instance.actor, results.Allocate(0, size, references));
}

// The call has forked, and the process that began it goes on with it: the other has nowhere to
// return to.
[[noreturn]] void EndFork(const CallOutcome& outcome) {
  fmt::print(stderr,
             "process {} is a fork that has returned from a call of a Runtime{}{}; it ends here: "
             "what a call forks must end by itself, by _exit for example\n",
             getpid(), outcome.failed ? ": " : "", outcome.failure.text);
  _exit(EXIT_FAILURE);
}

}  // namespace

void ActorInstances::Clear() {
  std::unordered_map<ActorId, Instance, IdHash> instances;
  {
    const std::lock_guard lock(mutex_);
    instances.swap(instances_);
  }
  for (const auto& [id, instance] : instances) instance.type->destroy(instance.actor);
}

ActorInstances::Instance ActorInstances::Get(ActorId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = instances_.find(id);
  if (found == instances_.end()) throw Internal("actor {} is not here", ToString(id));
  return found->second;
}

void ActorInstances::Insert(ActorId id, Instance instance) {
  const std::lock_guard lock(mutex_);
  instances_.insert_or_assign(id, instance);
}

void ActorInstances::Erase(ActorId id) {
  Instance instance;
  {
    const std::lock_guard lock(mutex_);
    const auto found = instances_.find(id);
    if (found == instances_.end()) return;
    instance = found->second;
    instances_.erase(found);
  }
  instance.type->destroy(instance.actor);
}

CallOutcome Execute(const TaskSpec& spec, std::uint32_t run,
                    std::span<const EncodedValue> by_reference, Client& client, void* execution,
                    CallInputs* inputs, ActorInstances& actors, ResultStore& store) {
  CallOutcome outcome;
  outcome.results.resize(spec.header().results);
  CallContext context{.client = &client,
                      .task = spec.task(),
                      .run = RunOf(spec.task(), run),
                      .execution = execution,
                      .inputs = inputs};
  const Calling calling(context);
  try {
    Results results(client, outcome, store);
    const CallKind kind = spec.header().kind;
    if (kind == CallKind::kSave || kind == CallKind::kLoad) {
      SaveOrLoad(spec, by_reference, client, actors, results);
    } else {
      RunCall(spec, by_reference, client, actors, results);
    }
  } catch (ToldFailure& told) {
    outcome.failed = true;
    outcome.failure = std::move(told.failure);
  } catch (const TaskError& error) {
    // Of a call that this one waited for: what that one says is what went wrong.
    outcome.failed = true;
    outcome.failure = error.failure();
    outcome.failure.text = error.what();
    outcome.failure.kind = FailureKind::kException;
  } catch (...) {
    const Error error = TranslateCurrentException();
    outcome.failed = true;
    outcome.failure = {.kind = FailureKind::kException,
                       .code = error.code(),
                       .type = ExceptionType(),
                       .text = error.what()};
  }
  if (client.InFork()) EndFork(outcome);
  if (!outcome.failed) return outcome;
  for (const TaskResult& result : std::exchange(outcome.results, {})) store.Discard(result.value);
  Cut(outcome.failure.type);
  Cut(outcome.failure.text);
  return outcome;
}

}  // namespace menger
