#pragma once

#include "menger/base/archive.h"
#include "menger/training/learning/loop_state.h"

namespace menger {

enum class LoopEnd { kCompleted, kSolved, kInterrupted };
const char* NameOf(LoopEnd end);  // "completed", "solved", "interrupted"

// A run from its beginning, or from a checkpoint, to its end. One thread.
class TrainingLoop {
 public:
  virtual ~TrainingLoop() = default;

  // Puts what the run is into the event file: for a new run, before Run.
  virtual void WriteSettings() = 0;

  // Goes back to the state of a checkpoint; drops the rows that were written after it. Throws
  // FailedPrecondition if the checkpoint is of another architecture or collection plan, or has
  // state of the algorithm or the update rule that loading does not read.
  virtual void Restore(ArchiveReader checkpoint) = 0;

  // A checkpoint is left when the run completes or is stopped. A completed run is evaluated.
  virtual LoopEnd Run() = 0;

  virtual const LoopCounters& counters() const = 0;
  virtual double episode_return_mean() const = 0;
};

}  // namespace menger
