#pragma once

// The runtime for languages that are not C++: the C interface of libmenger_runtime.so, which
// python/menger/runtime calls through ctypes. The driver opens a runtime, its workers serve one;
// what a function, an argument or a value is, only the language knows: here they are bytes.
//
// A runtime may be null, as one that was closed: what needs it fails. So does what is asked of it
// with references of another one. Those of one that was closed may be dropped, and nothing else.
//
// Any thread may call. Functions that can fail say so by null or a negative number; then
// menger_runtime_error and menger_runtime_error_code of the same thread say why. All that is passed
// is borrowed for the length of the call, unless said otherwise.

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

typedef struct menger_runtime menger_runtime;  // Of a driver, or of a worker's process.
typedef struct menger_reference
    menger_reference;                            // One count of an object; whoever has it drops it.
typedef struct menger_callable menger_callable;  // What is called, and how.
typedef struct menger_frame menger_frame;        // A call that a worker does.
typedef struct menger_batch menger_batch;        // What a get gave.
typedef struct menger_pin menger_pin;            // Keeps a value in shared memory where it is.

typedef struct {
  uint64_t high, low;
} menger_id;

typedef struct {
  const void* data;
  uint64_t size;
} menger_bytes;

// Values are passed as a head, buffers that belong to it, and the references that lie inside of
// them. Without buffers a value is stored as its head alone; with them as
//   uint32 1 | uint32 buffers | uint64 size of the head | uint64 sizes[buffers] | head | buffers
// each buffer at a multiple of 64.

const char* menger_runtime_error(void);
int32_t menger_runtime_error_code(void);  // As menger::ErrorCode counts.

// ---- The driver's end.

typedef struct {
  int32_t workers;               // 0: one a CPU.
  int32_t workers_ahead;         // Further processes that wait to become workers.
  double cpus, gpus;             // cpus 0: as many as workers.
  const char* resources;         // "name=amount name=amount", or empty.
  uint64_t store_bytes_max;      // 0: 30% of the memory.
  const char* const* program;    // What a worker runs; ends with null, as the next does.
  const char* const* variables;  // "NAME=VALUE"
  const char* folder;            // That it works in; empty: the driver's.
  uint64_t memory_bytes_max;     // Of one worker; 0: no limit.
  const char* spill_folder;      // For values beyond the store; empty: that for temporary files.
  // Of the head of a cluster, "HOST:PORT": its nodes do the calls, and the process brings none of
  // the above but what workers run. Empty: as MENGER_ADDRESS says, or this machine alone; "local":
  // that. The token and the files are as in menger::RuntimeOptions.
  const char* address;
  const char* cluster_token;
  const char* tls_certificate;
  const char* tls_key;
  const char* tls_authorities;
  double join_seconds;       // Joining may take so long; 0: as menger::RuntimeOptions says.
  double node_wait_seconds;  // Likewise: calls wait for a node with what none has.
  // Gets what workers print, line by line, on a thread of the runtime. May be null. `node`: of a
  // cluster, or empty; `process` 0: the line says how many others were left out.
  void (*on_line)(int32_t worker, int32_t process, const char* node, const char* line,
                  uint64_t bytes);
} menger_runtime_options;

menger_runtime* menger_runtime_open(const menger_runtime_options* options);
// Ends all workers. Its references, callables and pins may outlive it: what is pinned can be read,
// and all can be dropped.
void menger_runtime_close(menger_runtime* runtime);

// ---- Calls.

enum { MENGER_FUNCTION, MENGER_CONSTRUCT, MENGER_METHOD };  // NOLINT: C's names.

typedef struct {
  int32_t kind;
  int32_t results;      // Of a function or method; 1 or more.
  menger_bytes prefix;  // Says what is called: the first of the values that the worker gets.
  menger_reference* definition;  // That the prefix refers to; may be null.
  const char* name;              // What people see; of a construction, the name to be found by.
  const char* type;              // Of a construction: what people see if it has no name.
  double cpus, gpus;
  const char* resources;  // As above.
  // Of a construction: those of calls. Of a method: 0 for what its construction says.
  int32_t retries;
  int32_t restarts;  // Of a construction.
  int32_t retry_errors;
  int32_t concurrency;             // Of a construction: calls that the actor does at once.
  int32_t detached;                // Of a construction: see ActorOptions::detached.
  menger_id actor;                 // Of a method,
  menger_reference* actor_object;  // with what its construction gave.
  // Of others: the placement group of which they take what they need, or null, with how many
  // bundles it has, and of which; -1: of any.
  menger_reference* group;
  int32_t group_bundles;
  int32_t bundle;
  // Of a stream (menger_runtime_stream): items that may wait for the reader, 1 or more; else 0.
  int32_t stream_ahead;
  // Of others, outside of groups: see menger::CallOptions; null: none.
  const char* preferred;
  int32_t spread;
} menger_call_options;

// Borrows no reference: the caller keeps `definition`, `actor_object` and `group` for as long as it
// calls.
menger_callable* menger_runtime_callable(menger_runtime* runtime,
                                         const menger_call_options* options);
void menger_runtime_drop_callable(menger_callable* callable);

// Calls with one value, or with a reference to it (the first), and further references, whose values
// the worker gets after it. Returns a reference to the result; if `results` is not null, fills it
// instead, with as many as the callable has, and returns the first.
menger_reference* menger_runtime_call(menger_runtime* runtime, const menger_callable* callable,
                                      const void* value, uint64_t bytes,
                                      menger_reference* const* arguments, uint64_t argument_count,
                                      menger_reference** results);

// The same for a construction; also says which actor that makes, once `actor` is not null.
menger_reference* menger_runtime_create(menger_runtime* runtime, const menger_callable* callable,
                                        const void* value, uint64_t bytes,
                                        menger_reference* const* arguments, uint64_t argument_count,
                                        menger_id* actor);

// The same for a call that gives its results one by one: a reference that is ready, with the value
// that the worker gives last, once all items are; it fails where the call does. Also says which
// call that is.
menger_reference* menger_runtime_stream(menger_runtime* runtime, const menger_callable* callable,
                                        const void* value, uint64_t bytes,
                                        menger_reference* const* arguments, uint64_t argument_count,
                                        menger_id* call);
// Item `index` of a stream, ready or not: to be waited for together with the end, as there may be
// no such item.
menger_reference* menger_runtime_item(menger_runtime* runtime, const menger_id* call,
                                      uint64_t index);
// The reader has references on the first `count` items; UINT64_MAX: it wants no more, which ends
// the call; UINT64_MAX - 1: the same, but the call goes on, and what it emits is dropped.
void menger_runtime_take(menger_runtime* runtime, const menger_id* call, uint64_t count);

menger_reference* menger_runtime_put(menger_runtime* runtime, const void* head, uint64_t bytes,
                                     const menger_bytes* buffers, uint64_t buffer_count,
                                     menger_reference* const* references, uint64_t reference_count);

// The same for what calls refer to as their definition: it is named after its bytes, and stored
// once a job, whoever defines it.
menger_reference* menger_runtime_define(menger_runtime* runtime, const void* head, uint64_t bytes,
                                        const menger_bytes* buffers, uint64_t buffer_count,
                                        menger_reference* const* references,
                                        uint64_t reference_count);

// Asks for a placement group: `bundles` are `count` texts as "cpu=1 gpu=1 rocket=2", `strategy` is
// counted as menger::PlacementStrategy. What is returned stands for the group: it can be waited
// for, and cancelled, which removes it; it has no value.
menger_reference* menger_runtime_reserve(menger_runtime* runtime, const char* const* bundles,
                                         uint64_t count, int32_t strategy, const char* name);

// ---- Waiting. Those who want to be interruptible wait in slices.

// All values, or null: with the code of a deadline if they were not ready in time.
//
// The batch begins with an entry for each:
//   void* data | uint64 bytes | uint32 failed | uint32 shared
// `failed`: the data are a TaskFailure as menger::Encode writes it. All is valid until the batch is
// dropped; the shared ones also for as long as they are pinned.
menger_batch* menger_runtime_get(menger_runtime* runtime, menger_reference* const* references,
                                 uint64_t count, double timeout_seconds);
menger_pin* menger_runtime_pin(menger_batch* batch, uint64_t index);  // Once an entry.
void menger_runtime_unpin(menger_pin* pin);
void menger_runtime_drop_batch(menger_batch* batch);

// Says which are ready, once `wanted` of them are or the time has passed.
int32_t menger_runtime_wait(menger_runtime* runtime, menger_reference* const* references,
                            uint64_t count, uint64_t wanted, double timeout_seconds,
                            uint8_t* ready);

// ---- References.

void menger_runtime_drop(menger_reference* reference);
void menger_runtime_id(const menger_reference* reference, menger_id* id);
// On an object whose id came inside of a value that this process holds.
menger_reference* menger_runtime_adopt(menger_runtime* runtime, const menger_id* id);
int32_t menger_runtime_adopt_all(menger_runtime* runtime, const menger_id* ids, uint64_t count,
                                 menger_reference** references);

// ---- The rest.

int32_t menger_runtime_cancel(menger_runtime* runtime, menger_reference* reference, int32_t force,
                              int32_t recursive);
// `reference`: on what its construction gave; null will do for an actor of this program.
int32_t menger_runtime_kill(menger_runtime* runtime, const menger_id* actor,
                            menger_reference* reference, int32_t may_restart);
// What the construction of the actor of that name gave; null, with the code of "not found". A name
// with " @" in it is one in the whole cluster: `of_another` is 1 for an actor of another program,
// which only a reference keeps known here.
menger_reference* menger_runtime_find(menger_runtime* runtime, const char* name, menger_id* actor,
                                      int32_t* of_another);

// Asks the job of that process ("4711"; "": the only one that runs) for "status", "timeline",
// "nodes": who is in its cluster, itself first, or "names": of actors that all of it share. `take`
// gets the answer, which is JSON, piece by piece. The process may also be a node of a cluster,
// which knows of "nodes" and "names" as its drivers do.
int32_t menger_runtime_ask(const char* process, const char* question, double timeout_seconds,
                           void (*take)(const char* piece, uint64_t bytes));

// ---- A worker's end.

typedef struct {
  // `results` is 0 where the call is a stream: its items are emitted, then one result is given.
  // Does a call: gives each of the frame's results, or the failure. On the main thread, but for the
  // methods of an actor with concurrency: on any.
  void (*call)(menger_runtime* runtime, menger_frame* frame, int32_t kind, uint64_t actor,
               const menger_bytes* values, uint64_t value_count, int32_t results);
  // An actor, which the construction has numbered, is gone.
  void (*drop_actor)(uint64_t actor);
} menger_worker_hooks;

// The life of a worker process, on its main thread; returns its exit status.
int32_t menger_runtime_serve(const menger_worker_hooks* hooks);

// What `ps` shows of a worker's process is the name of the call that it does, "ray::NAME"; between
// calls "ray::IDLE" or, where it has an actor, that actor's class. Its construction says which.
void menger_runtime_show_construction(const char* class_name);

// Whether the call that the worker does should stop.
int32_t menger_runtime_is_cancelled(menger_runtime* runtime);

// The same of that call, for any thread while the hook runs.
int32_t menger_frame_is_cancelled(const menger_frame* frame);

// The process ends after the call that it does.
void menger_runtime_leave(menger_runtime* runtime);

// What there is to know about a call beside its arguments; the texts are valid while it runs.
typedef struct {
  menger_id task, parent;  // The call, and the one that made it.
  menger_id actor;         // Of a construction or a method, with what stands for it; else 0.
  menger_id actor_object;
  menger_id group;         // The placement group of others than methods; else 0.
  menger_bytes name;       // What people see.
  menger_bytes resources;  // As "cpu=1.000 gpu=2.000", or empty: one CPU; methods have none.
  int32_t is_further_run;  // It was run before, or its actor was made before.
} menger_call_about;

void menger_frame_about(const menger_frame* frame, menger_call_about* about);

// The next item of a stream. On the thread of the call; waits while the reader is too far behind.
// Fails with the code of what was cancelled where he wants no more.
int32_t menger_frame_emit(menger_frame* frame, const void* head, uint64_t bytes,
                          const menger_bytes* buffers, uint64_t buffer_count,
                          menger_reference* const* references, uint64_t reference_count);

int32_t menger_frame_result(menger_frame* frame, int32_t index, const void* head, uint64_t bytes,
                            const menger_bytes* buffers, uint64_t buffer_count,
                            menger_reference* const* references, uint64_t reference_count);
// Of an actor with concurrency: the call has begun, and the next one may; it does at once where
// this one is going to wait.
void menger_frame_begun(menger_frame* frame, int32_t waits);
// What this thread calls and puts until the hook returns is not the call's, but the process's as
// that of its other threads: the thread does the work of several calls.
void menger_frame_leave(menger_frame* frame);
// The opposite, until then: any thread while the hook runs.
void menger_frame_enter(menger_frame* frame);
void menger_frame_actor(menger_frame* frame,
                        uint64_t actor);  // The number of the one that it made.
// `final`: no further run is wanted, whatever the call's options say.
void menger_frame_fail(menger_frame* frame, const char* type, const char* text,
                       const menger_bytes* exception, int32_t final);
// Which object a value is, counted as the hook's values are; false for one that is none.
int32_t menger_frame_object(const menger_frame* frame, uint64_t value, menger_id* id);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
