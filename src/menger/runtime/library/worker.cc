#include "menger/runtime/library/interface.h"
#include "menger/runtime/library/process_title.h"
#include "menger/runtime/worker_main.h"

// A worker of another language: calls that come are handed to its hooks.

struct menger_frame {
  menger::CallFrame* frame;
  menger::CallContext* context;  // Of the call, whatever its thread does meanwhile.
  bool failed = false;
  menger::TaskFailure failure;
  std::uint64_t actor = 0;
  int results = 0;  // Given so far.
};

namespace menger {
namespace {

// Of this process, which serves one runtime in its life. A call finds its way here by its
// function's id alone, so there is nowhere else to keep them.
const menger_worker_hooks* hooks = nullptr;
menger_runtime* served = nullptr;

// What stands for an actor: the language keeps the actor itself.
struct ForeignActor {
  std::uint64_t number;
};

void DestroyActor(void* actor) {
  const std::unique_ptr<ForeignActor> owned(static_cast<ForeignActor*>(actor));
  if (hooks != nullptr) hooks->drop_actor(owned->number);
}

constexpr ActorType kForeignActor{.compiler_name = "actor of another language",
                                  .type = &typeid(ForeignActor),
                                  .destroy = &DestroyActor,
                                  .says_begun = true,
                                  .state_size = nullptr,
                                  .save = nullptr,
                                  .load = nullptr};

template <int kKind>
void RunForeign(CallFrame& frame) {
  if (hooks == nullptr) throw FailedPrecondition("this process does no calls of other languages");
  if (served == nullptr) {
    served = new menger_runtime;
    served->owned = std::make_unique<Runtime>(frame.runtime->client());
    served->runtime = served->owned.get();
  }
  std::vector<menger_bytes> values;
  values.reserve(frame.arguments.size());
  for (const EncodedValue& value : frame.arguments) values.push_back({value.data(), value.size()});
  menger_frame c_frame{.frame = &frame, .context = ThisCall()};
  const std::uint64_t actor =
      kKind == MENGER_METHOD ? static_cast<ForeignActor*>(frame.actor)->number : 0;
  const int results = frame.spec->header().stream_ahead > 0 ? 0 : frame.result_count;
  const ShownCall shown(frame.spec->name());
  ThisCall()->endures = kKind == MENGER_METHOD;  // As in Ray: a method asks, if it wants to know.
  hooks->call(served, &c_frame, kKind, actor, values.data(), values.size(), results);
  if (c_frame.failed) throw ToldFailure{std::move(c_frame.failure)};
  if (c_frame.results != frame.result_count) {
    throw Internal("{} of {} results were given", c_frame.results, frame.result_count);
  }
  if constexpr (kKind == MENGER_CONSTRUCT) frame.actor = new ForeignActor{c_frame.actor};
}

const Function kForeignFunction(&RunForeign<MENGER_FUNCTION>, "function of another language",
                                nullptr);
const Function kForeignConstruct(&RunForeign<MENGER_CONSTRUCT>, "class of another language",
                                 &kForeignActor);
const Function kForeignMethod(&RunForeign<MENGER_METHOD>, "method of another language",
                              &kForeignActor);

}  // namespace

const Function& ForeignFunction(int kind) {
  return kind == MENGER_FUNCTION    ? kForeignFunction
         : kind == MENGER_CONSTRUCT ? kForeignConstruct
                                    : kForeignMethod;
}

}  // namespace menger

extern "C" {

int32_t menger_runtime_serve(const menger_worker_hooks* hooks) {
  menger::hooks = hooks;
  try {
    return menger::WorkerMain();
  } catch (...) {
    menger::NoteError();
    return -1;
  }
}

void menger_runtime_show_construction(const char* class_name) {
  menger::ShowConstruction(class_name);
}

int32_t menger_runtime_is_cancelled(menger_runtime* runtime) {
  return runtime != nullptr && runtime->runtime->IsCancelled() ? 1 : 0;
}

void menger_runtime_leave(menger_runtime* runtime) { runtime->runtime->client().LeaveAfterCall(); }

int32_t menger_frame_is_cancelled(const menger_frame* frame) {
  menger::CallContext* const before = std::exchange(menger::ThisCall(), frame->context);
  const bool cancelled = frame->frame->runtime->client().IsCancelled();
  menger::ThisCall() = before;
  return cancelled ? 1 : 0;
}

void menger_frame_about(const menger_frame* frame, menger_call_about* about) {
  const menger::TaskSpec& spec = *frame->frame->spec;
  const menger::SpecHeader& header = spec.header();
  const bool is_method = header.kind == menger::CallKind::kMethod;
  *about = {.task = menger::ToC(header.task),
            .parent = menger::ToC(header.parent),
            .actor = menger::ToC(header.actor),
            .actor_object = menger::ToC(is_method              ? header.home
                                        : header.actor.valid() ? menger::ResultOf(header.task, 0)
                                                               : menger::ObjectId()),
            .group = is_method ? menger_id{} : menger::ToC(header.home),
            .name = {spec.name().data(), spec.name().size()},
            .resources = {spec.scheduling().data(), spec.scheduling().size()},
            .is_further_run = frame->context->run == menger::RunOf(header.task, 0) ? 0 : 1};
}

int32_t menger_frame_emit(menger_frame* frame, const void* head, uint64_t bytes,
                          const menger_bytes* buffers, uint64_t buffer_count,
                          menger_reference* const* references, uint64_t reference_count) {
  menger::CallContext* const before = std::exchange(menger::ThisCall(), frame->context);
  int32_t status = 0;
  try {
    const menger::ForeignValue value{{static_cast<const std::byte*>(head), bytes},
                                     {buffers, buffer_count},
                                     {references, reference_count}};
    const std::vector<menger::ObjectHandle> handles = menger::HandlesOf(value.references);
    frame->frame->items->Emit(
        value.size(), [&value](std::span<std::byte> out) { value.Write(out); }, handles);
  } catch (...) {
    menger::NoteError();
    status = -1;
  }
  menger::ThisCall() = before;
  return status;
}

int32_t menger_frame_result(menger_frame* frame, int32_t index, const void* head, uint64_t bytes,
                            const menger_bytes* buffers, uint64_t buffer_count,
                            menger_reference* const* references, uint64_t reference_count) {
  try {
    const menger::ForeignValue value{{static_cast<const std::byte*>(head), bytes},
                                     {buffers, buffer_count},
                                     {references, reference_count}};
    const std::vector<menger::ObjectHandle> handles = menger::HandlesOf(value.references);
    value.Write(frame->frame->results->Allocate(index, value.size(), handles));
    ++frame->results;
    return 0;
  } catch (...) {
    menger::NoteError();
    return -1;
  }
}

void menger_frame_begun(menger_frame* frame, int32_t waits) {
  menger::Client& client = frame->frame->runtime->client();
  client.Begun();
  if (waits != 0) client.PassOn();
}

void menger_frame_enter(menger_frame* frame) { menger::ThisCall() = frame->context; }

void menger_frame_leave(menger_frame*) { menger::ThisCall() = nullptr; }

void menger_frame_actor(menger_frame* frame, uint64_t actor) { frame->actor = actor; }

void menger_frame_fail(menger_frame* frame, const char* type, const char* text,
                       const menger_bytes* exception, int32_t final) {
  frame->failed = true;
  frame->failure = {.kind = menger::FailureKind::kException,
                    .code = menger::ErrorCode::kInternal,
                    .type = type,
                    .text = text,
                    .final = final != 0};
  frame->failure.value.assign(static_cast<const char*>(exception->data), exception->size);
}

int32_t menger_frame_object(const menger_frame* frame, uint64_t value, menger_id* id) {
  const auto arguments = frame->frame->spec->arguments();
  if (value >= arguments.size() || !arguments[value].object.valid()) return 0;
  *id = menger::ToC(arguments[value].object);
  return 1;
}

}  // extern "C"
