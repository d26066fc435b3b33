#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/environments/environment.h"
#include "menger/environments/hosted/host_voice.h"

namespace menger {

// A program that serves environments by the protocol of protocol.h.
struct HostProgram {
  std::vector<std::string> arguments;  // The program first: a path, or a name searched in PATH.
  std::vector<std::pair<std::string, std::string>> variables;  // Put over menger's own environment.
  std::string advice;                  // What a user can do about a host that fails; one sentence.
  double start_deadline_seconds = 45;  // From the start to the environments being there.
  double step_deadline_seconds = 30;   // Of one Reset or Step without any progress.
  std::string speaker = {};            // Who prints what it prints, for log lines.
  std::shared_ptr<HostVoice> voice = {};  // Passes it on; shared by all hosts of a run. Null: none.
  bool quiet = false;                     // What it says of the environment has been told before.
};

// Starts the program once, asks what `request` (JSON) is, and ends it. The entry's groups each run
// a process of their own, started at the first call that has a slab; the slab must lie in shared
// memory (EnvironmentEntry::shares_memory).
//
// A host that dies, or makes no progress for its deadline, is an error that names environment,
// cause and advice, noticed within a second. While GroupOptions::errors grants restarts, a new host
// with fresh episodes takes its place: the row has valid = 0, truncated = 1 and episode_end = 0 in
// all columns, and the row after it begins the new episodes (also where columns were parked). A
// group that is not resumable loads no episodes: Reset must follow Load. So it is where the host
// was found dead when a resumable group was saved: once loaded, it is not resumable until Reset.
EnvironmentEntry OpenHosted(const HostProgram& program, const std::string& request);

// Starts the program once and has it say what is wrong with what `request` makes (kCheck).
std::string CheckHosted(const HostProgram& program, const std::string& request);

}  // namespace menger
