#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "menger/runtime/calls/worker_program.h"
#include "menger/runtime/values/resources.h"

namespace menger {

// Where calls run.
enum class Isolation {
  kProcess,  // In worker processes: one that crashes costs nothing but its time. `main` begins with
             // `if (menger::IsWorker()) return menger::WorkerMain();`
  kThread,   // On threads of this process: less than a microsecond a call, no protection.
};

// A line that a worker process has printed.
struct WorkerLine {
  int worker = -1;        // -1: of one that was started ahead and has no number yet.
  std::string_view name;  // "worker 3", or of the actor that has come to live there.
  pid_t process = 0;      // 0: `text` says how many lines of workers were left out.
  std::string_view node;  // In a cluster the worker's: its name, or how its id begins; else "".
  std::string_view text;  // Without its end; a long line comes in pieces.
};

struct RuntimeOptions {
  // Of the head of a cluster (`menger node --head`), "HOST:PORT": its nodes do the calls, and this
  // process brings neither workers nor resources, whatever is said of these below. "": what the
  // variable MENGER_ADDRESS says, or this machine alone; "local": that, whatever it says. Threads
  // (isolation) do the calls of this machine's drivers alone.
  std::string address;
  // What makes this process one of the cluster: "" for MENGER_CLUSTER_TOKEN, or what the file
  // MENGER_CLUSTER_TOKEN_FILE has. Within one machine there need not be one.
  std::string cluster_token;
  // PEM files, needed beyond this machine: "" for MENGER_TLS_CERTIFICATE, MENGER_TLS_KEY and
  // MENGER_TLS_AUTHORITIES.
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_authorities;
  // Joining may take so long before it fails with what was in its way,
  double join_seconds = 30;
  // and calls and actors wait so long for a node with what they need, where none has it: one may be
  // about to join. Then they fail with what is lacking.
  double node_wait_seconds = 60;

  int workers = 0;  // That run at once; 0: one a CPU that this process may use.
  // So many workers there may be, at least `workers`, beside those of actors: while calls wait for
  // others, further workers stand in for theirs. A call that needs one more fails.
  int workers_max = 512;
  Isolation isolation = Isolation::kProcess;
  Resources resources;  // Of this machine; CPUs not named: as many as workers.
  // Bytes of values in shared memory; what is beyond is written to disk. 0: 30% of the memory.
  std::uint64_t store_bytes_max = 0;
  // Where that goes, in files without a name; "": the system's folder for temporary files. If that
  // lies in memory itself (tmpfs), nothing is won.
  std::string spill_folder;
  // Bytes on the disk; beyond that there is no room. 0: half of what is free when it begins.
  std::uint64_t spill_bytes_max = 0;
  // A thread of the driver that would make more waits until some are done. Calls that calls make
  // never wait: nobody else might do what they wait for.
  std::size_t waiting_calls_max = 1'000'000;                // That are made and not done,
  std::size_t waiting_bytes_max = std::size_t{1024} << 20;  // and the bytes of these.
  // Names the job: ids follow from it, and what follows from ids (Runtime::Random). 0: the
  // how-manyth Runtime of this process it is, so no two have ids in common.
  std::uint64_t job = 0;

  // Of worker processes. With `memory_bytes_max` one may have so much memory of its own (resident,
  // without values in shared memory); looked at four times a second. One that has more is killed:
  // its call fails with kOutOfMemory and is run again only if it has `retry_errors`; its actor is
  // made again as after any death.
  WorkerProgram worker_program;  // Interpreters have workers of their own.
  int workers_ahead = 0;         // Processes that wait to become workers, where starts are slow.

  // What worker processes print: told here, on threads of the runtime, one for this machine's and
  // one for other nodes', at the same time perhaps. The function must not call the runtime, nor
  // keep the former waiting. None: it goes to standard error, after "(name pid=N) " or
  // "(name pid=N, node=NAME) " if `line_prefix`.
  std::function<void(const WorkerLine& line)> on_line;
  bool line_prefix = true;

  // Where the control state is kept on the disk (control_state.h): jobs, actors, workers, events,
  // and calls whose results may have to be made again. One process a folder at a time. "": in
  // memory only, without the calls.
  std::string control_folder;
};

// Throws InvalidArgument, naming the option, for what no runtime can do.
void CheckOptions(const RuntimeOptions& options);

}  // namespace menger
