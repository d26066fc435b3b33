#include "menger/runtime/library/menger_runtime.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "menger/runtime/library/interface.h"

namespace menger {
namespace {

struct LastError {
  std::string text;
  ErrorCode code = ErrorCode::kInternal;
};

LastError& ThisThreadsError() {
  static thread_local LastError error;
  return error;
}

std::uint16_t CountOf(int32_t value) {
  return static_cast<std::uint16_t>(std::clamp(value, 0, 65535));
}

using Amounts = std::vector<std::pair<std::string, double>>;

Amounts AmountsOf(std::string_view text) {
  const Resources resources = Resources::Parse(text);
  Amounts amounts;
  for (const Resources::Named& each : resources.amounts()) {
    amounts.emplace_back(each.name, resources.Get(each.name));
  }
  return amounts;
}

RuntimeOptions OptionsOf(const menger_runtime_options& from) {
  RuntimeOptions options{.workers = from.workers,
                         .store_bytes_max = from.store_bytes_max,
                         .workers_ahead = from.workers_ahead};
  options.spill_folder = from.spill_folder;
  options.address = from.address;
  options.cluster_token = from.cluster_token;
  options.tls_certificate = from.tls_certificate;
  options.tls_key = from.tls_key;
  options.tls_authorities = from.tls_authorities;
  if (from.join_seconds != 0) options.join_seconds = from.join_seconds;
  if (from.node_wait_seconds != 0) options.node_wait_seconds = from.node_wait_seconds;
  options.resources = Resources::Parse(from.resources);
  if (from.cpus > 0) options.resources.Set("cpu", from.cpus);
  if (from.gpus > 0) options.resources.Set("gpu", from.gpus);
  WorkerProgram& program = options.worker_program;
  for (const char* const* each = from.program; *each != nullptr; ++each) {
    program.arguments.emplace_back(*each);
  }
  for (const char* const* each = from.variables; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const std::size_t equals = std::min(variable.find('='), variable.size() - 1);
    program.variables.emplace_back(variable.substr(0, equals), variable.substr(equals + 1));
  }
  program.folder = from.folder;
  program.memory_bytes_max = from.memory_bytes_max;
  if (from.on_line != nullptr) {
    options.on_line = [tell = from.on_line](const WorkerLine& line) {
      const std::string node(line.node);
      tell(line.worker, line.process, node.c_str(), line.text.data(), line.text.size());
    };
  }
  return options;
}

}  // namespace

void NoteError() noexcept {
  const Error error = TranslateCurrentException();
  ThisThreadsError() = {error.what(), error.code()};
}

std::vector<ObjectHandle> HandlesOf(std::span<menger_reference* const> references) {
  std::vector<ObjectHandle> handles;
  handles.reserve(references.size());
  for (const menger_reference* reference : references) handles.push_back(HandleOf(reference));
  return handles;
}

std::vector<ObjectHandle> OwnHandles(const Client& client,
                                     std::span<menger_reference* const> references) {
  std::vector<ObjectHandle> handles = HandlesOf(references);
  client.CheckOwn(handles);
  return handles;
}

}  // namespace menger

using menger::Argument;
using menger::ClientOf;
using menger::Counted;
using menger::Guarded;
using menger::HandleOf;
using menger::HandlesOf;
using menger::ObjectHandle;
using menger::OwnHandles;
using menger::RuntimeOf;

struct menger_callable {
  const menger::Client* owner;  // Only compared.
  int kind;
  menger::SpecHeader header;
  std::string scheduling;
  std::string name;
  std::string prefix;
  menger_reference* definition;  // Borrowed; may be null.
};

namespace {

struct Call {
  const menger_callable& callable;
  menger_bytes value;
  std::span<menger_reference* const> arguments;
};

void Submit(menger::Runtime& runtime, const Call& call, menger::SpecHeader& header,
            std::span<ObjectHandle> results) {
  const auto encode = [](const menger_bytes& bytes) {
    return Argument{.value = bytes.data, .size = bytes.size, .encode = nullptr};
  };
  const menger_callable& callable = call.callable;
  if (callable.owner != &runtime.client()) {
    throw menger::InvalidArgument("'{}' was made to be called in another runtime", callable.name);
  }
  const ObjectHandle definition =
      callable.definition != nullptr ? HandleOf(callable.definition) : ObjectHandle();
  const std::vector<ObjectHandle> references = HandlesOf(call.arguments);
  std::vector<Argument> arguments = {encode({callable.prefix.data(), callable.prefix.size()}),
                                     encode(call.value)};
  arguments[0].references = definition.valid() ? 1 : 0;  // The prefix names it.
  for (const ObjectHandle& reference : references) {
    arguments.push_back({.reference = &reference, .encode = nullptr});
  }
  runtime.Submit(menger::ForeignFunction(callable.kind), header, callable.scheduling, callable.name,
                 arguments, {&definition, arguments[0].references}, results);
}

// What a get gave, after the entries that C reads.
struct Entry {
  const void* data;
  std::uint64_t bytes;
  std::uint32_t failed;
  std::uint32_t shared;
};

// The entries come first in memory: C reads them where the batch begins.
struct Batch {
  std::vector<menger::PinnedBytes> values;
};
constexpr std::size_t kBatchHeader =
    sizeof(Batch*);  // NOLINT: a pointer to the batch goes before it.

Batch*& BatchOf(menger_batch* batch) {
  return *reinterpret_cast<Batch**>(reinterpret_cast<char*>(batch) - kBatchHeader);
}

// Of `count` objects. If one has failed, the failure stands in the place of all: whoever reads them
// in their order meets it at once.
menger_batch* ToC(menger::Fetched fetched, std::size_t count) {
  auto* const memory = static_cast<char*>(::operator new(kBatchHeader + count * sizeof(Entry)));
  auto* const entries = reinterpret_cast<Entry*>(memory + kBatchHeader);
  for (std::size_t i = 0; i < count; ++i) {
    const menger::PinnedBytes& value = fetched.values[fetched.failed ? 0 : i];
    entries[i] = {value.bytes().data(), value.bytes().size(), fetched.failed ? 1U : 0U,
                  value.shared() ? 1U : 0U};
  }
  auto* const batch = reinterpret_cast<menger_batch*>(entries);
  BatchOf(batch) = new Batch{std::move(fetched.values)};
  return batch;
}

// The same as handles, which count no more of them: the caller keeps them meanwhile.
std::span<const ObjectHandle> Borrow(std::span<menger_reference* const> references) {
  static_assert(sizeof(ObjectHandle) == sizeof(menger_reference*) &&
                std::is_standard_layout_v<ObjectHandle>);
  return {reinterpret_cast<const ObjectHandle*>(references.data()), references.size()};
}

// References that were made one after the other most often lie so in memory.
void CheckEachOnce(std::span<menger_reference* const> references) {
  const auto rises = std::adjacent_find(references.begin(), references.end(),
                                        std::greater_equal<menger_reference*>());
  if (rises == references.end()) return;
  std::vector<menger_reference*> sorted(references.begin(), references.end());
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return;
  throw menger::InvalidArgument("wait takes each ObjectRef once");
}

}  // namespace

extern "C" {

const char* menger_runtime_error(void) { return menger::ThisThreadsError().text.c_str(); }

int32_t menger_runtime_error_code(void) {
  return static_cast<int32_t>(menger::ThisThreadsError().code);
}

menger_runtime* menger_runtime_open(const menger_runtime_options* options) {
  return Guarded<>(static_cast<menger_runtime*>(nullptr), [&] {
    auto opened = std::make_unique<menger_runtime>();
    opened->owned = std::make_unique<menger::Runtime>(menger::OptionsOf(*options));
    opened->runtime = opened->owned.get();
    return opened.release();
  });
}

void menger_runtime_close(menger_runtime* runtime) { delete runtime; }

menger_callable* menger_runtime_callable(menger_runtime* runtime,
                                         const menger_call_options* options) {
  return Guarded<>(static_cast<menger_callable*>(nullptr), [&] {
    auto callable = std::make_unique<menger_callable>();
    callable->owner = &ClientOf(runtime);
    callable->kind = options->kind;
    callable->name = options->name;
    callable->prefix.assign(static_cast<const char*>(options->prefix.data), options->prefix.size);
    callable->definition = options->definition;
    const menger::Amounts resources = menger::AmountsOf(options->resources);
    const menger::Amounts preferred =
        menger::AmountsOf(options->preferred != nullptr ? options->preferred : "");
    const auto bundles = static_cast<std::uint32_t>(options->group_bundles);
    const menger::PlacementGroup group =
        options->group != nullptr ? menger::PlacementGroup(HandleOf(options->group), bundles)
                                  : menger::PlacementGroup();
    const int bundle = group.valid() ? options->bundle : -1;
    if (options->kind == MENGER_CONSTRUCT) {
      const menger::ActorOptions actor{.cpus = options->cpus,
                                       .gpus = options->gpus,
                                       .resources = resources,
                                       .preferred = preferred,
                                       .spread = options->spread != 0,
                                       .group = group,
                                       .bundle = bundle,
                                       .name = callable->name,
                                       .detached = options->detached != 0,
                                       .restarts = options->restarts,
                                       .call_retries = options->retries,
                                       .concurrency = options->concurrency};
      callable->header = RuntimeOf(runtime).HeaderFor(actor);
      if (callable->name.empty()) callable->name = options->type;
      callable->scheduling = menger::Runtime::SchedulingFor(actor);
    } else if (options->kind == MENGER_FUNCTION) {
      const menger::CallOptions call{.cpus = options->cpus,
                                     .gpus = options->gpus,
                                     .resources = resources,
                                     .preferred = preferred,
                                     .spread = options->spread != 0,
                                     .retries = options->retries,
                                     .retry_errors = options->retry_errors != 0,
                                     .group = group,
                                     .bundle = bundle};
      callable->header = RuntimeOf(runtime).HeaderFor(call);
      callable->scheduling = menger::Runtime::SchedulingFor(call);
    } else {
      const ObjectHandle home = HandleOf(options->actor_object);
      callable->owner->CheckOwn(home);
      callable->header = {.kind = menger::CallKind::kMethod,
                          .retry_errors = options->retry_errors != 0,
                          .actor = {{.high = options->actor.high, .low = options->actor.low}},
                          .home = home.id(),
                          .retries = menger::CountOf(options->retries)};
    }
    if (options->results < 1 || options->results > 65535) {
      throw menger::InvalidArgument("a call has {} results; it must have 1 to 65535",
                                    options->results);
    }
    callable->header.results = static_cast<std::uint16_t>(options->results);
    callable->header.stream_ahead = static_cast<std::uint32_t>(std::max(options->stream_ahead, 0));
    callable->header.callee = XXH3_64bits(callable->prefix.data(), callable->prefix.size());
    return callable.release();
  });
}

void menger_runtime_drop_callable(menger_callable* callable) { delete callable; }

menger_reference* menger_runtime_call(menger_runtime* runtime, const menger_callable* callable,
                                      const void* value, uint64_t bytes,
                                      menger_reference* const* arguments, uint64_t argument_count,
                                      menger_reference** results) {
  return Guarded<>(static_cast<menger_reference*>(nullptr), [&] {
    menger::SpecHeader header = callable->header;
    std::vector<ObjectHandle> handles(header.results);
    Submit(RuntimeOf(runtime), {*callable, {value, bytes}, {arguments, argument_count}}, header,
           handles);
    menger_reference* const first = Counted(handles[0]);
    if (results != nullptr) {
      results[0] = first;
      for (std::size_t i = 1; i < handles.size(); ++i) results[i] = Counted(handles[i]);
    }
    return first;
  });
}

menger_reference* menger_runtime_create(menger_runtime* runtime, const menger_callable* callable,
                                        const void* value, uint64_t bytes,
                                        menger_reference* const* arguments, uint64_t argument_count,
                                        menger_id* actor) {
  return Guarded<>(static_cast<menger_reference*>(nullptr), [&] {
    menger::SpecHeader header = callable->header;
    header.task = ClientOf(runtime).Caller().NextCall();
    header.actor = menger::ActorOf(header.task);
    *actor = menger::ToC(header.actor);
    const ObjectHandle owner = RuntimeOf(runtime).AssignOwner(header);
    ObjectHandle object;
    Submit(RuntimeOf(runtime), {*callable, {value, bytes}, {arguments, argument_count}}, header,
           {&object, 1});
    return Counted(object);
  });
}

menger_reference* menger_runtime_stream(menger_runtime* runtime, const menger_callable* callable,
                                        const void* value, uint64_t bytes,
                                        menger_reference* const* arguments, uint64_t argument_count,
                                        menger_id* call) {
  return Guarded<>(static_cast<menger_reference*>(nullptr), [&] {
    menger::SpecHeader header = callable->header;
    if (header.stream_ahead == 0) {
      throw menger::InvalidArgument("'{}' is called as a stream and is none", callable->name);
    }
    header.task = ClientOf(runtime).Caller().NextCall();
    *call = menger::ToC(header.task);
    ObjectHandle end;
    Submit(RuntimeOf(runtime), {*callable, {value, bytes}, {arguments, argument_count}}, header,
           {&end, 1});
    return Counted(end);
  });
}

menger_reference* menger_runtime_item(menger_runtime* runtime, const menger_id* call,
                                      uint64_t index) {
  return Guarded<>(static_cast<menger_reference*>(nullptr), [&] {
    const menger::TaskId stream{{.high = call->high, .low = call->low}};
    return Counted(ClientOf(runtime).Adopt(menger::StreamItem(stream, index)));
  });
}

void menger_runtime_take(menger_runtime* runtime, const menger_id* call, uint64_t count) {
  if (runtime == nullptr) return;
  ClientOf(runtime).Take({{.high = call->high, .low = call->low}}, count);
}

menger_reference* menger_runtime_put(menger_runtime* runtime, const void* head, uint64_t bytes,
                                     const menger_bytes* buffers, uint64_t buffer_count,
                                     menger_reference* const* references,
                                     uint64_t reference_count) {
  return Guarded<>(static_cast<menger_reference*>(nullptr), [&] {
    const menger::ForeignValue value{{static_cast<const std::byte*>(head), bytes},
                                     {buffers, buffer_count},
                                     {references, reference_count}};
    return Counted(ClientOf(runtime).Put(
        value.size(), [&](std::span<std::byte> out) { value.Write(out); },
        HandlesOf(value.references)));
  });
}

menger_reference* menger_runtime_define(menger_runtime* runtime, const void* head, uint64_t bytes,
                                        const menger_bytes* buffers, uint64_t buffer_count,
                                        menger_reference* const* references,
                                        uint64_t reference_count) {
  return Guarded<>(static_cast<menger_reference*>(nullptr), [&] {
    const menger::ForeignValue value{{static_cast<const std::byte*>(head), bytes},
                                     {buffers, buffer_count},
                                     {references, reference_count}};
    std::vector<std::byte> whole(value.size());
    value.Write(whole);
    const XXH128_hash_t hash = XXH3_128bits(whole.data(), whole.size());
    menger::Client& client = ClientOf(runtime);
    return Counted(client.PutAs(
        menger::DefinitionIn(client.job(), {hash.high64, hash.low64}), whole.size(),
        [&whole](std::span<std::byte> out) { std::copy(whole.begin(), whole.end(), out.begin()); },
        HandlesOf(value.references)));
  });
}

menger_reference* menger_runtime_reserve(menger_runtime* runtime, const char* const* bundles,
                                         uint64_t count, int32_t strategy, const char* name) {
  return Guarded<>(static_cast<menger_reference*>(nullptr), [&] {
    std::vector<menger::Bundle> wanted;
    for (const char* const text : std::span(bundles, count)) {
      wanted.push_back({.resources = menger::AmountsOf(text)});
    }
    const menger::PlacementGroupOptions options{
        .strategy = static_cast<menger::PlacementStrategy>(strategy), .name = name};
    return Counted(RuntimeOf(runtime).CreatePlacementGroup(wanted, options).reservation());
  });
}

menger_batch* menger_runtime_get(menger_runtime* runtime, menger_reference* const* references,
                                 uint64_t count, double timeout_seconds) {
  return Guarded<>(static_cast<menger_batch*>(nullptr), [&] {
    return ToC(ClientOf(runtime).Get(OwnHandles(ClientOf(runtime), {references, count}),
                                     menger::Deadline::After(menger::Duration(timeout_seconds))),
               count);
  });
}

menger_pin* menger_runtime_pin(menger_batch* batch, uint64_t index) {
  return new menger_pin{std::move(BatchOf(batch)->values.at(index))};
}

void menger_runtime_unpin(menger_pin* pin) { delete pin; }

void menger_runtime_drop_batch(menger_batch* batch) {
  delete BatchOf(batch);
  ::operator delete(reinterpret_cast<char*>(batch) - kBatchHeader);
}

int32_t menger_runtime_wait(menger_runtime* runtime, menger_reference* const* references,
                            uint64_t count, uint64_t wanted, double timeout_seconds,
                            uint8_t* ready) {
  return Guarded<>(-1, [&] {
    std::fill(ready, ready + count, 0);
    CheckEachOnce({references, count});
    menger::Client& client = ClientOf(runtime);
    const std::span<const ObjectHandle> objects = Borrow({references, count});
    if (client.AreKnownReady(objects.first(std::min(wanted, count)))) {
      client.CheckOpen();
      std::fill(ready, ready + wanted, 1);
      return 0;
    }
    client.CheckOwn(objects);
    const menger::Deadline deadline = menger::Deadline::After(menger::Duration(timeout_seconds));
    for (const std::size_t place : client.Wait(objects, wanted, deadline)) {
      ready[place] = 1;
    }
    return 0;
  });
}

void menger_runtime_drop(menger_reference* reference) {
  menger::Reference& counted = *menger::ReferenceOf(reference);
  if (counted.handles.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    counted.owner->Forget(&counted);
  }
}

void menger_runtime_id(const menger_reference* reference, menger_id* id) {
  *id = menger::ToC(menger::ReferenceOf(reference)->id);
}

menger_reference* menger_runtime_adopt(menger_runtime* runtime, const menger_id* id) {
  return Guarded<>(static_cast<menger_reference*>(nullptr),
                   [&] { return Counted(ClientOf(runtime).Adopt(menger::ObjectIdOf(*id))); });
}

int32_t menger_runtime_adopt_all(menger_runtime* runtime, const menger_id* ids, uint64_t count,
                                 menger_reference** references) {
  return Guarded<>(-1, [&] {
    for (const menger_id& id : std::span(ids, count)) {
      *references++ = Counted(ClientOf(runtime).Adopt(menger::ObjectIdOf(id)));
    }
    return 0;
  });
}

}  // extern "C"
