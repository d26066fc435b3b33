#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "menger/runtime/resources.h"

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
  // Where that goes, in files without a name; "": the system's folder for temporary files. If that
  // lies in memory itself (tmpfs), nothing is won.
  std::string spill_folder;
  // Bytes on the disk; beyond that there is no room. 0: half of what is free when it begins.
  std::uint64_t spill_bytes_max = 0;
  std::uint64_t job = 1;  // Names the job: ids follow from it.
};

}  // namespace menger
