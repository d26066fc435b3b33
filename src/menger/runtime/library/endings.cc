#include "menger/runtime/library/interface.h"
#include "menger/runtime/watching/job_socket.h"

// The part of the C interface that ends calls and actors, and asks what there is.

using menger::ClientOf;
using menger::Counted;
using menger::Guarded;
using menger::HandleOf;
using menger::ObjectHandle;

extern "C" {

int32_t menger_runtime_cancel(menger_runtime* runtime, menger_reference* reference, int32_t force,
                              int32_t recursive) {
  return Guarded<>(-1, [&] {
    const ObjectHandle object = HandleOf(reference);
    ClientOf(runtime).CheckOwn(object);
    ClientOf(runtime).Cancel(object, force != 0, recursive != 0);
    return 0;
  });
}

int32_t menger_runtime_kill(menger_runtime* runtime, const menger_id* actor,
                            menger_reference* reference, int32_t may_restart) {
  return Guarded<>(-1, [&] {
    menger::ObjectId object;
    if (reference != nullptr) object = HandleOf(reference).id();
    ClientOf(runtime).KillActor({{.high = actor->high, .low = actor->low}}, object,
                                may_restart != 0);
    return 0;
  });
}

menger_reference* menger_runtime_find(menger_runtime* runtime, const char* name, menger_id* actor,
                                      int32_t* of_another) {
  return Guarded<>(static_cast<menger_reference*>(nullptr), [&] {
    const auto found = ClientOf(runtime).FindActor(name);
    if (!found) throw menger::NotFound("no actor named '{}' lives", name);
    *actor = menger::ToC(found->id);
    *of_another = found->of_another ? 1 : 0;
    return Counted(found->object);
  });
}

int32_t menger_runtime_ask(const char* process, const char* question, double timeout_seconds,
                           void (*take)(const char* piece, uint64_t bytes)) {
  return Guarded<>(-1, [&] {
    menger::AskJob(
        menger::FindJob(process), question,
        [take](std::string_view piece) { take(piece.data(), piece.size()); },
        menger::Deadline::After(menger::Duration(timeout_seconds)));
    return 0;
  });
}

}  // extern "C"
