#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "menger/runtime/resources.h"
#include "menger/runtime/worker_program.h"

namespace menger {

// Where calls run.
enum class Isolation {
  kProcess,  // In worker processes: one that crashes costs nothing but its time. `main` begins with
             // `if (menger::IsWorker()) return menger::WorkerMain();`
  kThread,   // On threads of this process: less than a microsecond a call, no protection.
};

struct RuntimeOptions {
  int workers = 0;  // That run at once; 0: one a CPU that this process may use.
  Isolation isolation = Isolation::kProcess;
  Resources resources;  // Of this machine; CPUs not named: as many as workers.
  // Bytes of values in shared memory; what is beyond is written to disk. 0: 30% of the memory.
  std::uint64_t store_bytes_max = 0;
  // A thread of the driver that would make more waits until some are done. Calls that calls make
  // never wait: nobody else might do what they wait for.
  std::size_t waiting_calls_max = 1'000'000;                // That are made and not done,
  std::size_t waiting_bytes_max = std::size_t{1024} << 20;  // and the bytes of these.
  std::uint64_t job = 1;                                    // Names the job: ids follow from it.

  // Of worker processes.
  WorkerProgram worker_program;  // Interpreters have workers of their own.
  int workers_ahead = 0;         // Processes that wait to become workers, where starts are slow.
  // Gets every line that a worker prints, on a thread of the runtime; unset: standard error does.
  std::function<void(int worker, pid_t process, std::string_view line)> on_line;
};

}  // namespace menger
