#include "menger/training/training_loop.h"

namespace menger {

const char* NameOf(LoopEnd end) {
  switch (end) {
    case LoopEnd::kCompleted:
      return "completed";
    case LoopEnd::kSolved:
      return "solved";
    case LoopEnd::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

}  // namespace menger
